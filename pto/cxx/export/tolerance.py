"""How far a board may differ from a run here, and why: from the rows of the instructions."""

from __future__ import annotations

from dataclasses import dataclass

from pto.core.dtypes import DType
from pto.ir.graph import Module, Operation
from pto.isa.meaning import lanes, mathlib
from pto.isa.meaning.kinds import Fold, Lane
from pto.isa.row.types import Scalar
from pto.observe.memory.atomic import combination

# Relative errors that the system tests of pto-isa allow. A step of an 8-bit float is larger: a
# result near the middle of two values may become either. Other types are compared as bytes.
_ALLOWED = {"f32": 1e-3, "f16": 5e-3, "bf16": 5e-3, "f8e4m3": 1.0, "f8e5m2": 1.0}


@dataclass(frozen=True, slots=True)
class ExportTolerance:
    """The allowed difference: a relative one, 1 for one step of an 8-bit float, and an absolute
    one; none for equal bits. And its reason."""

    allowed: float
    reason: str
    absolute: float = 0.0

    def __str__(self) -> str:
        sizes = ["one step" if self.allowed == 1 else f"{self.allowed:g}"] if self.allowed else []
        sizes += [f"{self.absolute:.2g} absolute"] if self.absolute else []
        return f"within {' and '.join(sizes)}: {self.reason}" if sizes else "equal bits"


def tolerance(
    module: Module, dtype: DType | None, additions: float = 0.0, reads_sums: bool = False
) -> ExportTolerance:
    """The tolerance for an array of a launch: equal bits, unless an instruction is not exact.

    `additions` is the error that another order of atomic additions to the array may have;
    `reads_sums`: the launch reads such sums.
    """
    ops = [op for op in module.walk() if _is_float(op)]
    reasons: list[str] = []
    for applies, reason in _REASONS:
        names = sorted({op.row.mnemonic for op in ops if applies(op)})
        reasons += [f"{', '.join(names)} {reason}"] * bool(names)
    if reads_sums:
        reasons.append("reads sums of atomic additions in another order")
    allowed = 0.0 if dtype is None or not reasons else _ALLOWED.get(dtype.name, 0.0)
    if not allowed:
        reasons.clear()
    if additions:
        reasons.append("blocks add in another order")
    if not reasons:
        reasons.append("every instruction is exact, or the type has no tolerance")
    return ExportTolerance(allowed, "; ".join(reasons), additions)


def adds_floats(module: Module) -> bool:
    """True if an instruction adds floats to global memory atomically."""
    return any(_is_float(op) and combination(op, None) == "add" for op in module.walk())


def _is_float(op: Operation) -> bool:
    types = [getattr(v.type, "elem", v.type) for v in (*op.operands, *op.results)]
    return any(isinstance(t, Scalar) and t.dtype is not None and t.dtype.is_float for t in types)


def _approximates(op: Operation) -> bool:
    """Functions and divisions: the chip rounds them in its own way."""
    function = op.body.fn if isinstance(op.body, Lane) else None
    return getattr(function, "__module__", "") == mathlib.__name__ or function is lanes.div


def _sums(op: Operation) -> bool:
    """Sums of many elements, by rows, columns or the matrix unit."""
    folds = isinstance(op.body, Fold) and op.body.fn in (lanes.add, lanes.mul)
    return folds or op.row.cost == "product"


_REASONS = ((_approximates, "approximated by the chip"), (_sums, "in another order of additions"))
