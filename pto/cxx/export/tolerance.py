"""How far a board may differ from a run here, and why: from the rows of the instructions."""

from __future__ import annotations

from dataclasses import dataclass

from pto.core.dtypes import DType
from pto.ir.graph import Module, Operation
from pto.isa.meaning import lanes, mathlib
from pto.isa.meaning.kinds import Fold, Lane
from pto.isa.row.types import Scalar

# Relative errors that the system tests of pto-isa allow. A step of an 8-bit float is larger: a
# result near the middle of two values may become either. Other types are compared as bytes.
_ALLOWED = {"f32": 1e-3, "f16": 5e-3, "bf16": 5e-3, "f8e4m3": 1.0, "f8e5m2": 1.0}


@dataclass(frozen=True, slots=True)
class ExportTolerance:
    """A relative error, 1 for one step of an 8-bit float, 0 for equal bits; and its reason."""

    allowed: float
    reason: str

    def __str__(self) -> str:
        if not self.allowed:
            return "equal bits"
        return f"within {'one step' if self.allowed == 1 else f'{self.allowed:g}'}: {self.reason}"


def tolerance(module: Module, dtype: DType | None) -> ExportTolerance:
    """The tolerance for an array of a launch: equal bits, unless an instruction is not exact."""
    ops = [op for op in module.walk() if _is_float(op)]
    reasons: list[str] = []
    for applies, reason in _REASONS:
        names = sorted({op.row.mnemonic for op in ops if applies(op)})
        reasons += [f"{', '.join(names)} {reason}"] * bool(names)
    allowed = 0.0 if dtype is None else _ALLOWED.get(dtype.name, 0.0)
    if not reasons or not allowed:
        return ExportTolerance(0.0, "every instruction is exact, or the type has no tolerance")
    return ExportTolerance(allowed, "; ".join(reasons))


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
