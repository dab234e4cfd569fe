"""Pushes of accumulators into a queue, with scales.

A push is compiled for one form of scale, which all instructions that set it share. If the scale has
another form at run time, Python runs the push. A scale for one push alone is tested at run time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from pto.core.dtypes import F32, I8, U64, DType
from pto.core.global_layout import ND as GLOBAL_ND
from pto.core.layout import ND, Layout
from pto.core.tile import Role
from pto.isa.meaning.cube.accumulator import SIGN, Epilogue, Outlet, next_result, quant_of, word_of
from pto.isa.meaning.handle import config
from pto.isa.meaning.handle.view import tile_type
from pto.isa.meaning.lanes import convert
from pto.isa.meaning.memory import registers
from pto.isa.meaning.order import queue, ring
from pto.isa.row import types as t
from pto.isa.row.traits import Control
from pto.isa.rules.rule import Case
from pto.run.jit.emit.frame import Parameters
from pto.run.jit.emit.operation import OpContext, emits
from pto.run.jit.emit.order.ring import number_of
from pto.run.jit.emit.tile import masked
from pto.run.jit.emit.tile.elements import TileRef, ViewRef
from pto.run.jit.emit.tile.mover import Mover
from pto.run.jit.emit.tile.tile_layouts import extent, tile_access, tile_layout
from pto.run.jit.ir.strided import Access, Strided
from pto.run.jit.ir.unsupported import expect, unsupported_if
from pto.run.jit.llvm.condition import TRUE, Condition
from pto.run.jit.llvm.index import Number
from pto.run.jit.llvm.text import I64, Text
from pto.run.jit.llvm.value import Val
from pto.run.jit.runtime.context import epilogue_bits
from pto.run.jit.runtime.scales import Form, row_type
from pto.run.jit.runtime.values import SPACE_NUMBERS, Lowered, ScalarValue, TileDesc, ViewDesc

_SETS = (config.QUANT_SCALAR, config.QUANT_VECTOR)
_FORM, _SCALE, _COUNT = range(3)  # words of a register
# parameters of the function that sends a tile, after sizes and addresses
_GIVEN_CONTEXT = "%p4"
_GIVEN_ROW = "%p5"
_GIVEN_SCALE = "%p6"
_WORD = Form()  # one scale for all

# ---- setting


@emits(config.QUANT_SCALAR)
def _scalar(s: OpContext) -> Sequence[Lowered]:
    word, x = s.need(ScalarValue, "preQuantScalar"), s.x
    unsupported_if(word.types != ("float",), "a scale that is no f32")
    bits = x.new(f"zext i32 {x.new(f'bitcast float {word.name} to i32')} to i64")
    form = Form(s.case.word("out_type"))
    if form.kind == "i8":
        bits = x.new(f"or i64 {bits}, {1 << SIGN}")
    _keep(s, form, bits, 0)
    return []


@emits(config.QUANT_VECTOR)
def _vector(s: OpContext) -> Sequence[Lowered]:
    tile, why = s.need(TileDesc, "fp"), "scales that are no plain row"
    rows, cols = tile.valid
    plain = rows == 1 and tile.pitch in (None, tile.type.cols)
    form = expect(Form.row(tile.type) if plain else None, Form, why)
    inside = s.e.inside(tile.memory, tile.address, tile.type.nbytes)
    unless = "scales that leave their buffer"
    masked.guarded(s, inside, lambda: _keep(s, form, tile.address, cols), unless)
    return []


def _keep(s: OpContext, form: Form, scale: Val, count: Val) -> None:
    name = config.scale_register(s.case)
    unsupported_if(name not in registers.SCALES, "a queue without a place")
    for n, word in enumerate((form.number, scale, count)):
        s.x.store(I64, word, s.register_at(name, n), 8)


# ---- scaling


@dataclass(frozen=True, slots=True)
class Leaving:
    """The conversion of an accumulator by a push."""

    dtype: DType  # of what is sent
    layout: Layout  # in a slot of the consumer's buffer
    relu: str | None
    epilogue: int = 0  # hash of the epilogue of the queue, if it has one
    register: str = ""  # the register of the scale; empty: none
    form: Form = _WORD

    def ready(self, s: OpContext, cols: Val) -> Condition:
        """True if scales of this form are set, for enough columns."""
        x = s.x
        if not self.register:
            return TRUE
        form, count = (s.register(self.register, n) for n in (_FORM, _COUNT))
        guard = x.compare("eq", form, self.form.number)
        if self.form.element is None:
            return guard
        guard = guard & x.compare("sle", cols, count)
        return guard & x.compare("sgt", cols, 1)  # the word of a single column is whole

    def send(self, s: OpContext, tile: TileDesc, dst: Access) -> None:
        """Convert and store elements in a slot, row by row or column by column."""
        x = s.x
        (rows, cols) = tile.valid
        source = tile_access(s, tile)
        unsupported_if(len(dst.layout.rows) > 1 or len(dst.layout.cols) > 1, "boxes in a slot")
        scale, row = self._given(s)
        named = TileDesc(("", "%p0", "%p1"), tile.type, tile.pitch)
        places = ("ptr", dst.pointer), ("ptr", source.pointer)
        more = ("ptr", "%ctx"), ("ptr", row), ("i64", scale)
        given = Parameters(("i64", rows), ("i64", cols), *places, *more)
        layout, profile = dst.layout.renamed(given.name), s.case.profile

        def make(name: str) -> str:
            text, unit = Text(s.e.unit.declare), s.e.unit

            def word(index: int) -> str:
                unit.needs.words.add(index)
                return text.load_fixed("ptr", text.at(_GIVEN_CONTEXT, 8 * index))

            mover = Mover(text, [], word, False)
            outlet = Outlet(tile.type.dtype, self.dtype, self.relu, profile.scaling)
            self._write(mover, outlet, named, layout)
            return text.procedure(name, given.types)

        key = repr(("send", profile.name, self, tile.type, tile.pitch, layout))
        x.do(f"call void {s.e.unit.shared(key, make)}({given.listed})")
        if self.register == registers.TILE_QUANT:
            x.store(I64, 0, s.register_at(self.register, _FORM), 8)

    def _given(self, s: OpContext) -> tuple[Val, str]:
        """The word of the scale, and the address of a row of scales."""
        x = s.x
        if not self.register:
            return 0, "null"
        scale = s.register(self.register, _SCALE)
        if self.form.element is not None:
            row = row_type(self.form.element, self.form.cols)
            return 0, s.pointer(SPACE_NUMBERS[row.space], scale)
        signed = self.register != registers.TILE_QUANT and self.dtype is I8
        return (x.new(f"or i64 {scale}, {1 << SIGN}") if signed else scale), "null"

    def _write(self, x: Mover, outlet: Outlet, tile: TileDesc, dst: Strided) -> None:
        """The function: rows and columns, slot and tile are its parameters."""
        rows, cols = (Number(x.x, n) for n in tile.valid)
        src = TileRef(tile, "%p3", (rows, cols), tile_layout(tile), extent(tile))
        steps = [Number(x.x, axis[0].stride) for axis in (dst.rows, dst.cols)]
        one, none = Number(x.x, 1), Number(x.x, 0)
        place = ViewDesc(("",) * 12, self.dtype, GLOBAL_ND)
        slot = ViewRef(place, "%p2", (one, one, one, rows, cols), (none, none, none, *steps))

        def write(saturate: bool) -> None:
            change = self._change(x, outlet, saturate)
            x.place(rows, cols, lambda i, j: ((i, j), change(x.read(src, i, j), j), None), slot)

        keeps = x.get(registers.CTRL) >> registers.KEEP_SPECIALS & 1 == 1
        x.when(keeps, lambda: write(False), lambda: write(True))

    def _change(self, x: Any, outlet: Outlet, saturate: bool) -> Callable[[Any, Any], Any]:
        element = self.form.element
        if not self.register:
            return outlet.change(x, None, None, 0, saturate=saturate)
        if element is None:
            return outlet.change(x, None, Number(x.x, _GIVEN_SCALE), 0, saturate=saturate)
        place = TileDesc(("", 1, self.form.cols), row_type(element, self.form.cols))
        valid = Number(x.x, 1), Number(x.x, self.form.cols)
        fp = TileRef(place, _GIVEN_ROW, valid, tile_layout(place), extent(place))

        def words(j: Any) -> Any:
            found = x.read(fp, 0, j)
            if element.itemsize == 8:
                return found.view(np.dtype(np.uint64))
            return word_of(convert(found, element, F32), self.dtype)

        return outlet.scaled(words, True, saturate)


# ---- what a push does


@dataclass(frozen=True, slots=True)
class Leave:
    """The conversions that a push may apply; None: it copies."""

    usual: Leaving | None = None
    asks: bool = False  # a scale may be set for this push alone
    next: Leaving | None = None  # the conversion then; None: by Python

    @property
    def twice(self) -> bool:
        """True if both conversions are compiled."""
        return self.next is not None

    def has_usual(self, s: OpContext) -> Condition:
        """True if no scale is set for this push alone."""
        if not self.asks:
            return TRUE
        return s.x.compare("eq", s.register(registers.TILE_QUANT, _FORM), 0)


def leaving(s: OpContext, tile: TileDesc) -> Leave:
    """The conversions of the accumulator that is pushed here."""
    if tile.type.role is not Role.ACC:
        return Leave()
    found = list(s.e.compiler.module.walk())
    sets = [s.e.case(op) for op in found if op.body in _SETS]
    by_next = [case for case in sets if config.scale_register(case) == registers.TILE_QUANT]
    how = _epilogue(s, number_of(s))
    is_whole = int(s.case.word("split") or 0) == ring.WHOLE
    unsupported_if(how is not None and not is_whole, "halves of what is scaled")
    usual = None if how is None else _finished(s, how, sets, tile.type.dtype)
    forms = {_form(case) for case in by_next}
    form = next(iter(forms)) if how is None and is_whole and len(forms) == 1 else None
    if form is None or (form.element is not None and form.element.itemsize != U64.itemsize):
        return Leave(usual, bool(by_next))
    after = Leaving(next_result(form.kind), ND, None, 0, registers.TILE_QUANT, form)
    return Leave(usual, True, after)


def _finished(s: OpContext, how: Epilogue, sets: Sequence[Case], src: DType) -> Leaving:
    """The conversion by the epilogue of the queue."""
    number = number_of(s)
    layout, bits = queue.LAYOUTS.get(how.layout, ND), epilogue_bits(how, number)
    plain = Leaving(how.result(src), layout, how.relu, bits)
    if not how.scales:
        return plain
    form = _only([case for case in sets if config.scale_register(case) == quant_of(number)])
    return replace(plain, register=quant_of(number), form=form)


def _epilogue(s: OpContext, number: int) -> Epilogue | None:
    """The epilogue of the queue, if this function opens it."""
    function = next(s.op.around(Control.FUNCTION), s.op)
    opened = [s.e.case(op) for op in function.walk() if op.body is ring.INIT_FRONTEND]
    found = {ring.epilogue_of(case) for case in opened if int(case.word("id") or 0) == number}
    unsupported_if(len(found) > 1, "a queue that is opened in several ways")
    return next(iter(found), None)


def _only(cases: Sequence[Case]) -> Form:
    """The form of the scale, if all instructions that set it share one."""
    found, why = (
        {_form(case) for case in cases},
        "scales of several forms, or of none that is known",
    )
    return expect(found.pop() if len(found) == 1 else None, Form, why)


def _form(case: Case) -> Form | None:
    if case.row.body is config.QUANT_SCALAR:
        return Form(case.word("out_type"))
    type = case.type("fp")
    return Form.row(tile_type(type)) if isinstance(type, t.TileBuf) else None
