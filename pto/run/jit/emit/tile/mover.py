"""The words of a move (`isa/meaning/tile/mover.py`) in compiled code.

They emit loops over rows and strips of lanes. If a destination shares bytes with another operand, a
copy of it is written, and copied back.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations
from typing import Any

from pto.core.compact import PackedOrder
from pto.core.dtypes import DType
from pto.core.errors import PtoError
from pto.core.global_layout import ND
from pto.isa.meaning.tile.regions import scalar_as
from pto.isa.row import types as t
from pto.run.jit.emit.memory.views import Views
from pto.run.jit.emit.tile import bits, bulk, masked, searches, sorts
from pto.run.jit.emit.tile.copies import Copier, Work, fill
from pto.run.jit.emit.tile.elements import TileRef, ViewRef
from pto.run.jit.emit.tile.merges import FARTHEST, merge_runs
from pto.run.jit.ir.kinds import Kind, certain, unsupported_if
from pto.run.jit.llvm import lanes
from pto.run.jit.llvm.index import Count, Index, Number, Place, Position
from pto.run.jit.llvm.lanes import Symbol, items_of, reduced
from pto.run.jit.llvm.text import element, mangled, vector
from pto.run.jit.llvm.value import TRUE, Condition
from pto.run.jit.runtime.clock import SCRATCH
from pto.run.jit.runtime.context import Word
from pto.run.jit.runtime.values import ScalarValue, ViewDesc


class Mover(Views):
    """Emits the function of one instruction."""

    # ---- what happens

    def each(
        self, rows: Count, cols: Count, cell: Callable[..., Any], *dsts: TileRef, by: int = 0
    ) -> None:
        for dst in dsts:
            self.within(dst, rows, cols)
        finish = self.apart(dsts)

        def store(i: Index, j: Index) -> None:
            found = cell(i, j)
            for dst, value in zip(dsts, found if len(dsts) > 1 else (found,), strict=True):
                items = items_of(self._lanes, self.symbol(value), dst.type.dtype).name
                self.store(dst, self.offset(dst, i, j), items, self.mask)

        self.walk(rows, cols, store, [dst.type.itemsize for dst in dsts], by)
        finish()

    def place(
        self,
        rows: Count,
        cols: Count,
        cell: Callable[..., Any],
        dst: TileRef | ViewRef,
        combine: Callable[..., Any] | None = None,
    ) -> None:
        finish = self.apart((dst,) if isinstance(dst, TileRef) else ())

        def store(i: Index, j: Index) -> None:
            found = cell(i, j)
            for k, value, where in found if isinstance(found, list) else [found]:
                at = self.offset(dst, *k) if isinstance(k, tuple) else self._index(k)
                new = self.symbol(value)
                if combine is not None:
                    new = combine(self.load(dst, at, where).view(new.dtype), new)
                items = items_of(self._lanes, new, dst.dtype).name
                self.store(dst, at, items, self._both(where))

        # what is combined may meet what was written just before: one element after the other
        self.walk(rows, cols, store, [dst.dtype.itemsize], by=0 if combine is None else 1)
        finish()

    def hold(
        self,
        rows: Count,
        cols: Count,
        cell: Callable[..., Any],
        dtype: DType,
        most: tuple[int, int],
    ) -> Callable[[Any, Any], Symbol]:
        """Values in the second half of scratch memory; copies of destinations are in the first."""
        (height, width), half = most, SCRATCH // 2
        unsupported_if(
            height * width * dtype.itemsize > half or sum(t.nbytes for t in self.tiles) > half,
            "more values than scratch memory holds",
        )
        sizes = [Number(self.x, n) for n in (1, 1, 1, height, width)]
        steps = [Number(self.x, n) for n in (0, 0, 0, width, 1)]
        place = ViewDesc(("",) * 12, dtype, ND)
        held = ViewRef(
            place, self.x.at(self.context(Word.SCRATCH_BUFFER), half), tuple(sizes), tuple(steps)
        )
        self.place(rows, cols, lambda i, j: ((i, j), cell(i, j), None), held)
        return lambda i, j: self.read(held, i, j)

    def shares(self, src: TileRef, dst: TileRef) -> bool:
        """Addresses are not known here: elements are moved onto themselves."""
        return False

    def copy(
        self,
        src: TileRef,
        at: Place,
        dst: TileRef,
        to: Place,
        size: Place,
        change: Callable[[Any, Any], Any] | None = None,
        *,
        turned: bool = False,
        by_column: bool = False,
        packed: tuple[PackedOrder | None, PackedOrder | None] = (None, None),
    ) -> None:
        (rows, cols), layout = map(self.number, size), src.layout
        self._holds(dst, to, (rows, cols), packed[1])
        self._holds(src, at, (cols, rows) if turned else (rows, cols), packed[0])
        if turned:
            layout = layout.swapped
        finish = self.apart((dst,))
        begins = self._begins(dst, to) & self._begins(src, at)
        work = None if change is None else Work(lambda values: change(values, None))

        def by_element() -> None:
            def cell(i: Index, j: Index) -> None:
                r, c = (j, i) if turned else (i, j)
                found = self.load(src, self._at(src, r + at[0], c + at[1], packed[0]), None)
                found = found if change is None else change(found, j)
                items = items_of(self._lanes, found, dst.type.dtype).name
                self.store(dst, self._at(dst, i + to[0], j + to[1], packed[1]), items, self.mask)

            self.walk(rows, cols, cell, [])

        def by_line() -> None:
            target, source = self._pointer(dst, to), self._pointer(src, at)
            copier = Copier(self.x, work)
            copier.copy(dst.layout, layout, rows.value, cols.value, target, source)

        some = (rows > 0) & (cols > 0)
        if by_column or packed != (None, None):
            self.when(some, by_element)
        else:
            self.when(some, lambda: self.when(begins, by_line, by_element))
        finish()

    def fill(self, dst: TileRef, item: Any, rows: Place, cols: Place) -> None:
        spot = lanes.Lanes(self.x, 1)
        if isinstance(item, Symbol):
            found = items_of(item.lanes, item, dst.type.dtype).name
        else:
            found = items_of(spot, spot.constant(item.dtype, item), dst.type.dtype).name
        type = vector(1, element(dst.type.dtype))
        value = self.x.new(f"extractelement {type} {found}, i64 0")
        (top, bottom), (left, right) = (map(self.number, each) for each in (rows, cols))
        down, across = (top.value, bottom.value), (left.value, right.value)
        fill(self.x, dst.layout, dst.pointer, value, down, across)

    def landing(self, tile: TileRef, sub: int | None) -> TileRef:
        unsupported_if(not self.alone or sub, "a tile of another agent")
        return tile

    def _at(self, tile: TileRef, r: Position, c: Position, packed: PackedOrder | None) -> Index:
        """The offset of an element; padding of packed ones takes no space."""
        if packed is None:
            return self.offset(tile, r, c)
        place = self._index(r), self._index(c)
        return self._index(packed.place(*place, *tile.valid, tile.type.itemsize, self.least))

    def holds(self, tile: TileRef, at: Place, size: Place) -> None:
        self._holds(tile, at, size, None)

    def _holds(self, tile: TileRef, at: Any, size: Any, packed: PackedOrder | None) -> None:
        """A window lies inside a tile, or inside what is valid of it."""
        limits = tile.valid if packed else tile.type.shape
        for first, count, limit in zip(at, size, limits, strict=True):
            start, size_along = self.number(first), self.number(count)
            some = (start >= 0) & (start <= limit) & (size_along <= limit)  # so no sum wraps
            self.require(some & (start + size_along <= limit), PtoError)

    def _begins(self, tile: TileRef, at: Place) -> Condition:
        """True if a box starts at this element."""
        return tile.layout.begins_boxes(self.x, *(self.number(n).value for n in at))

    def _pointer(self, tile: TileRef, at: Place) -> str:
        return tile.layout.at(self.x, tile.pointer, *(self.number(n).value for n in at))

    def merge_runs(self, src: TileRef, dst: TileRef, run: Any, groups: Any, kind: DType) -> None:
        finish = self.apart((dst,))
        unsupported_if(src.nbytes > FARTHEST, "more records than keys can count")
        room = self.x.at(self.context(Word.SCRATCH_BUFFER), -(-dst.nbytes // 64) * 64)
        lengths = self.number(run), self.number(groups)
        to, source = (bits.row_of(self, tile, 0) for tile in (dst, src))
        merge_runs(self, to, source, *lengths, kind, room)
        finish()

    def all(self, rows: Count, cols: Count, cell: Callable[..., Any]) -> Condition:
        x, wrong = self.x, dict[int, str]()  # words of violated lanes, by the number of lanes

        def look(i: Index, j: Index) -> None:
            count = self._lanes.count
            bits, word = vector(count, "i1"), f"i{count}"
            found = (~lanes.in_lanes(self._lanes, cell(i, j))).name
            if self.mask is not None:
                found = x.new(f"and {bits} {found}, {self.mask}")
            here = wrong[count] = wrong.get(count) or x.stack(word)
            some = x.new(f"bitcast {bits} {found} to {word}")
            x.store(word, x.new(f"or {word} {x.load(word, here)}, {some}"), here)

        begin = len(x.lines)
        self.walk(rows, cols, look, [])
        x.lines[begin:begin] = [f"  store i{n} 0, ptr {here}" for n, here in wrong.items()]
        guard = TRUE
        for n, here in wrong.items():
            guard = guard & x.compare("eq", x.load(f"i{n}", here), 0, f"i{n}")
        return guard

    def within(self, tile: TileRef, rows: Count, cols: Count) -> None:
        height, width = tile.type.shape
        self.require(self.number(rows) <= height, PtoError)
        self.require(self.number(cols) <= width, PtoError)

    def reach(self, tile: TileRef, nbytes: Any) -> None:
        """Bytes after a tile are left to the reference engine."""
        self.leave_unless(self.number(nbytes) <= tile.nbytes)

    groups = bulk.groups
    blocks = bulk.blocks
    at_most = bulk.at_most
    sort, pack = sorts.sort, bits.pack

    def compress(
        self, rows: Count, cols: Count, cell: Callable[..., Any], dst: TileRef, counts: TileRef
    ) -> None:
        x = self.x
        total = self.x.stack("i64")
        finish = self.apart((dst, counts))

        def some(i: Index, j: Index) -> None:
            value, kept = cell(i, j)
            items = items_of(self._lanes, value, dst.type.dtype).name
            item, count = element(dst.type.dtype), self._lanes.count
            type, on = vector(count, item), vector(count, "i1")
            mask, start = self._both(kept), x.load("i64", total, 8)
            begin = bits.row_of(self, dst, i.start.value)
            at = x.at(begin, x.mul(start, dst.type.itemsize))
            name = f"@llvm.masked.compressstore.v{count}{mangled(item)}"
            self.x.declare(f"declare void {name}({type}, ptr, {on})")
            x.do(f"call void {name}({type} {items}, ptr {at}, {on} {mask})")
            word = x.new(f"bitcast {on} {mask} to i{count}")
            self.x.declare(f"declare i{count} @llvm.ctpop.i{count}(i{count})")
            more = x.new(f"call i{count} @llvm.ctpop.i{count}(i{count} {word})")
            wide = more if count == 64 else x.new(f"zext i{count} {more} to i64")
            x.store("i64", x.add(start, wide), total, 8)

        def line(i: Number) -> None:
            x.store("i64", 0, total, 8)
            self.strips(i, self.number(cols), some, [dst.type.itemsize], upright=False)
            bits = 8 * counts.type.itemsize
            found = x.load(f"i{bits}", total, 8)  # the low bytes come first
            x.store(f"i{bits}", found, x.at(counts.pointer, x.mul(i.value, bits // 8)))

        x.loop(self.number(rows).value, 1, lambda i: line(Number(x, i)))
        finish()

    # ---- of one (i, j)

    bit = bits.bit

    def read(
        self, tile: TileRef | ViewRef, r: Position, c: Position, where: object = None
    ) -> Symbol:
        return self.load(tile, self.offset(tile, r, c), where)

    def count(self, tile: TileRef, r: Position, c: Position) -> Index:
        """Of one row the same in all lanes: a number."""
        at = self.offset(tile, r, c)
        x = self.x
        bits = 8 * tile.type.itemsize
        if at.step != 0:
            return self._index(self.load(tile, at, None))
        found = x.load(f"i{bits}", x.at(tile.pointer, x.mul(at.start.value, bits // 8)))
        sign = "sext" if tile.type.dtype.numpy.kind == "i" else "zext"
        wide = found if bits == 64 else x.new(f"{sign} i{bits} {found} to i64")
        return Index(self._lanes, Number(x, wide), 0)

    def item(self, tile: TileRef | ViewRef, k: Position, where: object = None) -> Symbol:
        return self.load(tile, self._index(k), where)

    def bytes_at(self, tile: TileRef, at: Symbol, dtype: DType, where: object = None) -> Symbol:
        return self.gather(tile, Index.of(at), dtype, self._both(where))

    def best(self, line: Any, count: Any, at: searches.At, greatest: bool) -> Any:
        write = searches.best_along if self.upright else searches.best
        return write(self, line, count, at, greatest)

    def use(self, spot: lanes.Lanes, mask: str | None) -> None:
        """From here on these lanes, and of them those of the mask."""
        self._lanes, self.mask = spot, mask

    def index(self, value: Any) -> Index:
        return self._index(value)

    def fold(self, count: Any, start: Sequence[Any], step: Callable[..., Sequence[Any]]) -> Any:
        first = [self.symbol(each) for each in start]

        def turn(k: str, state: Sequence[Symbol]) -> list[Symbol]:
            found = step(Index(self._lanes, Number(self.x, k), 0), *state)
            after = [self.symbol(each) for each in found]
            same = all(a.dtype == b.dtype for a, b in zip(first, after, strict=True))
            if not same:
                raise TypeError("a fold changes the type of its state")
            return after

        return tuple(reduced(self.x, self.number(count).value, first, turn))

    def lane(self, value: Any, type: t.Type | None, like: DType) -> Symbol:
        word = certain(value, ScalarValue)
        return self._lanes.spread(scalar_as(word.type, like).numpy, str(word.name))

    # ---- numbers

    def items(self, tile: TileRef) -> int:
        return tile.nbytes // tile.type.itemsize

    def word(self, number: Any, storage: Kind) -> Symbol:
        kind = f"i{8 * storage.itemsize}"
        value = self.number(number).value
        if kind != "i64":
            value = self.x.new(f"trunc i64 {value} to {kind}")
        return self._lanes.spread(storage, str(value))

    def element(self, tile: TileRef, k: Number) -> Number:
        size, x = tile.type.itemsize, self.x
        found = x.load(f"i{8 * size}", x.at(tile.pointer, x.mul(k.value, size)))
        return Number(x, found if size == 8 else x.new(f"zext i{8 * size} {found} to i64"))

    def set_element(self, tile: TileRef, k: Number, bits: Number) -> None:
        size = tile.type.itemsize
        x = self.x
        value = bits.value
        if size < 8:
            value = x.new(f"trunc i64 {value} to i{8 * size}")
        x.store(f"i{8 * size}", value, x.at(tile.pointer, x.mul(k.value, size)))

    def apart(self, dsts: Sequence[TileRef]) -> Callable[[], None]:
        """Redirect destinations that share bytes with a source to copies. Destinations that share
        bytes with each other are left to the reference engine, which writes them in the order of
        the operands."""
        room = 0
        undo: list[Callable[[], None]] = []
        for a, b in combinations(dsts, 2):
            if a.place.memory == b.place.memory:
                self.leave_unless(self._separate(a, b))
        for dst in dsts:
            others = [o for o in self.tiles if o is not dst and o.place.memory == dst.place.memory]
            guard = TRUE
            for other in others:
                guard = guard & self._separate(dst, other)
            if not guard.is_true:
                undo.append(self._copied(dst, guard, room))
                room += -(-dst.nbytes // 64) * 64

        def finish() -> None:
            for each in undo:
                each()

        return finish

    def _separate(self, a: TileRef, b: TileRef) -> Condition:
        x = self.x
        first, second = (x.new(f"ptrtoint ptr {each.pointer} to i64") for each in (a, b))
        return x.disjoint(first, a.nbytes, second, b.nbytes)

    def _copied(self, dst: TileRef, guard: Condition, offset: int) -> Callable[[], None]:
        x, own = self.x, dst.pointer
        copy, nbytes = x.at(self.context(Word.SCRATCH_BUFFER), offset), dst.nbytes
        shared = ~guard
        x.when(shared, lambda: masked.copy_bytes(x, copy, own, nbytes))
        target = x.new(f"select i1 {guard}, ptr {own}, ptr {copy}")
        dst.pointer = target

        def back() -> None:
            dst.pointer = own
            x.when(shared, lambda: masked.copy_bytes(x, own, copy, nbytes))

        return back
