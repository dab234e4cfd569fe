"""Random programs of DMA and of the matrix unit by pointer, with branches, loops and calls.

Any row of these sections may be drawn, with pointers into every buffer and numbers that are known
before a run or only in it. A step that ends a run of the program so far with a finding is dropped,
except now and then: both engines must report the same one.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import partial
from typing import Any

from pto.core.dtypes import dtype
from pto.core.errors import PtoError
from pto.core.memory import Space
from pto.ir.builder import INDEX, new_block, new_function
from pto.ir.graph import Block, Operation, Value
from pto.isa.row.attributes import Attribute, Bool, Enum, Int, Symbol, Unit
from pto.isa.row.instr import Attr, Instr
from pto.isa.row.types import KINDS
from pto.isa.table import rows
from pto.run.launch.host import launch
from tests.random_values import ValueDraft
from tests.random_writer import PROFILES, row_of, scalar_of, typed

_ELEMS = ("f32", "f16", "bf16", "i32", "i8", "ui8", "i16", "f8E4M3FN", "f8E5M2", "i64", "ui32")
_LOCAL = [s for s in Space if s.is_local and s not in (Space.SCALE_A, Space.SCALE_B)]
_ADDRESSES = (0, 0, 0, 32, 64, 512, 1024, 2048, 8, 4)
_SMALL = (0, 0, 1, 1, 1, 2, 2, 3, 4, 8, 16, 16, 16, 32, 32, 32, 64, 128, 256, 5, 17, 33, 100, 512)
_ODD = (-1, -32, 1 << 16, 1 << 32, (1 << 63) - 1, -(1 << 63))
_FIELDS = (0, 4, 12, 16, 24, 32, 34, 48)  # bits at which packed numbers have a field
_ROOM = 4096  # bytes of an array, and of a buffer that is filled first
ROWS = [r for r in rows() if r.family.section in ("dma", "cube") and r.body is not None]


class PointerDraft(ValueDraft):
    """Builds one program; steps are tried on the reference engine."""

    def __init__(self, rng: random.Random) -> None:
        super().__init__(rng, rng.choice(PROFILES))
        self.elems = rng.sample(_ELEMS, 3)
        self._by_kind: dict[str, list[Value]] = {}
        # Instructions of one program come from a few rows, so that they meet.
        fits = [r for r in ROWS if self.profile in r.profiles]
        weights = [6 if any(o.role != "in" for o in r.operands) else 1 for r in fits]
        self.rows_drawn = rng.choices(fits, weights, k=rng.randint(3, 14))

    def _begin(self) -> None:
        self.function.attrs["pto.aicore"] = Unit()
        for elem in self.elems:
            count = _ROOM // dtype(elem).itemsize
            self.pool += [self.array(elem, count), self.array(elem, count)]
            for space in _LOCAL:
                self.pool.append(self._place(space, elem, self.rng.choice(_ADDRESSES)))
        for name, bulk in (("pto.mte_gm_ub", Space.UB), ("pto.mte_gm_l1", Space.L1)):
            elem = self.rng.choice(self.elems)
            source = self.array(elem, _ROOM // dtype(elem).itemsize)
            self._copy(name, source, self._place(bulk, elem, 0), _ROOM)
        self.given = self.parameter(INDEX, self.rng.randint(0, 3))
        numbers = {n: self.b.constant(n, scalar_of("i64")) for n in (*_SMALL, *_ODD)}
        self.pool += [numbers[n] for n in _SMALL]
        self.pool += [self.b.constant(self._packed(), scalar_of("i64")) for _ in range(2)]
        self.pool += [self.parameter(typed("i64"), self.rng.choice(_SMALL)) for _ in range(5)]
        if self.rng.random() < 0.2:
            self.pool.append(numbers[self.rng.choice(_ODD)])
        self.pool += [self.b.constant(n, scalar_of("i1")) for n in (0, 1)]
        for name in ("i32", "i16", "i8", "f32", "f16", "bf16"):
            self._scalars(name)

    def _place(self, space: Space, elem: str, address: int) -> Value:
        number = self.b.constant(address, scalar_of("i64"))
        return self._made("pto.castptr", {"input": number}, f"!pto.ptr<{elem}, {space.value}>")

    def _packed(self) -> int:
        fields = self.rng.sample(_FIELDS, 4)
        return sum(self.rng.choice(_SMALL[:-4]) << at for at in fields) % (1 << 63)

    # ---- steps

    def _steps(self, count: int, depth: int) -> None:
        for _ in range(count):
            before = self._ops()
            if self.rng.random() < 0.25 and depth < 2:
                self._steps(self.rng.randint(1, 4), depth + 1)
                wrap = self.rng.choice((self._loop_of, self._branch_of, self._function_of))
                self._tried(partial(wrap, before))
            else:
                row = self.rng.choice(self.rows_drawn)
                any(self._tried(partial(self._draw, row)) for _ in range(8))

    def _ops(self) -> list[Operation]:
        """The operations of the block, without constants."""
        constants = {value.owner for value in self.b._constants.values()}
        return [op for op in self.b.block.ops if op not in constants]

    def _set_ops(self, ops: list[Operation]) -> None:
        """Replace them; the text of the program is all that is used in the end."""
        block, constants = self.b.block, {value.owner for value in self.b._constants.values()}
        block.ops = [op for op in block.ops if op in constants] + ops
        for op in ops:
            op.parent = block

    def _tried(self, step: Callable[[], None]) -> bool:
        """Do a step, and undo it where the program so far ends with a finding."""
        kept, ends = self._ops(), self.rng.random() < 0.02
        top = self.module.op.regions[0].block
        functions, operands = list(top.ops), [list(op.operands) for op in kept]
        step()
        if self._ops() == kept:
            return False
        if ends or self._stands():
            return True
        self._set_ops(kept)
        top.ops = functions
        for op, values in zip(kept, operands, strict=True):
            op.operands[:] = values
        return False

    def _end(self) -> None:
        """Buffers are compared as they are."""
        self.features.add("buffers")

    def _stands(self) -> bool:
        end = self.b.append(row_of("func.return"))
        self._describe()
        try:
            own = [a.copy() if hasattr(a, "copy") else a for a in self.args]
            launch(self.module, args=own, engine="reference", check=False)
        except PtoError:
            return False
        except Exception:
            return True  # for the comparison to show
        finally:
            end.erase()
        return True

    def _draw(self, row: Instr) -> None:
        """One operation; of operands that repeat, as many of each."""
        for _ in range(30):
            operands: dict[str, Any] = {}
            times = self.rng.choice((0, 0, 1, 2))
            for operand in row.operands:
                if operand.optional and self.rng.random() < 0.6:
                    continue
                fits = self._fits(operand.kind)
                if not fits:
                    return
                several = [self.rng.choice(fits) for _ in range(times)]
                operands[operand.name] = several if operand.variadic else self.rng.choice(fits)
            attrs = {spec.name: a for spec in row.attrs if (a := self._attribute(spec))}
            if self._keep(row, operands, attrs, []):
                self.features.add(f"{row.family.section} by pointer")
                return

    def _fits(self, kind: str) -> list[Value]:
        if kind not in self._by_kind:
            self._by_kind[kind] = [v for v in self.pool if KINDS[kind].accepts(v.type)]
        return self._by_kind[kind]

    def _attribute(self, spec: Attr) -> Attribute | None:
        if spec.kind in ("unit", "bool") and self.rng.random() < 0.5:
            return Unit() if spec.kind == "unit" else Bool(self.rng.random() < 0.5)
        if spec.name.endswith("bits"):
            return Int(self.rng.choice((16, 32)))
        return super()._attribute(spec)

    # ---- control: steps that were tried in a line become a body

    def _body(self, before: list[Operation]) -> list[Operation]:
        """The operations since then, taken from the block."""
        body = [op for op in self._ops() if op not in before]
        self._set_ops(before)
        return body

    def _fill(self, block: Block, body: list[Operation], end: str) -> None:
        self.b.blocks.append(block)
        block.ops += body
        for op in body:
            op.parent = block
        self.b.append(row_of(end))
        self.b.blocks.pop()

    def _loop_of(self, before: list[Operation]) -> None:
        """A loop; now and then a number of its body counts with it."""
        body = self._body(before)
        upper = self.rng.choice((self.number(0), self.number(1), self.number(2), self.given))
        bounds = {"lower": self.number(0), "upper": upper, "step": self.number(1)}
        loop, counter = self.b.append(row_of("scf.for"), bounds), Value(INDEX, "i")
        block = new_block(loop, [counter])
        self.b.blocks.append(block)
        number = self._cast(counter, typed("i64"))
        self.b.blocks.pop()
        places = [
            (op, n) for op in body for n, v in enumerate(op.operands) if v.type == typed("i64")
        ]
        for op, n in self.rng.sample(places, min(len(places), self.rng.choice((0, 0, 1)))):
            op.operands[n] = number
        self._fill(block, body, "scf.yield")
        self.features.add("loop")

    def _branch_of(self, before: list[Operation]) -> None:
        body, row = self._body(before), row_of("arith.cmpi")
        operands = dict(zip(row.operand_names, (self.given, self.number(1)), strict=True))
        attrs = {"predicate": Enum("cmpi_predicate", self.rng.choice(("eq", "sgt", "ule")))}
        test = self.b.append(row, operands, attrs=attrs, results=[typed("i1")]).results[0]
        branch = self.b.append(row_of("scf.if"), {"condition": test})
        sides = [body, []] if self.rng.random() < 0.7 else [[], body]
        for side in sides:
            self._fill(new_block(branch), side, "scf.yield")
        self.features.add("branch")

    def _function_of(self, before: list[Operation]) -> None:
        """A call of a function that has the steps as its body."""
        body = self._body(before)
        if any(op.regions for op in body):
            self._set_ops([*before, *body])
            return
        used = list(dict.fromkeys(v for op in body for v in op.operands))
        name = f"g{len(list(self.module.functions()))}"
        params = [(f"p{n}", v.type) for n, v in enumerate(used)]
        own = new_function(self.module, name, params).regions[0].block
        inner = dict(zip(used, own.args, strict=True))
        for op in body:
            op.operands[:] = [inner[v] for v in op.operands]
        self._fill(own, body, "func.return")
        self.b.append(row_of("func.call"), {"args": used}, attrs={"callee": Symbol(name)})
        self.features.add("call")
