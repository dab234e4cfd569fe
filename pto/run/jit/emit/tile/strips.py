"""A fused group as one function: blocks of a few rows, and for each of them pass after pass. Values
that a pass computes and uses stay in registers."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from itertools import combinations

from pto.isa.meaning.lanes import PARTIALS
from pto.run.jit.emit.frame import Parameters
from pto.run.jit.emit.tile import masked
from pto.run.jit.emit.tile.reduce import Folder, joined, stored
from pto.run.jit.ir import kinds, strided
from pto.run.jit.ir.expr import Expr
from pto.run.jit.ir.kinds import Kind, certain, symbol_type, unsupported_if
from pto.run.jit.ir.nest import BOX, FAR, Nest, Source, Step
from pto.run.jit.ir.passes import Rematerialiser, is_column, is_view, passes, spilled_values
from pto.run.jit.ir.strided import Access, Strided
from pto.run.jit.llvm import lanes
from pto.run.jit.llvm.lowering import cost, lower
from pto.run.jit.llvm.text import Text, element, scalar_type, vector
from pto.run.jit.llvm.value import FALSE, Condition, Val, all_of
from pto.run.jit.runtime.clock import SCRATCH
from pto.run.jit.runtime.values import ScalarValue

_CACHED = 24 << 10  # bytes of a block of rows that stays in the cache
_AT_ONCE = 128  # elements of one that does not
_GAP = 16  # elements
_LONG = 60  # lines of text of a pass: with more, fewer lanes at a time
_LINE = 64  # bytes of a line of the cache


class StepParameters(Parameters):
    """The arguments of the function of a group.

    Inside the function a pointer identifies one access (`Access.place`). Two accesses at one
    address, as a matrix and its first row, are two parameters. The operands of a step alone are as
    many parameters, so that instructions of one kind share a function.
    """

    def __init__(self, *given: tuple[str, Val], alone: bool = False) -> None:
        super().__init__(*given)
        self._alone = alone
        self._places: dict[object, str] = {}

    def ref(self, ref: Access) -> Access:
        if ref.private:  # all its accesses are one (`Nest.is_plain`)
            name = self._places.setdefault(ref.private, f"%own{len(self._places)}")
            rows, cols = (strided.axis(ref.shape != "row"), strided.axis(ref.shape != "column"))
            return Access(Strided(ref.dtype, rows, cols), name, private=1)
        place = len(self.given) if self._alone else ref.identity
        if place not in self._places:
            self._places[place] = self.add("ptr", ref.pointer)
        layout, size = ref.layout.renamed(self.name), ref.array_size and self.name(ref.array_size)
        return Access(layout, self._places[place], min(0, ref.memory), array_size=size)

    def source(self, source: Source) -> Source:
        value, kind = source
        if isinstance(value, Access):
            return self.ref(value), kind
        return ScalarValue((self.name(value.name, value.types[0]),), value.type), kind

    def step(self, step: Step) -> Step:
        sources = tuple(map(self.source, step.sources))
        return Step(self.ref(step.dst), sources, *step[2:])

    def nest(self, nest: Nest) -> Nest:
        """The nest with the names that it has inside the function; nothing is left to decide."""
        rows, cols = map(self.name, nest.size)
        return Nest(rows, cols, tuple(map(self.step, nest.steps)))


class Strips:
    """Emits the function."""

    def __init__(self, x: Text, nest: Nest) -> None:
        self.x = x
        self.rows = nest.rows
        self.cols = nest.cols
        self.steps = nest.steps
        again = Rematerialiser()
        self.passes = [again.of(each) for each in passes(nest.steps)]
        self.spilled = spilled_values(self.passes)

    def write(self) -> None:
        if 0 in (self.rows, self.cols):
            return
        x, size = self.x, self._block()
        self._place_spilled(size)
        self.nontemporal = self._is_nontemporal()
        if len(self.passes) == 1 or (isinstance(self.rows, int) and self.rows <= size):
            self._rows(0, self.rows)
        else:
            x.loop(self.rows, size, lambda i: self._rows(i, self._count(i, size)))
        x.when(self.nontemporal, lambda: x.do("fence seq_cst"))  # signals come after these stores

    def _is_nontemporal(self) -> Condition:
        """True if stores to global memory are whole cache lines of large arrays."""
        arrays = {step.dst.pointer: step.dst for step in self.steps if step.dst.array_size}
        if not arrays or not isinstance(self.cols, int):
            return FALSE
        if any(self.cols * ref.dtype.itemsize % _LINE for ref in arrays.values()):
            return FALSE
        return all_of(*map(self._is_in_lines, arrays.values()))

    def _is_in_lines(self, ref: Access) -> Condition:
        """True if the rows of a large array begin at lines of the cache."""
        x = self.x
        start = x.new(f"ptrtoint ptr {ref.pointer} to i64")
        pitch = 0 if self.rows == 1 else x.mul(ref.row_stride, ref.dtype.itemsize)
        low = x.new(f"and i64 {x.new(f'or i64 {start}, {pitch}')}, {_LINE - 1}")
        return x.compare("eq", low, 0) & x.compare("uge", ref.array_size, FAR)

    def _block(self) -> int:
        """The rows of a block, which all passes process before the next block: as many as fit into
        the cache. If passes read global memory again, few rows, so that reads are sequential and
        blocks overlap in the processor."""
        if not isinstance(self.cols, int):
            return 8
        if self._streams:
            few = max(1, _AT_ONCE // self.cols)
            return min(64, few & -4 or few & -2 or few)
        refs = [ref for step in self.steps for ref in step.accesses]
        items = {
            ref.pointer: ref.dtype.itemsize
            for ref in refs
            if ref.shape == "matrix" and (not ref.private or ref.pointer in self.spilled)
        }
        nbytes = self.cols * sum(items.values())  # of a row; 0 if all tiles stay in registers
        return min(64, max(4, _CACHED // max(1, nbytes) & -4))

    @property
    def _streams(self) -> bool:
        """True if several passes read the same elements of global memory."""
        seen = [
            {ref.pointer for step in each for ref in step.reads if is_view(ref)}
            for each in self.passes
        ]
        return any(a & b for a, b in combinations(seen, 2))

    def _place_spilled(self, size: int) -> None:
        """Allocate scratch memory for rows that one pass leaves to another."""
        offset, size = 0, min(size, self.rows) if isinstance(self.rows, int) else size
        for name, ref in self.spilled.items():
            self.x.do(f"{name} = getelementptr i8, ptr %p0, i64 {offset}")
            nbytes = size * ref.dtype.itemsize * (self.pitch if ref.shape == "matrix" else 1)
            offset += -(-nbytes // 64) * 64
        unsupported_if(offset > SCRATCH, "more than there is room for")

    @property
    def pitch(self) -> int:
        """The row pitch in scratch memory, padded to avoid conflicts of cache sets."""
        return int(self.cols) + _GAP

    def _count(self, i: Val, size: int) -> Val:
        if size == 1 or (isinstance(self.rows, int) and self.rows % size == 0):
            return size
        return self.x.smaller(self.x.sub(self.rows, i), size)

    def _rows(self, first: Val, count: Val) -> None:
        for n, steps in enumerate(self.passes):
            wanted = set(spilled_values(self.passes[n:], steps))
            if is_column(steps[0]):  # values that follow each other: a row of as many columns
                lines = [step.mapped(_as_line) for step in steps]
                _Pass(self, lines, wanted, count, 1 if count == 1 else BOX).write(first, 1)
            else:
                _Pass(self, steps, wanted, self.cols).write(first, count)


Values = dict[str, lanes.Symbol]  # by the pointer of a ref, which identifies one access


def _applied(spot: lanes.Lanes, step: Step, given: list[lanes.Symbol]) -> lanes.Symbol:
    found = lower(certain(step.expr, Expr), spot, given).name
    return spot.symbol(symbol_type(step.dst.dtype), found)


def _as_line(ref: Access) -> Access:
    return ref.with_layout(strided.row_major(ref.dtype, 1))


def _folder(x: Text, step: Step) -> Folder:
    body, kind = certain(step.fold, tuple)
    return Folder(x, body, step.reads[0].layout, step.dst.layout, kind)


class _Pass:
    """Steps on all elements of some rows, side by side; `width` lanes at a time (0: as many as suit
    the steps)."""

    def __init__(
        self,
        strips: Strips,
        steps: Sequence[Step],
        wanted: Collection[str],
        cols: Val,
        width: int = 0,
    ) -> None:
        self.x = strips.x
        self.steps = steps
        self.cols = cols
        self.strips, self.wanted = strips, wanted
        self.folds = [(step, _folder(self.x, step)) for step in steps if step.fold is not None]
        self.alone = len(strips.steps) == 1
        self.count, self.many = (width, 1) if width else self._size()
        self.spot = lanes.Lanes(self.x, self.count)

    def _size(self) -> tuple[int, int]:
        """The number of lanes, and of rows at a time. A step alone reads two rows before it writes
        either: a store slows down loads of the same place in another page."""
        if self.folds:
            return self._fold_size()
        weight, widest = self._weight()
        boxed = any(ref.box_stride for step in self.steps for ref in step.accesses)
        return BOX if boxed or weight > _LONG else 256 // widest, 2 if self.alone else 1

    def _fold_size(self) -> tuple[int, int]:
        """The same of folds: rows at a time share one reduction of totals."""
        folder = self.folds[0][1]
        if not self.alone:
            return BOX, 4
        size = folder.held.itemsize
        count = 64 // size if folder.extreme else PARTIALS
        return count, min(16, count, 1024 // (count * size))  # one lane for each in the end

    def _weight(self) -> tuple[int, int]:
        """The number of instructions for some lanes, and bytes of the widest elements in it."""
        refs = [ref for step in self.steps for ref in step.accesses]
        work = [cost([step.expr], BOX) for step in self.steps if step.expr is not None]
        used = max((each.widest for each in work), default=0)
        widest = max(1, used, *(ref.dtype.itemsize for ref in refs))
        return sum(each.lines for each in work) * (2 if widest == 8 else 1), widest

    def is_kept(self, ref: Access) -> bool:
        """True if the value is stored in memory."""
        return not ref.private or ref.pointer in self.wanted

    def scalars(self) -> dict[Val, lanes.Symbol]:
        return {
            value.name: self.spot.spread(kind, value.name)
            for step in self.steps
            for value, kind in step.sources
            if isinstance(value, ScalarValue)
        }

    def write(self, first: Val, count: Val) -> None:
        x, many = self.x, self.many
        self.first = first
        while isinstance(count, int) and count < many:
            many //= 2
        full = (
            count // many * many if isinstance(count, int) else x.new(f"and i64 {count}, -{many}")
        )
        end, last = x.add(first, full), x.add(first, count)
        if full == many:
            self._lines(first, many)
        else:
            x.loop(end, many, lambda i: self._lines(i, many), start=first)
        if full != count:
            x.loop(last, 1, lambda i: self._lines(i, 1), start=end)

    def _lines(self, i: Val, many: int) -> None:
        """Process some rows: those of a single step side by side, so that no sum waits for the
        previous one; otherwise one after another, since they would be as many streams of memory."""
        scalars, rows = self.scalars(), [self.x.add(i, k) for k in range(many)]

        def lines(nontemporal: bool) -> list[list[lanes.Symbol]]:
            apart = [rows] if self.alone else [[row] for row in rows]
            return [each for some in apart for each in self._line(some, scalars, nontemporal)]

        if not self.folds:
            stores = any(step.dst.array_size for step in self.steps)
            nontemporal = self.strips.nontemporal if stores else FALSE
            self.x.when(nontemporal, lambda: lines(True), lambda: lines(False))
            return
        totals = lines(False)
        for n, (step, folder) in enumerate(self.folds):
            at = self.x.sub(i, self.first) if step.dst.private else i
            if self.is_kept(step.dst):
                found = joined(folder, [each[n] for each in totals])
                stored(folder, found, step.dst.pointer, at, many)

    def _line(
        self, numbers: Sequence[Val], scalars: dict[Val, lanes.Symbol], nontemporal: bool
    ) -> list[list[lanes.Symbol]]:
        """All columns of some rows, side by side; returns the totals of each row."""
        rows, many = [_Row(self, i, nontemporal) for i in numbers], len(self.folds)

        def strip(
            j: Val, accs: Sequence[lanes.Symbol], mask: str | None = None
        ) -> list[lanes.Symbol]:
            for row in rows:
                row.begin(j, mask, scalars)
                for step in self.steps:
                    row.step(step)
            for row in rows:
                row.end()
            items = ((f, row.folded[id(step)]) for row in rows for step, f in self.folds)
            return [f.both(acc, taken(f)) for (f, taken), acc in zip(items, accs, strict=True)]

        begin = [f.first(self.spot) for _ in rows for _, f in self.folds]
        found = masked.folded_strips(self.x, self.count, self.cols, begin, strip)
        return [list(found[n * many : (n + 1) * many]) for n in range(len(rows))]


class _Row:
    """One row of a pass, strip after strip."""

    def __init__(self, owner: _Pass, i: Val, nontemporal: bool) -> None:
        self.o = owner
        self.x = owner.x
        self._nontemporal = nontemporal
        self._starts: dict[str, str] = {}
        self._ones: dict[tuple[str, Kind], lanes.Symbol] = {}
        for step in owner.steps:
            for ref in step.accesses:
                if ref.private and ref.pointer not in owner.strips.spilled:
                    continue
                if ref.shape != "column" and ref.pointer not in self._starts:
                    self._starts[ref.pointer] = self._start(ref, i)
            for ref, kind in step.sources:
                if isinstance(ref, Access) and ref.shape == "column":
                    one = self.x.load(scalar_type(kind), self._start(ref, i))
                    self._ones[ref.pointer, kind] = owner.spot.spread(kind, one)

    def _start(self, ref: Access, i: Val) -> str:
        """The address of the row, or of its value."""
        x, step = self.x, ref.row_stride
        if ref.private:
            i = x.sub(i, self.o.first)
            step = 1 if ref.shape == "column" else self.o.strips.pitch
        return x.at(ref.pointer, x.mul(i, x.mul(step, ref.dtype.itemsize)))

    def begin(self, j: Val, mask: str | None, scalars: dict[Val, lanes.Symbol]) -> None:
        self.j = j
        self.mask = mask
        self.scalars = scalars
        self.values: Values = {}
        self.made: dict[str, Access] = {}
        self.folded: dict[int, Callable[[Folder], lanes.Symbol]] = {}

    def step(self, step: Step) -> None:
        given = [self._value(value, kind) for value, kind in step.sources]
        if step.fold is not None:
            self._fold(step, given[0])
            return
        self.values[step.dst.pointer] = _applied(self.o.spot, step, given)
        self.made.pop(step.dst.pointer, None)
        self.made[step.dst.pointer] = step.dst

    def _value(self, value: Access | ScalarValue, kind: Kind) -> lanes.Symbol:
        if isinstance(value, ScalarValue):
            return self.scalars[value.name]
        if value.shape == "column":
            return self._ones[value.pointer, kind]
        found = self.values.get(value.pointer)
        if found is None:
            item = masked.load_lanes(self.x, value.dtype, self.o.count, self._at(value), self.mask)
            found = self.o.spot.symbol(symbol_type(value.dtype), item)
            self.values[value.pointer] = found
        return found.view(kind)

    def _fold(self, step: Step, item: lanes.Symbol) -> None:
        def taken(folder: Folder) -> lanes.Symbol:
            found = folder.taken(item)
            if self.mask is None:
                return found
            bits = self.o.spot.symbol(kinds.BOOL, self.mask)
            return lanes.where(self.o.spot, bits, found, folder.first(self.o.spot))

        self.folded[id(step)] = taken

    def _at(self, ref: Access) -> str:
        step = ref.dtype.itemsize * (ref.box_stride // BOX or 1)
        return self.x.at(self._starts[ref.pointer], self.x.mul(self.j, step))

    def end(self) -> None:
        for name, ref in self.made.items():
            if not self.o.is_kept(ref):
                continue
            item = self.values[name].name
            count, at = self.o.count, self._at(ref)
            if self._nontemporal and ref.array_size and self.mask is None:
                type = vector(count, element(ref.dtype))
                align = min(_LINE, count * ref.dtype.itemsize)
                self.x.store(type, item, at, align, ", !nontemporal !3")
                continue
            masked.store_lanes(self.x, ref.dtype, count, item, at, self.mask)
