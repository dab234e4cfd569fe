"""Random programs of registers, masks, logical vectors and scalars, with branches and loops.

Any row whose operands and results are such values may be drawn: operands come from the values that
a program has by now, types of results are guessed, and an operation that its row refuses is drawn
again. Every value of the outermost block is stored in the end.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from pto.core.dtypes import dtype
from pto.core.errors import PtoError
from pto.ir.builder import INDEX, new_block
from pto.ir.graph import Value
from pto.isa.row.attributes import Attribute, Enum, Int, Str
from pto.isa.row.enums import kinds_of
from pto.isa.row.instr import Attr, Instr
from pto.isa.row.types import KINDS, Align, LogicalVReg, Mask, Scalar, Type, VReg
from pto.isa.table import rows
from pto.verify import operation
from tests.random_writer import Program, Writer, row_of, scalar_of, typed

_ROOM = 2048  # bytes of UB that elements of one type have to themselves
_SLOT = 1024  # bytes of UB for one result
_ELEMS = ("f32", "f16", "bf16", "i32", "i16", "i8", "ui32", "ui16", "ui8", "i64")
_NUMBERS = ("i32", "i64", "i16", "i8", "f32", "f16", "bf16", "i1")
_LOGICAL = (8, 64, 100)  # lanes of logical vectors; a program has one of them
_SECTIONS = ("vector", "predicate", "shared")
_VALUES = {
    *("vreg", "mask", "logical vreg", "logical mask", "logical vreg or mask", "align"),
    *("element", "number", "integers", "floats", "float", "int", "i1", "i16", "i32", "i64"),
    *("index", "mask or index", "vreg or scalar", "logical vreg or scalar", "any", "scalar"),
    *("ub buffer", "ub pointer"),
}
_SHOWN = {"vreg": "registers", "mask": "masks", "logical vreg": "logical vectors"}
_SHOWN |= {"integers": "integers", "floats": "floats"}
_UNDEFINED = {"merge"}  # words that no document defines in full: a finding on both engines
# They show bits of a NaN, which are not defined; or they act on memory of their own.
_LEFT = {"vbitcast", "vinterpret_cast", "bitcast", "pbitcast", "call", "alloca"}


def _is_drawn(row: Instr) -> bool:
    if row.family.section not in _SECTIONS or row.body is None or row.operands == ():
        return False
    _, _, last = row.name.rpartition(".")
    if last in _LEFT or row.control is not None or any(o.variadic for o in row.operands):
        return False
    kinds = {o.kind for o in (*row.operands, *row.results)}
    return bool(row.results) and kinds <= _VALUES and not any(a.kind == "type" for a in row.attrs)


ROWS = [row for row in rows() if _is_drawn(row)]
_STORES = [
    row
    for row in rows()
    if row.family.section in ("vector", "predicate")
    and row.body is not None
    and not row.results
    and {o.kind for o in row.operands} <= _VALUES
    and ".ub." not in row.name
]


class ValueDraft(Writer):
    """Builds one program."""

    rows_drawn = ROWS
    stores = _STORES

    def __init__(self, rng: random.Random, profile: str = "a5") -> None:
        super().__init__(rng, profile)
        self.pool: list[Value] = []
        self.places: dict[str, Value] = {}
        self.arrays: dict[str, Value] = {}
        self.next = 0
        self.elems, self.lanes = rng.sample(_ELEMS, 3), rng.choice(_LOGICAL)
        self.types = [
            *(typed(f"!pto.vreg<{dtype(e).lanes}x{e}>") for e in self.elems),
            *(typed(f"!pto.vmi.vreg<{self.lanes}x{e}>") for e in self.elems if e != "i64"),
            typed(f"!pto.vmi.mask<{self.lanes}xpred>"),
            *(typed(f"!pto.mask<b{n}>") for n in (8, 16, 32)),
            *(typed(e) for e in _NUMBERS),
            *(typed("!pto.align"), INDEX),
        ]

    def build(self) -> Program:
        self._begin()
        self._steps(self.rng.randint(6, 16), 0)
        self._end()
        return self.done(1)

    def _begin(self) -> None:
        for elem in self.elems:
            place, count = self._pointer(elem, _ROOM), _ROOM // dtype(elem).itemsize
            self.places[elem], self.arrays[elem] = place, self.array(elem, count)
            self._copy("pto.mte_gm_ub", self.arrays[elem], place, _ROOM)
            self.pool.append(place)
        for name in _NUMBERS[:-1]:
            self._scalars(name)
        self.pool += [self.number(n) for n in (0, 64, 128)]
        for elem in self.elems:
            lanes = dtype(elem).lanes
            for at in (0, lanes):
                operands = {"source": self.places[elem], "offset": self.number(at)}
                self.pool.append(self._made("pto.vlds", operands, f"!pto.vreg<{lanes}x{elem}>"))
            if elem == "i64":
                continue
            operands = {"source": self.places[elem], "offset": self.number(0)}
            type = f"!pto.vmi.vreg<{self.lanes}x{elem}>"
            self.pool.append(self._made("pto.vmi.vload", operands, type))
        count = {"active_lanes": self.number(self.rng.randint(0, self.lanes))}
        type = f"!pto.vmi.mask<{self.lanes}xpred>"
        self.pool.append(self._made("pto.vmi.create_mask", count, type))
        for bits in (8, 16, 32):
            pattern = self.rng.choice(("PAT_ALL", "PAT_VL8", "PAT_M3", "PAT_H", "PAT_ALLF"))
            made = self.b.append(
                row_of(f"pto.pge_b{bits}"),
                attrs={"pattern": Str(pattern)},
                results=[typed(f"!pto.mask<b{bits}>")],
            )
            self.pool.append(made.results[0])

    def _made(self, name: str, operands: Any, type: str) -> Value:
        row = row_of(name)
        given = dict(zip(row.operand_names, operands.values(), strict=False))
        return self.b.append(row, given, results=[typed(type)]).results[0]

    def _pointer(self, elem: str, nbytes: int) -> Value:
        """To bytes of UB that nothing else has."""
        number = self.b.constant(self.next, scalar_of("i64"))
        self.next += nbytes
        return self._made("pto.castptr", {"input": number}, f"!pto.ptr<{elem}, ub>")

    def _copy(self, name: str, source: Value, destination: Value, nbytes: int) -> None:
        zero, size, one = (self.b.constant(n, scalar_of("i64")) for n in (0, nbytes, 1))
        numbers = {"len_burst": size, "n_burst": one, "l2_cache_ctl": zero}
        strides = {"nburst_src_stride": size, "nburst_dst_stride": size}
        ends = {"source": source, "destination": destination}
        self.b.append(row_of(name), {**ends, **numbers, **strides})

    def _scalars(self, name: str) -> None:
        """Numbers that a run knows, and constants."""
        kind = dtype(name)
        given = self.array(name, 8)
        at = {"ptr": given, "offset": self.number(self.rng.randint(0, 7))}
        made = self.b.append(row_of("pto.load_scalar"), at, results=[scalar_of(name)])
        self.pool.append(made.results[0])
        if kind.is_float:
            number = self.rng.choice((0.0, -0.5, 1.5, 3.0, -7.0))
        else:
            edges = 0, 1, 2, 7, 31, kind.bits, int(kind.max), int(kind.min), -1
            number = self.rng.choice(edges)
        self.pool.append(self.b.constant(number, scalar_of(name)))

    # ---- steps

    def _steps(self, count: int, depth: int) -> None:
        for _ in range(count):
            what = self.rng.random()
            if what < 0.08 and depth < 2:
                self._loop(depth)
            elif what < 0.14 and depth < 2:
                self._branch(depth)
            elif what < 0.22:
                self._draw(self.rng.choice(self.stores))
            else:
                self._draw(self.rng.choice(self.rows_drawn))

    def _draw(self, row: Instr) -> None:
        if self.profile not in row.profiles:
            return
        for _ in range(100):
            operands: dict[str, Value] = {}
            for operand in row.operands:
                if operand.optional and self.rng.random() < 0.5:
                    continue
                fits = [v for v in self.pool if KINDS[operand.kind].accepts(v.type)]
                if not fits:
                    return
                operands[operand.name] = self.rng.choice(fits)
            types = self._results(row, list(operands.values()))
            attrs = {spec.name: a for spec in row.attrs if (a := self._attribute(spec))}
            if types is not None and self._keep(row, operands, attrs, types):
                kinds = {o.kind for o in (*row.operands, *row.results)}
                self.features.update(name for kind, name in _SHOWN.items() if kind in kinds)
                return

    def _results(self, row: Instr, operands: list[Value]) -> list[Type] | None:
        found: list[Type] = []
        for result in row.results:
            if result.optional and self.rng.random() < 0.8:
                break
            like = [v.type for v in operands if KINDS[result.kind].accepts(v.type)]
            every = [type for type in self.types if KINDS[result.kind].accepts(type)]
            if not like and not every:
                return None
            near = like and self.rng.random() < 0.6
            found.append(self.rng.choice(like if near or not every else every))
        return found

    def _keep(self, row: Instr, operands: Any, attrs: Any, types: list[Type]) -> bool:
        try:
            op = self.b.make(row, operands, attrs=attrs, results=types)
        except PtoError:
            return False
        op.parent = self.b.block
        if any(d.severity == "error" for d in operation.check(op, self.target)):
            return False
        self.b.block.append(op)
        self.rows.add(row.name)
        self.pool += op.results
        return True

    def _attribute(self, spec: Attr) -> Attribute | None:
        if not (spec.required or self.rng.random() < 0.4):
            return None
        if spec.kind == "str" and spec.values:
            return Str(self.rng.choice([v for v in spec.values if v not in _UNDEFINED]))
        if spec.kind in ("int", "i32"):
            return Int(self.rng.choice((1, 2, 4, 8)))
        kinds = kinds_of(spec.kind)
        if not kinds:
            return None
        word = self.rng.choice(spec.values or kinds[0].words)
        kind = next(k for k in kinds if word in k.words)
        return Enum(kind.name, kind.word(kind.number(word)) or word)

    # ---- control

    @contextmanager
    def _inside(self, block: Any, wanted: list[Value]) -> Iterator[None]:
        """A block that yields values of the types wanted."""
        self.b.blocks.append(block)
        known = len(self.pool)
        self.pool += block.args
        yield
        chosen = [
            self.rng.choice(
                [v for v in self.pool[-8:] if v.type == w.type]
                or [v for v in self.pool if v.type == w.type]
            )
            for w in wanted
        ]
        del self.pool[known:]
        self.b.append(row_of("scf.yield"), {"results": chosen})
        self.b.blocks.pop()

    def _carried(self) -> list[Value]:
        fits = [v for v in self.pool if not isinstance(v.type, Align)]
        return self.rng.sample(fits, min(len(fits), self.rng.randint(0, 3)))

    def _loop(self, depth: int) -> None:
        inits, upper = self._carried(), self._upper()
        bounds = {"lower": self.number(0), "upper": upper, "step": self.number(1), "inits": inits}
        loop = self.b.append(row_of("scf.for"), bounds, results=[v.type for v in inits])
        args = [Value(INDEX, f"i{depth}"), *(Value(v.type, f"c{n}") for n, v in enumerate(inits))]
        with self._inside(new_block(loop, args), inits):
            self._steps(self.rng.randint(2, 5), depth + 1)
        self.pool += loop.results
        self.features.add("loop")

    def _upper(self) -> Value:
        return self.number(self.rng.choice((0, 1, 2, 3)))

    def _branch(self, depth: int) -> None:
        tests = [v for v in self.pool if v.type == typed("i1")]
        wanted = self._carried()
        if not tests:
            return
        test = {"condition": self.rng.choice(tests)}
        branch = self.b.append(row_of("scf.if"), test, results=[v.type for v in wanted])
        for _ in range(2):
            with self._inside(new_block(branch), wanted):
                self._steps(self.rng.randint(1, 3), depth + 1)
        self.pool += branch.results
        self.features.add("branch")

    # ---- results

    def _end(self) -> None:
        """A store of every value, to an array of its own, and of the buffers that steps wrote."""
        for value in self.pool:
            type = value.type
            if isinstance(type, Scalar) and type.dtype is not None:
                at = {"ptr": self.array(type.name, 1), "offset": self.number(0), "value": value}
                self._try(row_of("pto.store_scalar"), at, {})
            elif isinstance(type, VReg):
                mask = self._mask(min(32, type.elem.dtype.bits))
                self._out("pto.vsts", value, type.elem.name, {"mask": mask})
            elif isinstance(type, LogicalVReg):
                self._out("pto.vmi.vstore", value, type.elem.name, {})
            elif isinstance(type, Mask):
                self._out("pto.psts", value, "ui32", {}, dist=Str("NORM"))
        for elem, place in self.places.items():
            self._copy("pto.mte_ub_gm", place, self.arrays[elem], _ROOM)

    def _mask(self, bits: int) -> Value:
        attrs, type = {"pattern": Str("PAT_ALL")}, typed(f"!pto.mask<b{bits}>")
        return self.b.append(row_of(f"pto.pset_b{bits}"), attrs=attrs, results=[type]).results[0]

    def _out(self, name: str, value: Value, elem: str, more: Any, **attrs: Attribute) -> None:
        place = self._pointer(elem, _SLOT)
        given = {"value": value, "destination": place, "offset": self.number(0), **more}
        self.b.append(row_of(name), given, attrs=attrs)
        self._copy("pto.mte_ub_gm", place, self.array(elem, _SLOT // dtype(elem).itemsize), _SLOT)
