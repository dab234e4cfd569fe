"""Operations that run one of their regions: which number chooses which."""

from __future__ import annotations

from pto.ir.graph import Operation
from pto.isa.row.attributes import Ints


def ways(op: Operation) -> dict[int, int]:
    """The region that a number of the first operand chooses; all others choose region 0.

    Of scf.if region 1 is for 0; of scf.index_switch region 0 is the default, then come the cases.
    """
    cases = op.attrs.get("cases")
    if not isinstance(cases, Ints):
        return {0: 1}
    return {number: n for n, number in enumerate(cases.values, 1)}
