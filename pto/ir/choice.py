"""Operations that run one of their regions: which value of the operand selects which region."""

from __future__ import annotations

from pto.ir.graph import Operation
from pto.isa.row.attributes import integers


def ways(op: Operation) -> dict[int, int]:
    """Value of the first operand -> index of the region it selects; other values select region 0.

    scf.if: 0 selects region 1. scf.index_switch: region 0 is the default, the cases follow.
    """
    if "cases" not in op.attrs:
        return {0: 1}
    return {number: n for n, number in enumerate(integers(op.attrs, "cases"), 1)}
