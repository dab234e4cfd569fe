"""Random vector programs on a few tiles, built operation by operation.

Operands come from a small pool, so that one tile is drawn twice, whole and expanded, in place, and
beside windows and other names of its bytes. An operation that its row refuses is drawn again. The
features of a program are noted while it is built: `tests/test_random_programs.py` counts them.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from pto.core.dtypes import dtype
from pto.ir.builder import INDEX, new_block
from pto.ir.graph import Value
from pto.isa.meaning.kinds import Lane
from pto.isa.row.attributes import Array, Attribute, Enum, Int
from pto.isa.row.enums import kinds_of
from pto.isa.row.instr import Attr, Instr, Operand
from pto.isa.table import rows
from tests.random_writer import PROFILES, Entry, Program, Writer, row_of, scalar_of, typed

TYPES = ("f32", "f16", "bf16", "i32", "i16", "i8", "ui8", "ui16", "ui32", "i64", "f8E4M3FN")
_WEIGHTS = (12, 5, 4, 5, 3, 2, 2, 1, 1, 1, 1)
_KINDS = ("tile", "scalar", "tile or scalar", "int", "index")
ROWS = [
    row
    for row in rows()
    if row.family.section == "tile"
    and row.body is not None
    and any(o.kind == "tile" for o in row.operands)
    and not row.results
    and all(o.kind in _KINDS and not o.variadic for o in row.operands)
]
_SPREAD = [row for row in ROWS if isinstance(row.body, Lane) and row.body.spread]
_PLAIN = [row for row in ROWS if isinstance(row.body, Lane) and not row.body.spread]
TURNS, HEIGHT, WIDTH = 4, 24, 64  # stores of one tile; rows and columns of a shared array


class Draft(Writer):
    """Builds one program."""

    profiles = PROFILES

    def __init__(self, rng: random.Random) -> None:
        super().__init__(rng, rng.choice(self.profiles))
        self.elem = self._element()
        self.written: set[int] = set()
        self.spread: set[int] = set()  # tiles read as a row or a column
        self.whole: set[int] = set()  # tiles read whole
        self.pool: list[Entry] = []
        self.counters: list[Value] = []  # of open loops
        self.blocks = 1 if rng.random() < 0.7 else rng.randint(2, 3)
        self._placed = rng.random() < 0.15
        self._next = 0

    def _element(self) -> str:
        found = self.rng.choices(TYPES, _WEIGHTS)[0]
        return found if self.profile == "a5" or not found.startswith("f8") else "f32"

    def build(self) -> Program:
        """The whole program: a pool of tiles, some steps, and a store of every tile."""
        self._begin()
        self._tiles()
        self._steps(self.rng.randint(3, 9), 0)
        for entry in self._results():
            self._store_own(entry, TURNS - 1)
        if self.spread & self.whole:
            self.features.add("whole and expanded")
        if self.blocks > 1:
            self.features.add("several blocks")
        if "run-time bounds" in self.features and self.rng.random() < 0.2:
            self.args[self.rng.choice((1, 2))] = 0  # of `given`: rows or columns
            self.features.add("empty region")
        return self.done(self.blocks)

    def _results(self) -> list[Entry]:
        """Tiles that are stored in the end: all, and some windows and other names."""
        return [e for e in self.pool if e.value is e.root or self.rng.random() < 0.3]

    def _begin(self) -> None:
        rng, kind = self.rng, dtype(self.elem)
        step = max(1, 32 // kind.itemsize)
        self.shape = rng.choice((1, 2, 3, 4, 5, 8, 16)), step * rng.choice((1, 1, 2, 3))
        while self.shape[1] > WIDTH:
            self.shape = self.shape[0], step
        self.shared = self.array(self.elem, self.blocks * HEIGHT * WIDTH)
        index = self.b.append(row_of("pto.get_block_idx"), results=[typed("i64")])
        self.block = self._cast(index.results[0], INDEX)
        self.given = [self.parameter(INDEX, rng.randint(1, n)) for n in (*self.shape, TURNS - 1)]

    # ---- tiles

    def _tiles(self) -> None:
        rng, (height, width) = self.rng, self.shape
        odd = rng.random()
        self.valid = self.shape if odd < 0.6 else tuple(rng.randint(1, n) for n in self.shape)
        self.is_open = rng.random() < 0.25
        mains = [self.tile(self.elem, self.shape) for _ in range(rng.randint(2, 3))]
        if rng.random() < 0.7:
            self.tile(self.elem, (1, width), region="row")
        if rng.random() < 0.5:
            tall = height if height in (8, 16) else 8
            self.tile(self.elem, (tall, 1), ", blayout=col_major", region="column")
        if rng.random() < 0.7:
            self._other()
        if rng.random() < 0.35:
            self._windows(rng.choice(mains))
        if rng.random() < 0.25:
            self._renamed(rng.choice(mains))
        for entry in self.pool:
            if entry.value is entry.root and (rng.random() < 0.8 or self._shows_bits(entry)):
                self._load(entry)

    def _other(self) -> None:
        """A tile of another type, for conversions, indices and masks."""
        placed = self._placed
        self._placed = placed and not dtype(self.elem).is_float
        self.tile(self.rng.choice(("ui8", "i32", "ui32", "f32", "f16")), self.shape)
        self._placed = placed

    def _shows_bits(self, entry: Entry) -> bool:
        """Whether a tile that is not loaded could show bits of a NaN, which are not defined."""
        return entry.elem != self.elem and dtype(self.elem).is_float

    def tile(
        self, elem: str, shape: tuple[int, int], layout: str = "", *, region: str = "",
        role: str = "vec",
    ) -> Entry:  # fmt: skip
        """A tile of the pool; `region` is the part of the program's valid region that it takes."""
        rng, valid = self.rng, self.valid
        if region:
            valid = (1, valid[1]) if region == "row" else (valid[0], 1)
        elif rng.random() < 0.1:
            valid = rng.randint(1, shape[0]), rng.randint(1, shape[1])
        valid = min(valid[0], shape[0]), min(valid[1], shape[1])
        is_open = self.is_open and not region and rng.random() < 0.9
        sides = self.given[:2] if is_open else [self.number(n) for n in valid]
        said = "?x?" if is_open else f"{valid[0]}x{valid[1]}"
        if is_open:
            self.features.add("run-time bounds")
        elif valid != shape:
            self.features.add("odd valid region")
        type = typed(f"!pto.tile_buf<{role}, {shape[0]}x{shape[1]}x{elem}, valid={said}{layout}>")
        operands = {"valid_row": sides[0], "valid_col": sides[1]} if is_open else {}
        nbytes = shape[0] * shape[1] * dtype(elem).itemsize
        first = self._address(nbytes) if self._placed else 0
        if self._placed:
            operands["addr"] = self.b.constant(first, scalar_of("i64"))
            self.features.add("placed")
        made = self.b.append(row_of("pto.alloc_tile"), operands, results=[type]).results[0]
        entry = Entry(made, elem, shape, (sides[0], sides[1]), made, first, first + nbytes, is_open)
        entry.is_placed = self._placed
        self.pool.append(entry)
        return entry

    def _address(self, nbytes: int) -> int:
        """Behind the other tiles, or on some of them."""
        first = (
            self._next if self.rng.random() < 0.7 else 32 * self.rng.randint(0, self._next // 32)
        )
        self._next = max(self._next, -(-(first + nbytes) // 32) * 32)
        return first

    def _windows(self, base: Entry) -> None:
        """Two windows of one tile, which often overlap; the row may be a number of the run."""
        size = dtype(base.elem).itemsize
        step = max(1, 32 // size)
        for _ in range(2):
            high = self.rng.randint(1, base.shape[0])
            wide = step * self.rng.randint(1, base.shape[1] // step)
            row = self.rng.randint(0, base.shape[0] - high)
            col = step * self.rng.randint(0, (base.shape[1] - wide) // step)
            first = base.first + (row * base.shape[1] + col) * size
            end = first + ((high - 1) * base.shape[1] + wide) * size
            at = self.number(row)
            if high + TURNS - 1 <= base.shape[0] and self.rng.random() < 0.5:
                at, first, end = (
                    self.rng.choice([self.given[2], *self.counters]),
                    base.first,
                    base.end,
                )
                self.features.add("run-time window")
            made = self.b.append(
                row_of("pto.subview"),
                {"source": base.value, "offsets": [at, self.number(col)]},
                attrs={"sizes": Array((Int(high), Int(wide)))},
                results=[typed(f"!pto.tile_buf<vec, {high}x{wide}x{base.elem}>")],
            ).results[0]
            sides = self.number(high), self.number(wide)
            entry = Entry(made, base.elem, (high, wide), sides, base.root, first, end)
            entry.is_placed = base.is_placed
            self.pool.append(entry)
        self.features.add("windows")

    def _renamed(self, base: Entry) -> None:
        """The bytes of a tile under another shape."""
        shape = 1, base.shape[0] * base.shape[1]
        type = typed(f"!pto.tile_buf<vec, 1x{shape[1]}x{base.elem}>")
        row = row_of("pto.treshape")
        made = self.b.append(row, {"src": base.value}, results=[type]).results[0]
        sides = self.number(1), self.number(shape[1])
        self.pool.append(Entry(made, base.elem, shape, sides, base.root, base.first, base.end))
        self.features.add("renamed")

    # ---- steps

    def _steps(self, count: int, depth: int) -> None:
        for _ in range(count):
            what = self.rng.random()
            if what < 0.10 and depth < 2:
                self._loop(depth)
            elif what < 0.16 and depth < 2:
                self._branch(depth)
            elif what < 0.24:
                self._load(self.rng.choice(self.pool))
            elif what < 0.30:
                self._store_own(self.rng.choice(self.pool), None)
            elif what < 0.36:
                self._store_shared(self.rng.choice(self.pool))
            elif what < 0.39:
                self._set_valid()
            elif what < 0.43:
                self._windows(self.rng.choice([e for e in self.pool if _is_plain(e)]))
            else:
                self._instruction()

    @contextmanager
    def _inside(self, block: Any) -> Iterator[None]:
        self.b.blocks.append(block)
        known = len(self.pool)
        yield
        del self.pool[known:]  # windows of this block
        self.b.append(row_of("scf.yield"))
        self.b.blocks.pop()

    def _loop(self, depth: int) -> None:
        upper = self.rng.choice((self.number(2), self.number(3), self.given[2]))
        bounds = {"lower": self.number(0), "upper": upper, "step": self.number(1)}
        loop, counter = self.b.append(row_of("scf.for"), bounds), Value(INDEX, f"i{depth}")
        with self._inside(new_block(loop, [counter])):
            self.counters.append(counter)
            self._steps(self.rng.randint(2, 5), depth + 1)
            self.counters.pop()
        self.features.add("loop")

    def _branch(self, depth: int) -> None:
        known = [self.given[0], self.given[2], self.block, *self.counters]
        row = row_of("arith.cmpi")
        operands = dict(
            zip(row.operand_names, (self.rng.choice(known), self.number(1)), strict=True)
        )
        attrs = {"predicate": Enum("cmpi_predicate", self.rng.choice(("eq", "sgt", "ule")))}
        test = self.b.append(row, operands, attrs=attrs, results=[typed("i1")]).results[0]
        branch = self.b.append(row_of("scf.if"), {"condition": test})
        for _ in range(2):
            with self._inside(new_block(branch)):
                self._steps(self.rng.randint(1, 3), depth + 1)
        self.features.add("branch")

    def _place(self, entry: Entry) -> tuple[Value, Value, Value]:
        """A window of the shared array, in the rows of this block."""
        height, width = entry.shape
        row = self.number(self.rng.randint(0, max(0, HEIGHT - height - TURNS)))
        if self.counters and self.rng.random() < 0.5:
            row = self._sum(self.counters[-1], row)
        col = self.number(self.rng.choice((0, 0, max(0, WIDTH - width))))
        at = self._sum(self.block, row, HEIGHT), col
        size = self.blocks * HEIGHT, WIDTH
        return at[0], at[1], self.view(self.shared, self.elem, size, at, entry.valid)

    def _is_shared(self, entry: Entry) -> bool:
        """Whether the shared array has room for a tile."""
        height, width = entry.shape
        return entry.elem == self.elem and width <= WIDTH and height + TURNS <= HEIGHT

    def _load(self, entry: Entry) -> None:
        if self._is_shared(entry) and self.rng.random() < 0.8:
            view = self._place(entry)[2]
        else:
            count = entry.shape[0] * entry.shape[1]
            pointer, zero = self.array(entry.elem, count), self.number(0)
            view = self.view(pointer, entry.elem, entry.shape, (zero, zero), entry.valid)
        if self._try(row_of("pto.tload"), {"src": view, "dst": entry.value}, {}):
            self._writes(entry)

    def _store_shared(self, entry: Entry) -> None:
        if self._is_shared(entry):
            operands = {"src": entry.value, "dst": self._place(entry)[2]}
            if self._try(row_of("pto.tstore"), operands, {}):
                self._reads(entry)

    def _store_own(self, entry: Entry, turn: int | None) -> None:
        """To an array that only this tile is stored to, at a place for each block and turn."""
        if entry.out is None:
            count = self.blocks * TURNS * entry.shape[0] * entry.shape[1]
            entry.out = self.array(entry.elem, count), len(self.args) - 1
        number = self.number(self.rng.randint(0, 2) if turn is None else turn)
        if turn is None and self.counters:
            number = self.counters[-1]
        height, width = entry.shape
        row = self._arith("arith.muli", self._sum(self.block, number, TURNS), self.number(height))
        at, size = (row, self.number(0)), (self.blocks * TURNS * height, width)
        view = self.view(entry.out[0], entry.elem, size, at, entry.valid)
        if self._try(row_of("pto.tstore"), {"src": entry.value, "dst": view}, {}):
            self._reads(entry)

    def _set_valid(self) -> None:
        entries = [e for e in self.pool if e.is_open]
        if entries and not self.counters and len(self.b.blocks) == 1:
            entry, known = self.rng.choice(entries), self.given
            sides = [self.rng.choice((known[n], self.number(1))) for n in range(2)]
            operands = {"source": entry.value, "valid_row": sides[0], "valid_col": sides[1]}
            if self._try(row_of("pto.set_validshape"), operands, {}):
                entry.valid = sides[0], sides[1]
                self.features.add("set valid")

    # ---- an instruction

    def _instruction(self) -> None:
        what = self.rng.random()
        row = self.rng.choice(_SPREAD if what < 0.2 else _PLAIN if what < 0.5 else ROWS)
        if self.profile not in row.profiles:
            return
        for _ in range(25):
            operands: dict[str, Value] = {}
            drawn: list[tuple[Operand, Entry]] = []
            for operand in row.operands:
                if operand.optional and self.rng.random() < 0.6:
                    continue
                found = self._operand(operand)
                operands[operand.name] = found.value if isinstance(found, Entry) else found
                if isinstance(found, Entry):
                    drawn.append((operand, found))
            if not _fits_at_run_time(drawn) and self.rng.random() < 0.9:
                continue  # a finding of the run, on both engines; some will do
            attrs = {spec.name: a for spec in row.attrs if (a := self._attribute(spec))}
            if self._try(row, operands, attrs):
                self._note(row, drawn)
                return

    def _operand(self, operand: Operand) -> Entry | Value:
        is_tile = operand.kind == "tile" or (
            operand.kind == "tile or scalar" and self.rng.random() < 0.3
        )
        if is_tile:
            weights = [3 if e.elem == self.elem and e.shape == self.shape else 1 for e in self.pool]
            return self.rng.choices(self.pool, weights)[0]
        if operand.kind in ("int", "index"):
            type = INDEX if operand.kind == "index" else scalar_of(self.rng.choice(("i32", "i16")))
            return self.b.constant(self.rng.randint(0, 3), type)
        kind = dtype(self.elem)
        if self.rng.random() < 0.2:
            self.features.add("run-time scalar")
            given = {"ptr": self.shared, "offset": self.given[self.rng.randint(0, 2)]}
            made = self.b.append(row_of("pto.load_scalar"), given, results=[scalar_of(self.elem)])
            return made.results[0]
        number = self.rng.choice((0, 1, 2, 3, 7)) * (
            self.rng.choice((1, -1)) if kind.is_signed else 1
        )
        return self.b.constant(number + 0.5 if kind.is_float else number, scalar_of(self.elem))

    def _attribute(self, spec: Attr) -> Attribute | None:
        kinds = kinds_of(spec.kind)
        if not kinds or not (spec.required or self.rng.random() < 0.5):
            return None
        word = self.rng.choice(spec.values or kinds[0].words)
        kind = next(k for k in kinds if word in k.words)
        return Enum(kind.name, kind.word(kind.number(word)) or word)

    # ---- what it shows

    def _reads(self, entry: Entry) -> None:
        if not any(id(e) in self.written and e.meets(entry) for e in self.pool):
            self.features.add("unwritten tile")

    def _writes(self, entry: Entry) -> None:
        self.written.add(id(entry))

    def _note(self, row: Instr, drawn: list[tuple[Operand, Entry]]) -> None:
        roles = [(o.role, e) for o, e in drawn]
        reads = [e for role, e in roles if role in ("in", "inout")]
        writes = [e for role, e in roles if role in ("out", "inout")]
        if len({id(e) for e in reads}) < len(reads):
            self.features.add("one tile twice")
        if any(e in reads for e in writes):
            self.features.add("in place")
        if len(writes) > 1:
            self.features.add("several results")
        pairs = [(a, b) for _, a in roles for _, b in roles]
        if any(a is not b and a.meets(b) for a, b in pairs):
            self.features.add("overlapping operands")
        if isinstance(row.body, Lane) and row.body.spread:
            self.spread.add(id(reads[-1]))
            self.whole |= {id(e) for e in reads[:-1]}
        else:
            self.whole |= {id(e) for e in reads}
        for entry in reads:
            self._reads(entry)
        for entry in writes:
            self._writes(entry)


def _fits_at_run_time(drawn: list[tuple[Operand, Entry]]) -> bool:
    """Whether tiles under run-time bounds stand beside tiles of their own shape alone."""
    return not any(e.is_open for _, e in drawn) or len({e.shape for _, e in drawn}) == 1


def _is_plain(entry: Entry) -> bool:
    """Whether a tile is one of its own, in rows of whole blocks."""
    nbytes = entry.shape[1] * dtype(entry.elem).itemsize
    return entry.value is entry.root and nbytes >= 32
