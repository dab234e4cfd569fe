"""Operators against their own references, on both profiles and engines, and under the sanitizer."""

from __future__ import annotations

import ast
import importlib
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from examples.operators.cases import drawn, exact
from pto.core.dtypes import dtype
from pto.judging.precision import Precision
from pto.lang.operator import Operator

FOLDER = Path(__file__).parents[2] / "examples" / "operators"
_PARTS = {"__init__", "broadcast", "cases", "sorting", "tiles"}  # what operators share
NAMES = sorted({p.stem for p in FOLDER.glob("*.py")} - _PARTS)
_NO_KERNEL = ("run", "reference", "inputs")  # functions that are no part of a kernel


def module_of(name: str) -> Any:
    return importlib.import_module(f"examples.operators.{name}")


def arguments(module: Any, number: int) -> dict[str, Any]:
    made = drawn(module.CASES[number], seed=number)
    if hasattr(module, "inputs"):
        made = module.inputs(made, np.random.default_rng(number))
    return made


def listed(results: Any) -> list[Any]:
    return list(results) if isinstance(results, list | tuple) else [results]


@pytest.mark.parametrize("profile", ["a2a3", "a5"])
@pytest.mark.parametrize("name", NAMES)
def test_an_operator_is_right_on_both_engines(name: str, profile: str) -> None:
    module = module_of(name)
    precision = Precision(means=getattr(module, "TOLERANCE", {}))
    for number in range(len(module.CASES)):
        given = arguments(module, number)
        with np.errstate(all="ignore"):
            wanted = listed(module.reference(**{n: exact(v) for n, v in given.items()}))
        before = {n: np.copy(v) for n, v in given.items() if isinstance(v, np.ndarray)}
        results: list[list[Any]] = []
        for engine in ("jit", "reference"):
            results.append(listed(module.run.on(profile, engine=engine)(**given)))
            for got, aim in zip(results[-1], wanted, strict=True):
                aim = np.asarray(aim)
                assert got.shape == aim.shape, (number, engine)
                if got.dtype == np.bool_:
                    assert np.array_equal(got, aim), (number, engine)
                    continue
                compared = precision.compare(dtype(got.dtype), got, aim)
                assert compared.is_right, (number, engine, compared.reason)
        assert [r.tobytes() for r in results[0]] == [r.tobytes() for r in results[1]], number
        for n, v in before.items():
            assert v.tobytes() == given[n].tobytes(), f"{n} has changed in case {number}"


@pytest.mark.parametrize("profile", ["a2a3", "a5"])
@pytest.mark.parametrize("name", NAMES)
def test_an_operator_is_clean_under_the_sanitizer(name: str, profile: str) -> None:
    module = module_of(name)
    verdicts = module.run.on(profile).sanitize(**arguments(module, 0))
    assert not verdicts, verdicts


@pytest.mark.parametrize("name", NAMES)
def test_an_operator_has_its_parts(name: str) -> None:
    module = module_of(name)
    assert isinstance(module.run, Operator)
    assert module.LEVEL in (1, 2, 3, 4)
    assert len(module.CASES) >= 2
    tree = ast.parse((FOLDER / f"{name}.py").read_text("utf-8"))
    assert "ound by" in (ast.get_docstring(tree) or ""), "the docstring says what bounds it"
    lines = 0
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and node.name not in _NO_KERNEL:
            first = node.decorator_list[0].lineno if node.decorator_list else node.lineno
            lines += (node.end_lineno or 0) - first + 1
    assert lines <= (120 if module.LEVEL == 4 else 60), f"{lines} lines of kernel code"
    used = {
        n.name.split(".")[0] for t in ast.walk(tree) if isinstance(t, ast.Import) for n in t.names
    }
    assert not used & {"torch", "scipy"}


@pytest.mark.parametrize("name", NAMES)
def test_a_first_run_gives_no_warning(name: str) -> None:
    module = module_of(name)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        module.run.on("a5")(**arguments(module, 1))
