"""Examples that leave synchronisation to a compiler: with it inserted they are clean, same bits."""

from __future__ import annotations

import importlib
from dataclasses import replace
from typing import Any

import pytest

from pto.lang.kernel import Kernel
from pto.lang.tracing import Tracing
from pto.plan.sync import ordered
from pto.target.profile import profile as find
from tests.examples.test_examples import forget, runs

NAMES = ("embedding", "flash_attention", "gemm_int8", "layernorm", "softmax", "top_k")
# Between the cube and the vector side more is in order than one side can know.
NEEDLESS = ("PTO-R014",)


@pytest.mark.parametrize(("name", "profile"), [run for run in runs() if run[0] in NAMES])
def test_an_example_with_flags_is_clean_and_gives_the_same_bits(
    name: str, profile: str, monkeypatch: pytest.MonkeyPatch
):
    module = importlib.import_module(f"examples.{name}")
    expected = module.example(profile)[0].tobytes()
    found: list[str] = []
    trace = Tracing.program
    flags: list[int] = []

    def synchronised(self: Tracing, *args: Any) -> Any:
        traced = trace(self, *args)
        made = ordered(traced.module, find(profile))
        flags.append(sum(op.name == "pto.wait_flag" for op in made.walk()))
        return replace(traced, module=made)

    def run(self: Kernel, *args: Any, blocks: int = 1, **named: Any) -> None:
        found.extend(d.code for d in self.sanitize(*args, blocks=blocks, **named))

    monkeypatch.setattr(Tracing, "program", synchronised)
    monkeypatch.setattr(Kernel, "run", run)
    forget(module)
    try:
        assert module.example(profile)[0].tobytes() == expected
    finally:
        forget(module)
    assert flags and all(flags)
    assert [code for code in found if code not in NEEDLESS] == []
