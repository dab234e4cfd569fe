"""Every example, on every profile it names: right against NumPy, and the same as text."""

from __future__ import annotations

import importlib
import runpy
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import examples
from pto.ir.copied import same
from pto.ir.text.parser import parse
from pto.lang import kernel as kernels
from pto.lang.kernel import Kernel
from pto.lang.tracing import Tracing
from pto.run.jit.emit.frame import HostFallback
from pto.verify import judge

FOLDER = Path(examples.__file__).parent
NAMES = sorted(p.stem for p in FOLDER.glob("*.py") if p.stem not in ("__init__", "demo"))
# Results that are rounded: of f32 sums (relative to the largest), or to f16. All others are exact.
ROUNDED = {
    "vector_add": 1e-7,
    "softmax": 1e-6,
    "softmax_registers": 1e-6,
    "layernorm": 1e-6,
    "gemm_f16": 1e-6,
    "gemm_double_buffered": 1e-6,
    "all_reduce": 1e-6,
    "ring_attention": 1e-6,
    "flash_attention": 2.0**-10,  # weights are f16
    "gemm_int8": 2.0**-11,
    "gemm_mx": 1e-6,
}


def runs() -> list[tuple[str, str]]:
    modules = {name: importlib.import_module(f"examples.{name}") for name in NAMES}
    return [(name, profile) for name, module in modules.items() for profile in module.PROFILES]


def forget(module: ModuleType) -> None:
    """The kernels of an example are traced again when they are called next."""
    for value in vars(module).values():
        if isinstance(value, Kernel):
            for kernel in (value, *value._elsewhere.values()):
                kernel._cache.clear()
                kernel._captured.calls().clear()


@pytest.mark.parametrize(("name", "profile"), runs())
def test_example_agrees_with_numpy(name: str, profile: str):
    actual, expected = importlib.import_module(f"examples.{name}").example(profile)
    assert actual.shape == expected.shape
    wide = np.asarray(expected, np.float64)
    assert np.abs(wide).max() > 0
    error = np.abs(np.asarray(actual, np.float64) - wide).max() / np.abs(wide).max()
    assert error <= ROUNDED.get(name, 0.0)


OPENS_QUEUES = {"flash_attention": {"pto.aic_initialize_pipe", "pto.aiv_initialize_pipe"}}


@pytest.mark.parametrize(("name", "profile"), runs())
def test_compiled_code_asks_python_for_nothing_but_queues(
    name: str, profile: str, monkeypatch: pytest.MonkeyPatch
):
    asked: set[str] = set()
    call = HostFallback.__call__

    def hear(self: HostFallback, *given: Any) -> Any:
        asked.add(self._op.name)
        return call(self, *given)

    monkeypatch.setenv("PTO_ENGINE", "jit")
    monkeypatch.setattr(HostFallback, "__call__", hear)
    importlib.import_module(f"examples.{name}").example(profile)
    assert asked <= OPENS_QUEUES.get(name, set())  # those of an earlier launch are open


@pytest.mark.parametrize(("name", "profile"), runs())
def test_text_of_an_example_is_legal_and_gives_the_same_bits(
    name: str, profile: str, monkeypatch: pytest.MonkeyPatch
):
    """Run once as traced, once as the program parsed from the printed text."""
    module = importlib.import_module(f"examples.{name}")
    traced = module.example(profile)[0].tobytes()
    seen: list[bool] = []
    trace = Tracing.program

    def through_text(self: Tracing, *args: Any) -> Any:
        made = trace(self, *args)
        again = parse(kernels.print_module(made.module))
        seen.append(same(made.module.op, again.op))
        target, findings = judge(again)
        assert target.profile.name == profile
        assert [d for d in findings if d.severity == "error"] == []
        return replace(made, module=again)

    monkeypatch.setattr(Tracing, "program", through_text)
    forget(module)
    again = module.example(profile)[0].tobytes()
    forget(module)  # programs out of text know no line of the example
    assert again == traced
    assert seen
    assert all(seen)


@pytest.mark.parametrize(("name", "profile"), runs())
def test_only_the_racy_example_is_racy(name: str, profile: str, monkeypatch: pytest.MonkeyPatch):
    found: list[str] = []

    def run(self: Kernel, *args: Any, blocks: int = 1, **named: Any) -> None:
        found.extend(d.code for d in self.sanitize(*args, blocks=blocks, **named))

    monkeypatch.setattr(Kernel, "run", run)
    importlib.import_module(f"examples.{name}").example(profile)
    assert {code[:5] for code in found} == ({"PTO-R"} if name == "racy" else set())


@pytest.mark.parametrize("name", NAMES)
def test_example_runs_as_a_program(name: str, capsys: pytest.CaptureFixture[str]):
    runpy.run_path(str(FOLDER / f"{name}.py"), run_name="__main__")
    assert capsys.readouterr().out.strip()


def test_an_example_runs_in_a_process_of_its_own():
    done = subprocess.run(
        [sys.executable, "-m", "examples.softmax"],
        cwd=FOLDER.parent,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()
