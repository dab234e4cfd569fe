"""Conversion of accumulator tiles by tile instructions: selects a conversion of `quantise.py`.

A scale is a word of 64 bits (micro-instruction manual): one for all elements, or a row with
one word per column.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from pto.core.convert import Round
from pto.core.dtypes import BF16, F8E4M3, F16, F32, HIFLOAT8, I8, I16, I32, U64, DType, dtype
from pto.core.errors import fail
from pto.core.memory import Memory, Space
from pto.core.primitives import isfinite, select
from pto.core.tile import Role, Tile, TileType
from pto.isa.meaning.cube.quantise import Finish, Scale, limited, rectified
from pto.isa.meaning.lanes import Lanes, convert
from pto.isa.meaning.machine import Machine
from pto.isa.meaning.memory import registers
from pto.isa.meaning.tile.mover import Mover
from pto.isa.meaning.tile.patch import cut
from pto.target.facts import FIXPIPE, Scaling

Words = npt.NDArray[np.uint64]

_SHIFT = 32


class Outlet:
    """Converts elements of `src` to `dst`; made once, called with a tile's elements."""

    def __init__(
        self, src: DType, dst: DType, relu: str | None = None, scaling: Scaling = FIXPIPE
    ) -> None:
        if relu not in (None, "no_relu", "normal_relu"):
            raise fail(
                "PTO-T172",
                f"the ISA does not define the slope of {relu} for tile instructions",
                help="write no_relu or normal_relu",
            )
        self.src, self.dst = src, dst
        self.relu = relu or "no_relu"
        self.scaling = scaling

    def __call__(
        self, core: Machine, values: Lanes, fp: Tile | None, word: int | None, column: int = 0
    ) -> Lanes:
        """`values` converted; `column` is the channel of the first column."""
        x = Mover(core)
        change = self.change(x, fp, word, column, saturate=not _keeps(x))
        return change(values, np.arange(values.shape[1])[None, :])

    def run(
        self, x: Mover, fp: Tile | None, word: Any, column: Any, then: Callable[[Any], None]
    ) -> None:
        """Call then(change) with the overflow behaviour that the control register selects."""
        if self.scaling.sources == "any" and not self._has_mode(fp is not None):
            fp = word = None  # the simulator accepts a scale and ignores it
        plain = fp is None and word is None
        if plain and self.src is self.dst and self.relu == "no_relu":
            then(None)
        elif plain and (self.src is self.dst or not self.dst.is_float):
            then(self.change(x, fp, word, column, saturate=True))
        else:
            ways = [
                self.change(x, fp, word, column, saturate=saturates) for saturates in (False, True)
            ]
            x.when(_keeps(x), lambda: then(ways[0]), lambda: then(ways[1]))

    def change(
        self, x: Mover, fp: Tile | None, word: Any, column: Any, *, saturate: bool
    ) -> Callable[[Lanes, Lanes], Lanes]:
        """fn(values, j): elements of column j, converted."""
        if fp is None and word is None:
            return lambda values, j: self.cast(values, saturate)

        def words(j: Lanes) -> Lanes:
            if fp is None:
                return x.word(x.number(word), np.dtype(np.uint64))
            return x.bytes_at(fp, (j + column) * 8, U64)

        return self.scaled(words, fp is not None, saturate)

    def scaled(
        self, words_of: Callable[[Lanes], Lanes], by_column: bool, saturate: bool
    ) -> Callable[[Lanes, Lanes], Lanes]:
        """fn(values, j): elements of column j, scaled by its word."""
        self._require_scaled()

        def scaled(values: Lanes, j: Lanes) -> Lanes:
            words = words_of(j)
            if self.dst is I16:
                return self._shifted(values, words)
            scale = Scale.words(words) if by_column else Scale.word(words)
            if self.dst.is_float:
                return self._rounded(values, scale, saturate)
            mode = "qf322b8_pre" if self.src is F32 else "req8"
            return Finish(mode, scale, self.relu, scaling=self.scaling).apply(
                values, self.src, self.dst
            )

        return scaled

    def _has_mode(self, by_column: bool) -> bool:
        """True if pto-isa defines a quantisation of these types: GetScalarPreQuantMode."""
        to = {F32: {F16, BF16}, I32: {F16, I16}}.get(self.src, set[DType]())
        if by_column and self.src is F32:
            to = set[DType]()
        byte = self.dst.is_integer and self.dst.bits == 8 and self.src in (F32, I32)
        return byte or self.dst in to

    def _require_scaled(self) -> None:
        byte = self.dst.is_integer and self.dst.itemsize == 1
        if not (self.dst.is_float or byte or (self.dst is I16 and self.src is I32)):
            raise fail("PTO-T173", f"an accumulator of {self.src} cannot be scaled to {self.dst}")

    def cast(self, values: Lanes, saturate: bool) -> Lanes:
        """Conversion without a scale: rounds once to nearest even; CTRL selects overflow."""
        if self.src is self.dst:
            return Finish(relu=self.relu, scaling=self.scaling).apply(values, self.src, self.dst)
        if self.relu == "normal_relu":
            values = rectified(values, self.scaling)
        return convert(values, self.src, self.dst, Round.RINT, saturate or not self.dst.is_float)

    def _rounded(self, values: Lanes, scale: Scale, saturate: bool) -> Lanes:
        """The product in f32, clamped to the range of dst (pto-isa TStore.hpp), then rounded."""
        product = values.astype(np.float32) * scale.scale
        if self.dst is not F32:
            inside = limited(product, np.float32(self.dst.min), np.float32(self.dst.max))
            product = select(isfinite(product), inside, product)
        finish = Finish(relu=self.relu, saturate=saturate, scaling=self.scaling)
        return finish.apply(product, F32, self.dst)

    def _shifted(self, values: Lanes, words: Words) -> Lanes:
        """i32 to i16: shifted right by 1 to 16 bits, clamped."""
        count = (words >> np.uint64(_SHIFT) & np.uint64(0xF)).astype(np.int32) + np.int32(1)
        low = np.int32(0 if self.relu == "normal_relu" else I16.min)
        return limited(values >> count, low, np.int32(I16.max)).astype(np.int16)


def _keeps(x: Mover) -> bool:
    """True if CTRL keeps inf and NaN."""
    return x.get(registers.CTRL) >> registers.KEEP_SPECIALS & 1 == 1


# Result types by the mode of an acc_push_epilogue; bytes are signed.
_RESULTS = {
    "f32_f16": F16,
    "f32_bf16": BF16,
    "deqf16": F16,
    "req8": I8,
    "qf322b8_pre": I8,
    "qf322f16_pre": F16,
    "qf322bf16_pre": BF16,
    "qs322bf16_pre": BF16,
    "qf322f32_pre": F32,
    "qf322fp8_pre": F8E4M3,
    "qf322hif8_pre": HIFLOAT8,
}
SIGN = 46  # of a scale word: bytes are signed


@dataclass(frozen=True, slots=True)
class Epilogue:
    """The conversion that a push applies to an accumulator: layout, quantisation, relu."""

    layout: str
    quant: str
    relu: str

    @property
    def scales(self) -> bool:
        """True if `set_quant_scalar` or `set_quant_vector` gives the scale."""
        return self.quant.endswith(("_scalar", "_vec"))

    def result(self, src: DType) -> DType:
        """The element type that the push sends."""
        return _RESULTS.get(self.quant.removesuffix("_scalar").removesuffix("_vec"), src)


def quant_of(queue: int) -> str:
    """The register with the scale, or with the tile of scales, of a queue."""
    return f"{registers.QUEUE_QUANT} {queue}"


def finished(core: Machine, tile: Tile, how: Epilogue, queue: int) -> Tile:
    """An accumulator after the epilogue of its queue."""
    result = how.result(tile.type.dtype)
    fp = None
    word = None
    if how.scales:
        words = _words(core, queue, tile.get_valid()[1], result)
        if words.size == 1:
            word = int(words[0])
        else:
            row = TileType.of(Role.SCALING, U64, 1, words.size)
            fp = Tile(row, Memory.over(Space.FIXPIPE, words.view(np.uint8)))
    return _sent(core, tile, result, fp, word, how.relu)


def _words(core: Machine, queue: int, cols: int, result: DType) -> Words:
    """A scale as words: floats are encoded, a tile of 64-bit elements is used unchanged."""
    scale = core.registers.get(quant_of(queue))
    if scale is None:
        raise fail(
            "PTO-D198",
            f"queue {queue} scales pushed accumulators, but its scale was never set",
            help="set it with pto.set_quant_scalar or pto.set_quant_vector and the id of the queue",
        )
    if isinstance(scale, Tile):
        values = scale.read_valid().reshape(-1)[:cols]
        if scale.type.dtype.itemsize == values.itemsize == 8:
            return values.view(np.uint64)
    else:
        values = np.array([scale])
    return word_of(values.astype(np.float32), result)


def word_of(scale: Lanes, result: DType) -> Lanes:
    """An f32 as the word of a scale."""
    return scale.view(np.uint32).astype(np.uint64) | np.uint64((result is I8) << SIGN)


def _sent(
    core: Machine, tile: Tile, result: DType, fp: Any, word: Any, relu: str | None = None
) -> Tile:
    """An accumulator converted to elements of `result`."""
    outlet = Outlet(tile.type.dtype, result, relu, core.profile.scaling)
    type = TileType.of(Role.ACC, result, *tile.type.shape)
    sent = Tile(type, Memory(Space.L0C, type.nbytes), 0, tile.get_valid())
    sent.write_valid(outlet(core, cut(tile, 0, 0, *tile.get_valid()), fp, word))
    return sent


def next_result(kind: str | None) -> DType:
    return dtype(kind or "i8")


def outgoing(core: Machine, tile: Tile) -> Tile:
    """The accumulator a push sends, scaled once by the last set_quant_scalar or set_quant_vector.

    The vector form names no result type. With one word per column the fixpipe converts f32 to
    bytes, and by default i32 to i8.
    """
    setting = registers.get(core, registers.TILE_QUANT)
    if setting is None or tile.type.role is not Role.ACC:
        return tile
    registers.put(core, registers.TILE_QUANT, None)
    kind, scale = setting
    fp, word = (None, scale) if kind else (scale, None)
    return _sent(core, tile, next_result(kind), fp, word)
