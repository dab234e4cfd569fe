"""Whether a wait may precede its set in program order, which only concurrent pipes can run.

A flag is a credit: a set gives one, a wait takes one. For each flag of a block: the sum of its
credits (`net`), and the lowest partial sum (`low`, at most 0).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

from pto.ir.graph import Operation, Region
from pto.isa.row.flag import Flag, flag_of, key_of
from pto.isa.row.order import OfFlag, SetFlag
from pto.isa.row.traits import Control
from pto.isa.rules.rule import Case
from pto.target.facts import Profile

Keys = dict[Operation, tuple[Flag, int]]  # by operation
_ENDLESS = -(1 << 30)


def _zeros() -> dict[Flag, int]:
    return defaultdict(int)


@dataclass(slots=True)
class _Credits:
    net: dict[Flag, int] = field(default_factory=_zeros)
    low: dict[Flag, int] = field(default_factory=_zeros)

    def then(self, other: _Credits) -> None:
        for flag, low in other.low.items():
            self.low[flag] = min(self.low[flag], self.net[flag] + low)
        for flag, net in other.net.items():
            self.net[flag] += net

    def worse(self, other: _Credits) -> None:
        """Merge with an alternative: the lower of both."""
        for mine, theirs in ((self.net, other.net), (self.low, other.low)):
            for flag in {*mine, *theirs}:
                mine[flag] = min(mine[flag], theirs.get(flag, 0))


def may_wait_early(functions: Sequence[Operation], profile: Profile) -> bool:
    """False if every wait is known to find its flag set, on every path."""
    ops = [op for function in functions for op in function.walk()]
    flags = [op for op in ops if isinstance(op.order, OfFlag)]
    if any(op.operands for op in flags) or any(op.control is Control.CALL for op in ops):
        return True  # run-time ids and callees are not followed

    keys = {op: _key(op, profile) for op in flags}
    regions_credits = (_of_region(r, keys) for function in functions for r in function.regions)
    return any(low < 0 for credits in regions_credits for low in credits.low.values())


def _key(op: Operation, profile: Profile) -> tuple[Flag, int]:
    """The flag of an operation, and its credit."""
    flag = flag_of(Case(op, profile))
    step = 1 if isinstance(op.row.order, SetFlag) else -1
    return key_of(flag, profile.sync.flag_identity), step


def _of_region(region: Region, keys: Keys) -> _Credits:
    total = _Credits()
    for op in (op for block in region.blocks for op in block.ops):
        if op in keys:
            flag, step = keys[op]
            total.then(_Credits({flag: step}, {flag: min(step, 0)}))
        elif op.regions:
            total.then(_of_control(op, keys))
    return total


def _of_control(op: Operation, keys: Keys) -> _Credits:
    """The worst case of a branch, or of a loop with a negative sum in each iteration."""
    inner = [_of_region(region, keys) for region in op.regions]
    total = inner[0]
    if op.control is Control.IF:
        for region_credits in inner[1:] or [_Credits()]:
            total.worse(region_credits)
        return total
    for region_credits in inner[1:]:
        total.then(region_credits)
    if op.is_loop:
        for flag, net in total.net.items():
            total.low[flag] = _ENDLESS if net < 0 else total.low[flag]
            total.net[flag] = min(net, 0)  # the loop may run zero times
    return total
