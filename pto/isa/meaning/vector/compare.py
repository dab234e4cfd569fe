"""Comparisons into masks, and selections by mask or by index."""

from __future__ import annotations

from collections.abc import Callable

from pto.core.errors import fail
from pto.core.primitives import Lanes, select
from pto.isa.meaning.kinds import Lane, Vectors
from pto.isa.meaning.lanes import MODES, raw
from pto.isa.meaning.vector.ub import dtype_of
from pto.isa.row import types as t
from pto.isa.rules.rule import Case


def _test(case: Case) -> Callable[..., Lanes]:
    kind = dtype_of(case, "src0" if case.type("src0") is not None else "src")
    if kind.is_float and kind.numpy == kind.storage:  # types that NumPy does not compare by value
        raise fail("PTO-T140", f"'{case.row.name}' op: comparing {kind} is not defined by the ISA")
    return MODES[case.word("cmp_mode") or ""]


def by_index(case: Case, index: str) -> Callable[..., Lanes]:
    """source[index mod N]: lane counts are powers of two, so this is the low bits of the index."""
    kind = dtype_of(case, index)
    low = kind.storage.type(kind.lanes - 1)
    return lambda x, source, at: x.by_index(source, raw(at) & low)


def _vselrv2(case: Case) -> Callable[..., Lanes]:
    """The visible result is that of vselr (manual).

    The predicate of this form is not an operand.
    """
    index = case.type("src1")
    if isinstance(index, t.VReg) and index.elem.is_integer:
        return by_index(case, "src1")
    raise fail(
        "PTO-X140",
        "'pto.vselrv2' op: its selector is implicit in the lowering and not defined by the ISA",
        help="pto.vsel takes a mask, pto.vselr an index register",
    )


COMPARE = Lane(make=_test)
VSEL = Lane(lambda a, b, mask: select(mask, a, b), chooses=True, moves=True)
VSELR = Vectors(lambda case: by_index(case, "src1"))
VSELRV2 = Vectors(_vselrv2)
