"""Gathers and scatters of items by numbers in memory.

They load and store one by one: no processor gathers or scatters faster, and many are half as fast.
Moving lanes out of a register is slow, so numbers are loaded, as many at a time as a word holds.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from pto.run.jit.llvm.text import Text, vector, width_of
from pto.run.jit.llvm.value import StoredNumbers, Val

_WORD: Final = 64


def _addresses(x: Text, base: str, count: int, numbers: StoredNumbers) -> Iterator[str]:
    """Where the items of the numbers lie."""
    place, bits, unit = numbers
    in_word = min(_WORD // bits, count)
    for n in range(0, count, in_word):
        size = min(in_word, count - n) * bits
        word = x.load(f"i{size}", x.at(place, n * bits // 8))
        if size < _WORD:
            word = x.new(f"zext i{size} {word} to i64")
        for k in range(size // bits):
            number = x.new(f"lshr i64 {word}, {k * bits}") if k else word
            if (k + 1) * bits < size:
                number = x.new(f"and i64 {number}, {(1 << bits) - 1}")
            yield x.new(f"getelementptr i{8 * unit}, ptr {base}, i64 {number}")


def pick(x: Text, base: str, count: int, item: str, numbers: StoredNumbers) -> str:
    """Items as lanes. As integers: of halves LLVM would make vectors of one and join them."""
    word = f"i{width_of(item)}"
    type, found = vector(count, word), "poison"
    for n, address in enumerate(_addresses(x, base, count, numbers)):
        found = x.new(f"insertelement {type} {found}, {word} {x.load(word, address)}, i64 {n}")
    return found if word == item else x.new(f"bitcast {type} {found} to {vector(count, item)}")


def put(x: Text, base: str, count: int, item: str, numbers: StoredNumbers, values: Val) -> None:
    """Lanes, one after the other: the last of equal numbers stays."""
    for n, address in enumerate(_addresses(x, base, count, numbers)):
        one = x.new(f"extractelement {vector(count, item)} {values}, i64 {n}")
        x.store(item, one, address)
