"""A pattern in L1, in compiled code."""

from __future__ import annotations

from collections.abc import Sequence

from pto.core.constants import BLOCK_BYTE_SIZE
from pto.isa.meaning.cube import load as cube
from pto.run.jit.border.values import Native, Place, TilePlace, Word
from pto.run.jit.emit.memory.burst import SMALL, multiple, words
from pto.run.jit.emit.table import Spot, emits
from pto.run.jit.emit.tile import planes
from pto.run.jit.llvm.shuffles import spread
from pto.run.jit.llvm.text import NotNative, Val, vector

_FILLED = ("block_num_32b", "dst_gap_32b")


@emits(cube.RAW_FILL_L1)
def _raw_fill(s: Spot) -> Sequence[Native]:
    """Blocks of 32 bytes, of a word again and again."""
    x, place = s.x, s.operand("dst")
    if not isinstance(place, Place | TilePlace):
        raise NotNative("a buffer that is a handle")
    offset, times, blocks, gap = words(s, "byte_offset", "repeat_times", *_FILLED)
    width = 2 if s.case.word("fill_word_bits") == "16" else 4
    start = x.add(place.address, offset)
    fine = x.both(x.compare("sge", offset, 0), multiple(s, start, BLOCK_BYTE_SIZE))
    for each in (offset, times, blocks, gap):
        fine = x.both(fine, x.compare("ult", each, SMALL >> 6))
    step = x.mul(x.add(blocks, gap), BLOCK_BYTE_SIZE)
    nbytes = x.add(x.mul(x.sub(times, 1), step), x.mul(blocks, BLOCK_BYTE_SIZE))
    none = x.compare("eq", x.mul(times, blocks), 0)
    fine = x.both(fine, x.either(none, s.e.inside(place.memory, start, nbytes)))

    def fill() -> None:
        item, count = f"i{8 * width}", BLOCK_BYTE_SIZE // width
        value = s.need(Word, "raw_value").name
        word = value if width == 4 else x.new(f"trunc i32 {value} to i16")
        row, first = spread(x, item, count, word), s.pointer(place.memory, start)

        def turn(i: Val) -> None:
            to = x.at(first, x.mul(i, step))

            def block(k: Val) -> None:
                x.store(vector(count, item), row, x.at(to, x.mul(k, BLOCK_BYTE_SIZE)))

            planes.loop(x, blocks, 1, block)

        planes.loop(x, times, 1, turn)

    planes.either_way(s, fine, fill, "a number is out of range, or not aligned")
    return []
