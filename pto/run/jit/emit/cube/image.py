"""Convolutions without the im2col matrix: products read the left operand from the image.

A row of that matrix is the window of the filter at one position, and windows of neighbours overlap.
So the lines of the image that some rows need are unpacked once, with their padding. A row is the
offset of its window; along k a window is one contiguous run for each line of the filter.
"""

from __future__ import annotations

from dataclasses import dataclass

from pto.core.constants import C0_SIZE_BYTE
from pto.core.dtypes import DType
from pto.isa.meaning.memory import registers
from pto.isa.meaning.tile.img2col import FAR, FeatureMap, Filter, matrix_of, number
from pto.run.jit.emit.cube.unpack import FACTORS, RIGHT_AT, widened
from pto.run.jit.emit.emitter import OpContext
from pto.run.jit.emit.tile import planes
from pto.run.jit.emit.tile.numbers import Numbers
from pto.run.jit.llvm import lanes
from pto.run.jit.llvm.text import Text, Val, element, expect, unsupported_if, vector
from pto.run.jit.runtime.values import TileDesc


@dataclass(frozen=True, slots=True)
class Windows:
    """The layout of overlapping rows of the left operand, in elements."""

    across: int  # windows side by side
    step: int  # from a window to the one beside it
    down: int  # from a window to the one below it
    run: int  # along k so many follow each other
    jump: int  # from run to run
    high: int  # runs of a group of channels
    group: int  # from group to group

    def rows(self, x: Text, base: str, i: Val, count: int) -> list[str]:
        """The addresses of `count` windows, from number `i` on."""
        line, col = x.over(i, self.across), x.rest(i, self.across)
        first = x.at(base, x.mul(x.add(x.mul(line, self.down), x.mul(col, self.step)), 4))
        found = [first]
        for n in range(1, count):
            if n >= self.across:
                found += self.rows(x, base, x.add(i, n), 1)
                continue
            below = x.compare("sge", x.add(col, n), self.across)
            back = 4 * (self.down - self.across * self.step)
            more = x.new(f"select i1 {below}, i64 {back}, i64 0")
            found.append(x.at(first, x.add(more, 4 * n * self.step)))
        return found

    def skipped(self, x: Text, run: Val) -> Val:
        """Bytes from the first run of a window to another."""
        group, line = x.over(run, self.high), x.rest(run, self.high)
        return x.mul(x.add(x.mul(group, self.group), x.mul(line, self.jump)), 4)


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
    def windows(self) -> Windows:
        c0, steps, pitch = self._c0, self.steps, self._pitch
        across = steps.span(self.plane)[1] // steps.stride_w + 1
        return Windows(
            across,
            steps.stride_w * c0,
            steps.stride_h * pitch,
            steps.filter_w * c0,
            steps.dilation_h * pitch,
            steps.filter_h,
            self._most * pitch,
        )

    @property
    def nbytes(self) -> int:
        """Unpacked, at most."""
        return self.groups * self.windows.group * 4

    @property
    def _c0(self) -> int:
        return C0_SIZE_BYTE // self.dtype.itemsize

    @property
    def _pitch(self) -> int:
        return (self.plane.left + self.plane.w + self.plane.right) * self._c0

    @property
    def _most(self) -> int:
        """The largest number of lines that the windows need."""
        across = self.steps.span(self.plane)[1] // self.steps.stride_w + 1
        return self._lines(-(-(self.rows - 1) // across) + 1)

    def _lines(self, high: int) -> int:
        steps = self.steps
        return (high - 1) * steps.stride_h + (steps.filter_h - 1) * steps.dilation_h + 1

    def unpack(self, s: OpContext, to: str) -> Val:
        """Unpack the lines that these windows need; returns the number of the first window in its
        line."""
        x, across, steps = s.x, self.windows.across, self.steps
        first = x.rest(self.row, across)
        top = x.sub(x.mul(x.over(self.row, across), steps.stride_h), self.plane.top)
        last = x.over(x.add(first, self.rows - 1), across)
        lines = x.add(x.mul(last, steps.stride_h), self._lines(1))
        key = repr(("image", self.dtype, self.plane, self._pitch, self._most, self.pad))
        size = self.plane.h * self.plane.w * C0_SIZE_BYTE
        for n in range(self.groups):
            source = x.at(self.pointer, x.mul(x.add(self.group, n), size))
            place = x.at(to, n * self.windows.group * 4)
            given = [("i64", lines), ("i64", top), ("ptr", place), ("ptr", source)]
            s.call(key, given, self._write)
        return first

    def _write(self, x: Text) -> None:
        """f(lines, the first of them, dst, src)"""
        c0, plane, dtype = self._c0, self.plane, self.dtype
        spot, type = lanes.Lanes(x, c0), vector(c0, FACTORS[dtype])
        item = vector(c0, element(dtype))
        bits = f"splat (i{8 * dtype.itemsize} {self.pad})"
        pad = x.new(f"bitcast {vector(c0, f'i{8 * dtype.itemsize}')} {bits} to {item}")
        beside = str(widened(spot, dtype, pad))

        def fill(place: str, pixels: int) -> None:
            x.loop(pixels, 1, lambda n: x.store(type, beside, x.at(place, x.mul(n, 4 * c0))))

        def line(n: Val) -> None:
            y, place = x.add("%p1", n), x.at("%p2", x.mul(n, self._pitch * 4))

            def inside() -> None:
                source = x.at("%p3", x.mul(y, plane.w * C0_SIZE_BYTE))
                target = x.at(place, plane.left * 4 * c0)

                def pixel(at: Val) -> None:
                    found = widened(
                        spot, dtype, x.load(item, x.at(source, x.mul(at, C0_SIZE_BYTE)))
                    )
                    x.store(type, found, x.at(target, x.mul(at, 4 * c0)))

                fill(place, plane.left)
                x.loop(plane.w, 1, pixel)
                fill(x.at(target, plane.w * 4 * c0), plane.right)

            pixels = plane.left + plane.w + plane.right
            x.when(x.compare("ult", y, plane.h), inside, lambda: fill(place, pixels))

        x.loop("%p0", 1, line)


def image(s: OpContext, src: TileDesc, dst: TileDesc) -> tuple[Image, str]:
    """The matrix that a TIMG2COL would write, and the condition under which products may read it
    instead. Raises UnsupportedLowering if the matrix has to be written."""
    plane, (matrix, auto) = FeatureMap.of(s.case), matrix_of(s.case)
    steps = Filter(*(number(s.case, name) for name in Filter.__slots__))
    c0, pad = C0_SIZE_BYTE // src.type.itemsize, number(s.case, "pad_value")
    deep = c0 * steps.filter_h * steps.filter_w
    unusual = auto or FACTORS.get(src.type.dtype) != "float" or steps.dilation_w > 1
    unsupported_if(unusual, "an image of an unusual kind")
    rows, cols = (expect(n, int, "rows that are no whole windows") for n in dst.valid)
    unsupported_if(cols % deep or rows < 1, "rows that are no whole windows")
    high, wide = steps.span(plane)
    size, images = plane.h * plane.w * steps.c1 * C0_SIZE_BYTE, steps.n * steps.d
    missing = min(high, wide) < 0 or images * size > src.type.nbytes
    unsupported_if(missing, "an image that is not there")
    channels = number(s.case, "channels")
    unsupported_if(channels and channels < steps.c1 * c0, "channels that do not count")
    x, table = s.x, Numbers(s.x, s.e.word)
    row, col = (table.number(s.operand(name)).value for name in ("posM", "posK"))
    begins = x.both(x.compare("ult", row, FAR), x.compare("ult", col, FAR))
    s.fault_unless(begins)
    places = (high // steps.stride_h + 1) * (wide // steps.stride_w + 1)
    which, row = x.over(row, places), x.rest(row, places)
    known = x.both(
        _agrees(table, f"{registers.FMATRIX} {matrix}", *plane),
        _agrees(table, f"{registers.IMG2COL_PADDING} {matrix}", pad),
        x.compare("eq", x.rest(col, deep), 0),
        x.compare("sle", x.add(col, cols), steps.c1 * deep),
        x.compare("slt", which, images),
        x.compare("sle", x.add(row, rows), places),  # all of one image
    )
    unsupported_if(known == "false", "rows beyond the image")
    group, kind = x.over(col, deep), src.type.dtype
    pointer = x.at(planes.machine_address(s, src), x.mul(which, size))
    found = Image(kind, plane, steps, rows, cols // deep, pad, pointer, row, group)
    unsupported_if(found.nbytes > RIGHT_AT, "an image larger than the scratch memory")
    return found, known


def _agrees(table: Numbers, register: str, *words: int) -> str:
    """True if a register holds these words, or is not set."""
    x, held = table.x, (table.get(register, n).value for n in range(len(words)))
    same = x.both(*(x.compare("eq", a, b) for a, b in zip(held, words, strict=True)))
    return x.either(x.negated(table.has(register).name), same)
