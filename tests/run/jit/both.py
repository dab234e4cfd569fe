"""One program on both engines: the same bytes, and what the fast one left to the reference."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from pto.core.errors import PtoError
from pto.ir.graph import Module
from pto.ir.text.parser import parse
from pto.run.launch.host import launch


def agree(
    program: str | Module,
    args: Sequence[Any],
    *,
    all_native: bool = True,
    fused: Sequence[int] | None = None,
    **options: Any,
) -> list[Any]:
    """Run on both engines and compare every array; the arrays as they are after the run.

    With `all_native`, nothing may have been left to the reference engine. `fused`: how many
    instructions each fused group has.
    """
    module = parse(program) if isinstance(program, str) else program
    ours, theirs = ([_copy(a) for a in args] for _ in range(2))
    launch(module, args=theirs, engine="reference", **options)
    report = launch(module, args=ours, engine="jit", **options)
    assert report.engine == "jit"
    for mine, other in zip(ours, theirs, strict=True):
        same(mine, other)
    if all_native:
        assert not report.left_out, dict(report.left_out)
    assert fused is None or [len(group) for group in report.fused] == list(fused), report.fused
    return ours


def same(ours: Any, theirs: Any) -> None:
    """Equal bits; of floats any NaN is as good as another, since its payload is not defined."""
    if not isinstance(ours, np.ndarray):
        return
    width = f"u{ours.dtype.itemsize}"
    different = ours.view(width) != theirs.view(width)
    if ours.dtype.kind not in "iub":
        with np.errstate(invalid="ignore"):  # a signalling NaN of a small type
            different &= ~((ours != ours) & (theirs != theirs))
    at = np.argwhere(different)
    if len(at):
        first = tuple(at[0])
        raise AssertionError(f"{len(at)} differ, first {first}: {ours[first]} {theirs[first]}")


def fails_alike(program: str | Module, args: Sequence[Any], **options: Any) -> str:
    """Both engines end with the same diagnostic, at the same place; its code."""
    module = parse(program) if isinstance(program, str) else program
    said: list[list[Any]] = []
    for engine in ("reference", "jit"):
        try:
            launch(module, args=[_copy(a) for a in args], engine=engine, **options)
        except PtoError as error:
            said.append([(d.code, d.message, d.loc) for d in error.diagnostics])
    assert len(said) == 2, "one engine did not fail"
    assert said[0] == said[1]
    return said[0][0][0]


def _copy(value: Any) -> Any:
    return value.copy() if isinstance(value, np.ndarray) else value
