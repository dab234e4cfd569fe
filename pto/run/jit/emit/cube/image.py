"""Convolutions without the im2col matrix: products read the left operand from the image.

A row of that matrix is the window of the filter at one position, and windows of neighbours overlap.
So the lines of the image that some rows need are unpacked once, with their padding. A row is the
offset of its window; along k a window is one contiguous run for each line of the filter.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pto.core.constants import C0_SIZE_BYTE
from pto.core.dtypes import F32, DType, decode
from pto.core.layout import REST, Mode
from pto.core.tile import Role
from pto.isa.meaning.memory import registers
from pto.isa.meaning.tile.img2col import FAR, FeatureMap, Filter, matrix_of, number
from pto.run.jit.emit.cube.unpack import FACTORS, RIGHT_AT, unpack
from pto.run.jit.emit.handle.view import Numbers
from pto.run.jit.emit.operation import OpContext
from pto.run.jit.emit.tile import masked
from pto.run.jit.emit.tile.move import fill
from pto.run.jit.ir import kinds
from pto.run.jit.ir.strided import Access, Strided, row_major
from pto.run.jit.llvm.condition import Condition, all_of
from pto.run.jit.llvm.text import constant
from pto.run.jit.llvm.value import Val
from pto.run.jit.runtime.values import TileDesc


@dataclass(frozen=True, slots=True)
class Image:
    """The matrix of a convolution as TIMG2COL would write it."""

    dtype: DType
    plane: FeatureMap
    steps: Filter
    rows: int
    groups: int  # of channels, in a row
    pad: int
    pointer: str
    row: Val  # of its image: the first here
    group: Val  # the first here

    @property
    def windows(self) -> Strided:
        """The unpacked windows, of which neighbours overlap: side by side, then below each other.
        Along k a window is lines of the filter, then groups of channels."""
        c0 = self._c0
        steps = self.steps
        pitch = self._pitch
        rows = Mode(self._across, steps.stride_w * c0), Mode(REST, steps.stride_h * pitch)
        lines = Mode(steps.filter_h, steps.dilation_h * pitch)
        return Strided(F32, rows, (Mode(steps.filter_w * c0, 1), lines, Mode(REST, self._group)))

    @property
    def nbytes(self) -> int:
        """Unpacked, at most."""
        return self.groups * self._group * 4

    @property
    def _across(self) -> int:
        """Windows side by side."""
        return self.steps.span(self.plane)[1] // self.steps.stride_w + 1

    @property
    def _c0(self) -> int:
        return C0_SIZE_BYTE // self.dtype.itemsize

    @property
    def _pitch(self) -> int:
        return (self.plane.left + self.plane.w + self.plane.right) * self._c0

    @property
    def _group(self) -> int:
        """Elements from a group of channels to the next: as many lines as the windows may need."""
        return self._lines(-(-(self.rows - 1) // self._across) + 1) * self._pitch

    def _lines(self, high: int) -> int:
        steps = self.steps
        return (high - 1) * steps.stride_h + (steps.filter_h - 1) * steps.dilation_h + 1

    def unpack(self, s: OpContext, to: str) -> Val:
        """Unpack the lines that these windows need, with the padding around the image; returns the
        number of the first window in its line."""
        x = s.x
        steps = self.steps
        plane = self.plane
        c0 = self._c0
        first, above = x.rest(self.row, self._across), x.over(self.row, self._across)
        top = x.sub(x.mul(above, steps.stride_h), plane.top)
        last = x.over(x.add(first, self.rows - 1), self._across)
        lines = x.add(x.mul(last, steps.stride_h), self._lines(1))
        begin = x.smaller(x.greater(x.sub(0, top), 0), lines)
        end = x.greater(x.smaller(x.sub(plane.h, top), lines), begin)
        left = plane.left * c0
        right = self._pitch - plane.right * c0
        long = plane.w * c0
        pad = decode(self.dtype, np.array([self.pad], self.dtype.storage))
        beside = constant(kinds.F32, pad[0])
        group = Access(row_major(F32, self._pitch), to)
        source = Access(row_major(self.dtype, long), self.pointer)
        for n in range(self.groups):
            target = group.at(x, 0, n * self._group)
            channels = source.at(x, x.mul(x.add(self.group, n), plane.h), 0)
            for rows in ((0, begin), (end, lines)):
                fill(s, target, beside, rows, (0, self._pitch))
            for cols in ((0, left), (right, self._pitch)):
                fill(s, target, beside, (begin, end), cols)
            inside = channels.at(x, x.add(top, begin), 0)
            unpack(s, target.at(x, begin, left), inside, x.sub(end, begin), long)
        return first


def image(s: OpContext, src: TileDesc, dst: TileDesc) -> tuple[Image, Condition] | None:
    """The matrix that a TIMG2COL would write, and the condition under which products may read it
    instead; None if the matrix has to be written."""
    plane, (matrix, auto) = FeatureMap.of(s.case), matrix_of(s.case)
    steps = Filter(*(number(s.case, name) for name in Filter.__slots__))
    c0, pad = C0_SIZE_BYTE // src.type.itemsize, number(s.case, "pad_value")
    deep, channels = c0 * steps.filter_h * steps.filter_w, number(s.case, "channels")
    (rows, cols), (high, wide) = dst.valid, steps.span(plane)
    size, images = plane.h * plane.w * steps.c1 * C0_SIZE_BYTE, steps.n * steps.d
    is_left = dst.type.role is Role.LEFT
    if auto or not is_left or FACTORS.get(src.type.dtype) != "float" or steps.dilation_w > 1:
        return None
    if not isinstance(rows, int) or not isinstance(cols, int) or cols % deep or rows < 1:
        return None
    if min(high, wide) < 0 or images * size > src.type.nbytes or 0 < channels < steps.c1 * c0:
        return None
    x, table = s.x, Numbers(s.x, s.e.word)
    row, col = (table.number(s.operand(name)).value for name in ("posM", "posK"))
    begins = x.compare("ult", row, FAR) & x.compare("ult", col, FAR)
    s.fault_unless(begins)
    places = (high // steps.stride_h + 1) * (wide // steps.stride_w + 1)
    which, row = x.over(row, places), x.rest(row, places)
    known = all_of(
        _agrees(table, f"{registers.FMATRIX} {matrix}", *plane),
        _agrees(table, f"{registers.IMG2COL_PADDING} {matrix}", pad),
        x.compare("eq", x.rest(col, deep), 0),
        x.compare("sle", x.add(col, cols), steps.c1 * deep),
        x.compare("slt", which, images),
        x.compare("sle", x.add(row, rows), places),  # all of one image
    )
    group, kind = x.over(col, deep), src.type.dtype
    pointer = x.at(masked.machine_address(s, src), x.mul(which, size))
    found = Image(kind, plane, steps, rows, cols // deep, pad, pointer, row, group)
    return None if known.is_false or found.nbytes > RIGHT_AT else (found, known)


def _agrees(table: Numbers, register: str, *words: int) -> Condition:
    """True if a register holds these words, or is not set."""
    x, held = table.x, (table.get(register, n).value for n in range(len(words)))
    same = all_of(*(x.compare("eq", a, b) for a, b in zip(held, words, strict=True)))
    return ~table.has(register) | same
