"""Accumulators on their way into a queue, in compiled code: scales are set, elements scaled.

A push is compiled for one form of scale: that of every instruction that sets it. Where a scale
turns out to be another one, Python does it. What is set for the next push alone is looked at when
it comes: without it a push is as any other.
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
from pto.run.jit.border.context import REGISTERS, epilogue_bits
from pto.run.jit.border.scales import Form, row_type
from pto.run.jit.border.state import register_offset
from pto.run.jit.border.values import SPACE_NUMBERS, Native, TilePlace, ViewPlace, Word
from pto.run.jit.emit.order.ring import number_of
from pto.run.jit.emit.table import Spot, emits
from pto.run.jit.emit.tile import boxes, planes
from pto.run.jit.emit.tile.elements import TileRef, ViewRef
from pto.run.jit.emit.tile.move import Side, tile_side
from pto.run.jit.emit.tile.mover import Mover
from pto.run.jit.llvm.index import Number
from pto.run.jit.llvm.text import I64, NotNative, Text, Val

_SETS = (config.QUANT_SCALAR, config.QUANT_VECTOR)
_FORM, _SCALE, _COUNT = range(3)  # words of a register
_WORD = Form()  # one scale for all

# ---- setting


@emits(config.QUANT_SCALAR)
def _scalar(s: Spot) -> Sequence[Native]:
    word, x = s.need(Word, "preQuantScalar"), s.x
    if word.types != ("float",):
        raise NotNative("a scale that is no f32")
    bits = x.new(f"zext i32 {x.new(f'bitcast float {word.name} to i32')} to i64")
    form = Form(s.case.word("out_type"))
    if form.kind == "i8":
        bits = x.new(f"or i64 {bits}, {1 << SIGN}")
    _keep(s, form, bits, 0)
    return []


@emits(config.QUANT_VECTOR)
def _vector(s: Spot) -> Sequence[Native]:
    tile: TilePlace = s.need(TilePlace, "fp")
    form, (rows, cols) = Form.row(tile.type), tile.valid
    if form is None or rows != 1 or tile.pitch not in (None, form.cols):
        raise NotNative("scales that are no plain row")
    inside = s.e.inside(tile.memory, tile.address, tile.type.nbytes)
    unless = "scales that leave their buffer"
    planes.either_way(s, inside, lambda: _keep(s, form, tile.address, cols), unless)
    return []


def _keep(s: Spot, form: Form, scale: Val, count: Val) -> None:
    name = config.scale_register(s.case)
    if name not in registers.SCALES:
        raise NotNative("a queue without a place")
    for n, word in enumerate((form.number, scale, count)):
        s.x.store(I64, word, _place(s, name, n), 8)


def _place(s: Spot, name: str, n: int) -> str:
    return s.x.at(s.e.word(REGISTERS), register_offset(name) + 8 * n)


# ---- scaling


@dataclass(frozen=True, slots=True)
class Leaving:
    """What a push does to an accumulator."""

    dtype: DType  # of what is sent
    layout: Layout  # in a slot of the consumer's buffer
    relu: str | None
    epilogue: int = 0  # bits of it, where the queue has one
    register: str = ""  # where the scale is; nothing: there is none
    form: Form = _WORD

    def ready(self, s: Spot, cols: Val) -> str:
        """Whether its scales are there, in this form, and enough of them."""
        x = s.x
        if not self.register:
            return "true"
        form, count = (x.load(I64, _place(s, self.register, n), 8) for n in (_FORM, _COUNT))
        fine = x.compare("eq", form, self.form.number)
        if self.form.element is None:
            return fine
        fine = x.both(fine, x.compare("sle", cols, count))
        return x.both(fine, x.compare("sgt", cols, 1))  # the word of a single column is whole

    def send(self, s: Spot, tile: TilePlace, dst: Side) -> None:
        """Elements into a slot, row after row or column after column."""
        x, (rows, cols), source = s.x, tile.valid, tile_side(s, tile)
        if len(dst.field.rows) > 1 or len(dst.field.cols) > 1:
            raise NotNative("boxes in a slot")
        scale, row = self._given(s)
        named = TilePlace(("", "%p0", "%p1"), tile.type, tile.pitch)
        profile = s.case.profile

        def make(name: str) -> str:
            text, unit = Text(), s.e.unit

            def word(index: int) -> str:
                unit.needs.words.add(index)
                return text.load("ptr", text.at("%ctx", 8 * index), 8, ", !invariant.load !0")

            mover = Mover(text, unit.declare, [], word, False)
            outlet = Outlet(tile.type.dtype, self.dtype, self.relu, profile.scaling)
            self._write(mover, outlet, named, dst)
            text.do("ret void")
            listed, _ = planes.parameters(["i64", "i64", "ptr", "ptr", *["i64"] * len(more)])
            head = f"define internal void {name}(ptr %ctx, ptr %fp, i64 %scale, {listed})"
            return text.function(f"{head} noinline nounwind")

        more = dst.arguments
        key = repr(("send", profile.name, self, tile.type, tile.pitch, dst.field))
        name = s.e.unit.shared(key, make)
        words = f"i64 {rows}, i64 {cols}, ptr {dst.pointer}, ptr {source.pointer}"
        words += "".join(f", i64 {a}" for a in more)
        x.do(f"call void {name}(ptr %ctx, ptr {row}, i64 {scale}, {words})")
        if self.register == registers.TILE_QUANT:
            x.store(I64, 0, _place(s, self.register, _FORM), 8)

    def _given(self, s: Spot) -> tuple[Val, str]:
        """The word of the scale, and where a row of them begins."""
        x = s.x
        if not self.register:
            return 0, "null"
        scale = x.load(I64, _place(s, self.register, _SCALE), 8)
        if self.form.element is not None:
            row = row_type(self.form.element, self.form.cols)
            return 0, s.pointer(SPACE_NUMBERS[row.space], scale)
        signed = self.register != registers.TILE_QUANT and self.dtype is I8
        return (x.new(f"or i64 {scale}, {1 << SIGN}") if signed else scale), "null"

    def _write(self, x: Mover, outlet: Outlet, tile: TilePlace, dst: Side) -> None:
        """The function: rows and columns, slot and tile are its parameters."""
        rows, cols = (Number(x.x, n) for n in tile.valid)
        src = TileRef(tile, "%p3", (rows, cols), boxes.field(tile), boxes.extent(tile))
        steps = [Number(x.x, axis[0].step) for axis in (dst.field.rows, dst.field.cols)]
        one, none = Number(x.x, 1), Number(x.x, 0)
        place = ViewPlace(("",) * 12, self.dtype, GLOBAL_ND)
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
            return outlet.change(x, None, Number(x.x, "%scale"), 0, saturate=saturate)
        place = TilePlace(("", 1, self.form.cols), row_type(element, self.form.cols))
        valid = Number(x.x, 1), Number(x.x, self.form.cols)
        fp = TileRef(place, "%fp", valid, boxes.field(place), boxes.extent(place))

        def words(j: Any) -> Any:
            found = x.read(fp, 0, j)
            if element.itemsize == 8:
                return found.view(np.dtype(np.uint64))
            return word_of(convert(found, element, F32), self.dtype)

        return outlet.scaled(words, True, saturate)


# ---- what a push does


@dataclass(frozen=True, slots=True)
class Leave:
    """What a push may do to an accumulator; None: it goes as it is."""

    usual: Leaving | None = None
    asks: bool = False  # whether something may be set for this push alone
    next: Leaving | None = None  # what happens then; None: that is Python's

    @property
    def twice(self) -> bool:
        """Whether it is compiled both ways."""
        return self.next is not None

    def has_usual(self, s: Spot) -> str:
        """Whether nothing is set for this push alone."""
        if not self.asks:
            return "true"
        return s.x.compare("eq", s.x.load(I64, _place(s, registers.TILE_QUANT, _FORM), 8), 0)


def leaving(s: Spot, tile: TilePlace) -> Leave:
    """What happens to an accumulator that is pushed here."""
    if tile.type.role is not Role.ACC:
        return Leave()
    found = list(s.e.compiler.module.walk())
    sets = [s.e.case(op) for op in found if op.body in _SETS]
    by_next = [case for case in sets if config.scale_register(case) == registers.TILE_QUANT]
    how = _epilogue(s, number_of(s))
    is_whole = int(s.case.word("split") or 0) == ring.WHOLE
    if how is not None and not is_whole:
        raise NotNative("halves of what is scaled")
    usual = None if how is None else _finished(s, how, sets, tile.type.dtype)
    forms = {_form(case) for case in by_next}
    form = next(iter(forms)) if how is None and is_whole and len(forms) == 1 else None
    if form is None or (form.element is not None and form.element.itemsize != U64.itemsize):
        return Leave(usual, bool(by_next))
    after = Leaving(next_result(form.kind), ND, None, 0, registers.TILE_QUANT, form)
    return Leave(usual, True, after)


def _finished(s: Spot, how: Epilogue, sets: Sequence[Case], src: DType) -> Leaving:
    """By the epilogue of the queue."""
    number = number_of(s)
    layout, bits = queue.LAYOUTS.get(how.layout, ND), epilogue_bits(how, number)
    plain = Leaving(how.result(src), layout, how.relu, bits)
    if not how.scales:
        return plain
    form = _only([case for case in sets if config.scale_register(case) == quant_of(number)])
    return replace(plain, register=quant_of(number), form=form)


def _epilogue(s: Spot, number: int) -> Epilogue | None:
    """That of the queue, where this function opens it."""
    function = next(s.op.around(Control.FUNCTION), s.op)
    opened = [s.e.case(op) for op in function.walk() if op.body is ring.INIT_FRONTEND]
    found = {ring.epilogue_of(case) for case in opened if int(case.word("id") or 0) == number}
    if len(found) > 1:
        raise NotNative("a queue that is opened in several ways")
    return next(iter(found), None)


def _only(cases: Sequence[Case]) -> Form:
    """The form of the scale, which all that set it share."""
    found = {_form(case) for case in cases}
    form = next(iter(found), None)
    if len(found) != 1 or form is None:
        raise NotNative("scales of several forms, or of none that is known")
    return form


def _form(case: Case) -> Form | None:
    if case.row.body is config.QUANT_SCALAR:
        return Form(case.word("out_type"))
    type = case.type("fp")
    return Form.row(tile_type(type)) if isinstance(type, t.TileBuf) else None
