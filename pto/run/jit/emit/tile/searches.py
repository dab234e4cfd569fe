"""The first extreme of a line: lanes are lines, or parts of a contiguous line."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from pto.core.primitives import select
from pto.run.jit.emit.tile import masked
from pto.run.jit.emit.tile.reduce import halved_down
from pto.run.jit.ir import kinds
from pto.run.jit.ir.kinds import Kind
from pto.run.jit.llvm import lanes, shuffles
from pto.run.jit.llvm.index import Count, Index, Number
from pto.run.jit.llvm.lanes import Symbol
from pto.run.jit.llvm.text import Text, scalar_type
from pto.run.jit.llvm.value import Val, prefix_of

if TYPE_CHECKING:
    from pto.run.jit.emit.tile.mover import Mover

At = Callable[[Any, Any], Symbol]  # (line, number in it) -> element
_Best = tuple[Symbol, ...]  # what an element is compared by, its number, the element
_LINES: Final = 4  # that are searched at once: a comparison waits for the one before it


class _Search:
    """Comparison of elements of one type: f16 and bf16 as integers; indices are as wide as keys."""

    def __init__(self, x: Text, kind: Kind, count: Number, greatest: bool) -> None:
        self.x = x
        self.kind = kind
        self.greatest = greatest
        need = next(n for n in (1, 2, 4) if n == 4 or (count.known or 1 << 31) <= 1 << (8 * n - 1))
        size = max(need, kind.itemsize)
        self.number = np.dtype(f"i{size}")
        self.key = kind if size == kind.itemsize else np.dtype(f"{kind.kind}{size}")
        if kind in kinds.SMALL:
            self.key = self.number

    def begin(self, value: Symbol) -> _Best:
        """The initial state: nothing is better than NaN."""
        return self._key(value, self.greatest), value.lanes.constant(self.number, 0), value

    def _key(self, value: Symbol, nan_is_greatest: bool) -> Symbol:
        """-0 and +0 are equal."""
        if self.kind not in kinds.SMALL:
            return value.astype(self.key)
        bits = value.view(np.int16)
        size, sign = bits & 0x7FFF, bits >> 15
        infinite = int(np.array(np.inf, self.kind).view(np.int16))
        nan = 0x7FFF if nan_is_greatest else -0x7FFF
        return select(size > infinite, size.like(nan), (size ^ sign) - sign).astype(self.key)  # type: ignore[return-value]

    def better(self, a: Symbol, b: Symbol) -> Symbol:
        return a > b if self.greatest else a < b

    def against(
        self, held: Sequence[Symbol], value: Symbol, here: Symbol, only: Symbol | None = None
    ) -> list[Symbol]:
        key = self._key(value, not self.greatest)
        better = self.better(key, held[0])
        better = better if only is None else better & only
        return [_chosen(better, a, b) for a, b in zip((key, here, value), held, strict=True)]

    def place(self, spot: lanes.Lanes, k: Val) -> Symbol:
        """A number in every lane."""
        bits = 8 * self.number.itemsize
        if isinstance(k, int) or bits == 64:
            return spot.spread(self.number, k)
        return spot.spread(self.number, self.x.new(f"trunc i64 {k} to i{bits}"))

    def joined(self, found: list[_Best]) -> _Best:
        """One lane for each line; of equal elements the first."""

        def both(a: _Best, b: _Best) -> _Best:
            better = self.better(b[0], a[0]) | ((b[0] == a[0]) & (b[1] < a[1]))
            return tuple(_chosen(better, n, o) for n, o in zip(b, a, strict=True))

        return halved_down(found, both)


def _chosen(better: Symbol, a: Symbol, b: Symbol) -> Symbol:
    return select(better, a, b)  # type: ignore[return-value]


def best(m: Mover, line: Index, count: Count, at: At, greatest: bool) -> tuple[Symbol, Symbol]:
    """A lane for each line."""
    first = at(line, Number(m.x, 0))
    search = _Search(m.x, first.dtype, m.number(count), greatest)

    def step(k: Index, *held: Symbol) -> list[Symbol]:
        return search.against(held, at(line, k), search.place(line.lanes, k.start.value))

    _, number, value = m.fold(count, search.begin(first), step)
    return value, number


def best_along(m: Mover, line: Index, count: Any, at: At, greatest: bool) -> tuple[Symbol, Symbol]:
    """Search several lines in turn, with lanes as partial results of one line. Each starts with the
    first element; of equal results the lower index wins."""
    x = m.x
    spot = line.lanes
    mask = m.mask
    last = x.add(
        line.start.value,
        x.sub(spot.count if mask is None else prefix_of(mask), 1),
    )
    m.use(lanes.Lanes(x, 1), None)
    kind = at(line.start, Number(x, 0)).dtype
    search = _Search(x, kind, m.number(count), greatest)
    found, many = list[_Best](), min(_LINES, spot.count)
    for n in range(0, spot.count, many):
        rows = [Number(x, x.smaller(x.add(line.start.value, n + k), last)) for k in range(many)]
        found.append(_lines(m, search, rows, m.number(count).value, at))
    m.use(spot, mask)

    def side_by_side(k: int) -> Symbol:
        item, parts = scalar_type(found[0][k].dtype), [str(each[k].name) for each in found]
        return spot.symbol(found[0][k].dtype, shuffles.joined(x, item, many, parts))

    return side_by_side(2), side_by_side(1)


def _lines(m: Mover, search: _Search, rows: list[Number], count: Val, at: At) -> _Best:
    x, spot = m.x, lanes.Lanes(m.x, 64 // search.key.itemsize)
    m.use(spot, None)
    lane = spot.constant(search.number, np.arange(spot.count))

    def step(j: Val, held: Sequence[Symbol], mask: str | None = None) -> list[Symbol]:
        m.use(spot, mask)
        along, here = Index(spot, Number(x, j), 1, spot.count), search.place(spot, j) + lane
        only, after = None if mask is None else spot.symbol(kinds.BOOL, mask), list[Symbol]()
        for n, row in enumerate(rows):
            after += search.against(held[3 * n : 3 * n + 3], at(row, along), here, only)
        return after

    firsts = [search.begin(at(row, Number(x, 0))) for row in rows]
    begin = [state for first in firsts for state in first]
    held = masked.folded_strips(x, spot.count, count, begin, step)
    return search.joined([tuple(held[n : n + 3]) for n in range(0, len(held), 3)])
