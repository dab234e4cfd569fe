"""Moves of elements at pointers (`isa/meaning/vector/sort.py`) in compiled code.

Overlapping operands, and lists with NaN or that do not descend, are left to the reference engine.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pto.core.dtypes import DType
from pto.core.errors import PtoError
from pto.core.tile import Role, TileType
from pto.isa.meaning.tile.merge import RECORD
from pto.isa.meaning.vector.sort import Merge, PointerMoves
from pto.run.jit.emit.handle.view import Guarded, emits_in
from pto.run.jit.emit.operation import WORDS, OpContext
from pto.run.jit.emit.tile.elements import TileRef
from pto.run.jit.emit.tile.mover import Mover
from pto.run.jit.emit.tile.tile_layouts import tile_layout
from pto.run.jit.llvm.index import Number
from pto.run.jit.llvm.text import I64, element
from pto.run.jit.llvm.value import FALSE, Condition, Val
from pto.run.jit.runtime.values import Lowered, PointerDesc, TileDesc

_MANY = 1 << 30  # rows at a pointer, at most
_UNLESS = "lists do not descend or hold NaN"


class Words(Guarded, Mover):
    """Emits one instruction in place."""

    def __init__(self, s: OpContext) -> None:
        self._rows_seen = list[TileRef]()
        Guarded.__init__(self, s)
        Mover.__init__(self, s.x, self._rows_seen, s.e.word, False)

    def apart(self, dsts: Sequence[TileRef]) -> Callable[[], None]:
        for dst in dsts:
            for other in self.tiles:
                if other is not dst:
                    self.leave_unless(self._separate(dst, other))
        return lambda: None

    def _fits(self, pointer: PointerDesc, nbytes: Val, align: int) -> Condition:
        inside = self.s.e.inside(pointer.memory, pointer.address, nbytes)
        return inside & (Number(self.x, pointer.address) % align == 0)

    def _rows(self, pointer: PointerDesc, kind: DType, rows: Number, cols: int) -> TileRef:
        place = TileDesc((0, rows.value, cols), TileType.of(Role.VEC, kind, _MANY, cols))
        start, valid = self.s.pointer(pointer.memory, pointer.address), (rows, self.number(cols))
        return TileRef(
            place,
            start,
            valid,
            tile_layout(place),
            (rows * cols * kind.itemsize).value,
        )

    def rows_at(
        self, pointer: PointerDesc, kind: DType, rows: Any, cols: int, align: int
    ) -> TileRef:
        count = self.number(rows)
        fits = self._fits(pointer, (count * cols * kind.itemsize).value, align)
        self.require((count == 0) | fits, PtoError)
        self._rows_seen.append(self._rows(pointer, kind, count, cols))
        return self._rows_seen[-1]

    def merge(
        self, lists: Sequence[TileRef], lengths: Sequence[Number], to: PointerDesc, how: Merge
    ) -> list[Number]:
        x, total = self.x, sum(lengths[1:], lengths[0])
        repeats, whole = self.number(how.repeats), total * self.number(how.repeats)
        out = self._rows(to, lists[0].dtype, whole, 1)
        self.leave_unless((whole == 0) | self._fits(to, (whole * RECORD).value, how.align))
        self.apart([out])
        for each, length in zip(lists, lengths, strict=True):

            def score(i: Any, j: Any, each: TileRef = each) -> Any:
                return how.score(self.read(each, i * total + j, 0))  # type: ignore[arg-type]

            some = self.least(length, 1)
            self.leave_unless(
                self.all(repeats, some, lambda i, j: score(i, j) == score(i, j)), _UNLESS
            )
            pairs = self.all(repeats, length - some, lambda i, j: score(i, j) >= score(i, j + 1))
            self.leave_unless(pairs, _UNLESS)

        def once(k: str, _: list[str]) -> Sequence[Val]:
            first = (Number(x, k) * total * RECORD).value
            starts = [x.at(each.pointer, first) for each in (*lists, out)]
            return self._merged(starts, lengths, total, how)

        taken = x.fold(repeats.value, [I64] * len(lists), [0] * len(lists), once)
        return [Number(x, n) for n in taken]

    def _merged(
        self, starts: Sequence[str], lengths: Sequence[Number], total: Number, how: Merge
    ) -> list[str]:
        """Merge the lists of one repetition; returns how many records of each were taken."""
        x = self.x
        (*lists, out) = starts
        item = element(how.kind)
        ends = x.compare("ne", how.stops.value, 0)

        def test(state: list[str]) -> Condition:
            return x.compare("slt", state[0], total.value) & ~x.bit(state[1])

        def step(state: list[str]) -> list[Val]:
            """The greatest head is next, the first of equal ones. Of an exhausted list some record
            of the result is read, and not taken."""
            at, _, *heads = state
            found = FALSE
            best = "zeroinitializer"
            place = "null"
            owners = list[Condition]()
            for head, start, length in zip(heads, lists, lengths, strict=True):
                some = x.compare("slt", head, length.value)
                base = x.new(f"select i1 {some}, ptr {start}, ptr {out}")
                here = x.at(base, x.mul(head, RECORD))
                score = x.load(item, here)
                above = x.bit(x.new(f"fcmp ogt {item} {score}, {best}"))
                take = some & (~found | above)
                best = x.new(f"select i1 {take}, {item} {score}, {item} {best}")
                place = x.new(f"select i1 {take}, ptr {here}, ptr {place}")
                owners = [*(owner & ~take for owner in owners), take]
                found = found | some
            x.store(I64, x.load(I64, place), x.at(out, x.mul(at, RECORD)))
            after = [
                x.add(head, x.new(f"zext i1 {owner} to i64"))
                for head, owner in zip(heads, owners, strict=True)
            ]
            over = FALSE
            for owner, head, length in zip(owners, after, lengths, strict=True):
                ended = owner & x.compare("eq", head, length.value)
                over = over | (ends & ended)
            return [x.add(at, 1), str(over), *after]

        types = [I64, "i1", *[I64] * len(lists)]
        return x.while_loop(types, [0, "false", *[0] * len(lists)], test, step)[2:]

    def lowered(self, found: Any, type: Any) -> Lowered:
        return self.scalar(found, type)


WORDS[PointerMoves] = emits_in(Words)
