"""Random programs of SIMT work items: arithmetic, memory, atomics, votes, shuffles, barriers.

Work items take different ways through branches and loops. Each stores all its values in the end.
Results of programs with races are defined too: items execute one instruction after another.
"""

from __future__ import annotations

import random
from math import prod
from typing import Any

import numpy as np

from pto.core.dtypes import dtype
from pto.core.errors import PtoError
from pto.ir.builder import INDEX, Builder, new_block, new_function
from pto.ir.graph import Value
from pto.isa.meaning.kinds import Cooperative, Lane
from pto.isa.row.attributes import Attribute, Int, Symbol, Unit
from pto.isa.row.instr import Attr, Instr
from pto.isa.row.types import Ptr, Scalar
from pto.isa.table import rows
from pto.run.launch.host import launch
from tests.random_values import ROWS as VALUES
from tests.random_values import ValueDraft
from tests.random_writer import Program, row_of, scalar_of, typed

_ELEMS = ("i32", "i64", "f32", "f16", "i16", "i8")
_SIZES = (
    (1, 1, 1),
    (5, 1, 1),
    (32, 1, 1),
    (33, 1, 1),
    (64, 1, 1),
    (7, 3, 2),
    (1, 40, 1),
    (16, 2, 3),
)
_COUNT = 256  # elements of an array; an offset is below a quarter of them
_SLOTS = 12  # values of one type that an item stores in the end


def _is_drawn(row: Instr) -> bool:
    return row.family.section == "simt" and isinstance(row.body, Lane | Cooperative)


_OWN = [row for row in rows() if _is_drawn(row)]
_WITH_RESULT = [row for row in _OWN if row.results]
ROWS = [*_WITH_RESULT, *_WITH_RESULT, *(r for r in VALUES if r.family.section == "shared")]
STORES = [row for row in _OWN if not row.results]


def item_program(rng: random.Random) -> Program:
    """A program of work items; of five that end with a finding, one is kept."""
    while True:
        program = ItemDraft(rng).build()
        own = [a.copy() if isinstance(a, np.ndarray) else a for a in program.args]
        try:
            with np.errstate(all="ignore"):
                launch(program.module, args=own, engine="reference", check=False)
        except PtoError:
            if rng.random() < 0.8:
                continue
        except Exception:
            return program  # for the comparison to show
        return program


class ItemDraft(ValueDraft):
    """Builds one program."""

    rows_drawn = ROWS
    stores = STORES

    def __init__(self, rng: random.Random) -> None:
        super().__init__(rng)
        self.size = rng.choice(_SIZES)
        self.elems = rng.sample(_ELEMS, 4)
        names = (*_ELEMS, "i1")
        self.types = [*(typed(e) for e in names), INDEX, typed("vector<2xf16>")]
        self.outs: dict[str, Value] = {}
        self.counts: dict[str, int] = {}

    def build(self) -> Program:
        places = [p for elem in self.elems for p in self._places(elem)]
        outs = {e: self.array(e, prod(self.size) * _SLOTS) for e in (*_ELEMS, "i1") if e != "i1"}
        self.function.attrs["pto.aicore"] = Unit()
        for _ in range(self.rng.randint(1, 2)):
            self.rng.choice((self._section, self._function))(places, outs)
        for elem in self.elems:
            self._copy("pto.mte_ub_gm", self.places[elem], self.arrays[elem], self._bytes(elem))
        self.features.add("work items")
        return self.done(1)

    def _bytes(self, elem: str) -> int:
        return _COUNT * dtype(elem).itemsize

    def _places(self, elem: str) -> list[Value]:
        """A place in UB, filled from an array, and another array."""
        self.arrays[elem] = self.array(elem, _COUNT)
        self.places[elem] = self._pointer(elem, self._bytes(elem))
        self._copy("pto.mte_gm_ub", self.arrays[elem], self.places[elem], self._bytes(elem))
        return [self.places[elem], self.array(elem, _COUNT)]

    def _section(self, places: list[Value], outs: dict[str, Value]) -> None:
        attrs = {f"dim{d}": Int(n) for d, n in zip("XYZ", self.size, strict=True)}
        section = self.b.append(row_of("pto.section.simt"), attrs=attrs)
        self.b.blocks.append(new_block(section))
        self._items(places, outs)
        self.b.blocks.pop()

    def _function(self, places: list[Value], outs: dict[str, Value]) -> None:
        given, name = [*places, *outs.values()], f"body{len(list(self.module.functions()))}"
        sides = [self.b.constant(n, scalar_of("i32")) for n in self.size]
        operands = {**dict(zip(("dimX", "dimY", "dimZ"), sides, strict=True)), "args": given}
        self.b.append(row_of("pto.simt_launch"), operands, attrs={"callee": Symbol(name)})
        params = [(f"p{n}", v.type) for n, v in enumerate(given)]
        entry = new_function(self.module, name, params, attrs={"pto.simt_entry": Unit()})
        outer, self.b = self.b, Builder(entry)
        own = entry.regions[0].block.args
        self._items(own[: len(places)], dict(zip(outs, own[len(places) :], strict=True)))
        self.b.append(row_of("func.return"))
        self.b = outer
        self.features.add("launch")

    def _items(self, places: list[Value], outs: dict[str, Value]) -> None:
        """The body."""
        self.pool = [*places]
        self.outs, self.counts = outs, dict.fromkeys(outs, 0)
        sides = [self._made(f"pto.get_tid_{d}", {}, "i32") for d in "xyz"]
        linear = self._linear(sides)
        self.item = self._cast(linear, INDEX)
        self.pool += [*sides, linear, *(self.b.constant(n, scalar_of("i32")) for n in (0, 1, 7))]
        self.pool += [self.number(n) for n in (0, 5)]
        for elem in self.elems:
            kind = dtype(elem)
            number = self.rng.choice((0, 1, -3, 7)) + (0.5 if kind.is_float else 0)
            self.pool.append(self.b.constant(number, scalar_of(elem)))
        self._bound(self.item)
        self._steps(self.rng.randint(5, 14), 0)
        for value in self.pool:
            self._out_item(value)

    def _linear(self, sides: list[Value]) -> Value:
        """x + dimX * (y + dimY * z)."""
        x, y, z = sides
        row = self._number("arith.addi", y, self._number("arith.muli", z, self._i32(self.size[1])))
        return self._number(
            "arith.addi", x, self._number("arith.muli", row, self._i32(self.size[0]))
        )

    def _i32(self, n: int) -> Value:
        return self.b.constant(n, scalar_of("i32"))

    def _number(self, name: str, a: Value, b: Value) -> Value:
        row = row_of(name)
        operands = dict(zip(row.operand_names, (a, b), strict=True))
        return self.b.append(row, operands, results=[a.type]).results[0]

    def _bound(self, value: Value) -> None:
        """An offset that lies in an array, for the pool."""
        most = self.number(_COUNT // 4 - 1)
        self.pool.append(self._number("arith.andi", value, most))

    def _keep(self, row: Instr, operands: Any, attrs: Any, types: Any) -> bool:
        known = len(self.pool)
        if not super()._keep(row, operands, attrs, types):
            return False
        fresh = self.pool[known:]
        self.pool[known:] = [v for v in fresh if v.type != INDEX]
        for value in fresh:
            if value.type == INDEX and self.rng.random() < 0.98:
                self._bound(value)
            elif value.type == INDEX:
                self.pool.append(value)
        return True

    def _steps(self, count: int, depth: int) -> None:
        super()._steps(count, depth)
        pointers = [v for v in self.pool if isinstance(v.type, Ptr)]
        indices = [v for v in self.pool if v.type == INDEX]
        if self.rng.random() < 0.5:
            given = {"ptr": self.rng.choice(pointers), "offset": self.rng.choice(indices)}
            moved = self.b.append(row_of("pto.addptr"), given, results=[given["ptr"].type])
            self.pool += moved.results

    def _upper(self) -> Value:
        """A number of iterations, which may differ between items."""
        if self.rng.random() < 0.5:
            return super()._upper()
        indices = [v for v in self.pool if v.type == INDEX]
        return self._number("arith.andi", self.rng.choice(indices), self.number(3))

    def _attribute(self, spec: Attr) -> Attribute | None:
        if spec.name == "width":
            return Int(self.rng.choice((16, 32))) if self.rng.random() < 0.5 else None
        if spec.name == "slot":
            return Int(self.rng.choice((0, 2, 4)))
        return super()._attribute(spec)

    def _out_item(self, value: Value) -> None:
        type = value.type
        if not isinstance(type, Scalar) or type.name not in self.outs:
            return
        number = self.counts[type.name]
        if number == _SLOTS:
            return
        self.counts[type.name] += 1
        at = self._number("arith.addi", self.item, self.number(number * prod(self.size)))
        given = {"ptr": self.outs[type.name], "offset": at, "value": value}
        self.b.append(row_of("pto.store"), given)
