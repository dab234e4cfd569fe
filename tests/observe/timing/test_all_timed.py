"""Whatever runs can be timed: every program of ours that a host can launch, and every example."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import pytest

from pto.core.errors import PtoError
from pto.gym.timed import timed
from pto.ir.text.parser import parse_file
from pto.isa.cost.work import Cycles
from pto.lang.kernel import Kernel
from pto.plan.calls import entry_functions
from pto.run.launch.arguments import build, parameters
from pto.run.launch.host import launch
from tests.examples.test_examples import runs
from tests.observe.timing.test_remedies import COMPARED, NOT_COMPARED
from tests.test_programs import GOOD


def is_timed(timing: Any) -> bool:
    """Every launch takes time; whoever works on a pipe keeps a core, and flags of nobody do not."""
    works = [job.work for job in timing.stream.jobs if not isinstance(job.work, Cycles)]
    return timing.us > 0 and (timing.core_us > 0 or not works)


def launches(path: Path) -> list[str]:
    """Functions of a program that run on arrays of zeros and the number one; most take tiles."""
    module, found = parse_file(path), []
    for name in [op.symbol for op in module.op.regions[0].block.ops if op.name == "func.func"]:
        try:
            launch(module, entry=name, args=arguments(module, name), timeout=5)
        except PtoError:
            continue
        found.append(name)
    return found


def arguments(module: Any, name: str) -> list[Any]:
    found = parameters(*entry_functions(module, name))
    return build(found, {p.name: "zeros" if p.is_array else "1" for p in found}, 0)


def test_every_program_that_a_host_can_launch():
    count = 0
    for path in GOOD:
        module = parse_file(path)
        for name in launches(path):
            options = {"args": arguments(module, name), "entry": name}
            assert is_timed(timed(module, options)), f"{path.name} {name}"
            count += 1
    assert count >= 20


@pytest.mark.parametrize(("name", "profile"), [r for r in runs() if r[1] != "cpu"])
def test_every_launch_of_every_example(
    name: str, profile: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = Kernel.run

    def timed_too(self: Kernel, *args: Any, blocks: Any = 1, **named: Any) -> Any:
        try:
            found = self.time(*args, blocks=blocks, **named)
        except PtoError as error:
            assert error.code == "PTO-C010"
            found = self.time(*args, blocks=blocks, data=True, **named)
        assert is_timed(found)
        for remedy in found.remedies:
            assert (name, remedy.change) in {*COMPARED, *NOT_COMPARED}, str(remedy)
        return run(self, *args, blocks=blocks, **named)

    monkeypatch.setattr(Kernel, "run", timed_too)
    importlib.import_module(f"examples.{name}").example(profile)
