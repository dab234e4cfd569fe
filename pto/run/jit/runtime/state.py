"""Flags and registers of an agent in arrays that compiled code shares with Python.

Both engines see the same values: these mappings replace the agent's dictionaries.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, MutableMapping
from typing import Any, Final, TypeVar

import numpy as np
import numpy.typing as npt

from pto.isa.meaning.memory import registers
from pto.isa.row.flag import ANY

Flag = tuple[str, str, int]
_K = TypeVar("_K")

EVENT_IDS: Final = 64
_PIPES: Final = ("S", "V", "M", "MTE1", "MTE2", "MTE3", "FIX", "ALL", "MTE4", "MTE5", "V2")
_NAMED: Final = (*_PIPES, ANY)
NAMES: Final = {name: n for n, name in enumerate(_NAMED)}


def flag_offset(src: str, dst: str) -> int | None:
    """The byte offset of the flag of event 0 between two pipes; None if it has none."""
    if src not in NAMES or dst not in NAMES:
        return None
    return (NAMES[src] * len(NAMES) + NAMES[dst]) * EVENT_IDS * 4


class SharedCounts(MutableMapping[_K, int]):
    """Counts in an array that compiled code shares, and others in a dictionary; 0 if not set."""

    def __init__(self, before: Mapping[_K, int], counts: npt.NDArray[Any]) -> None:
        self.counts = counts
        self._others: dict[_K, int] = {}
        self.update(before)

    def _place(self, key: _K) -> tuple[int, int, int] | None:
        """The index of a key in the array; None if it has none."""
        raise NotImplementedError

    def _key(self, a: int, b: int, c: int) -> _K:
        """The key of an index."""
        raise NotImplementedError

    def __getitem__(self, key: _K) -> int:
        place = self._place(key)
        return self._others.get(key, 0) if place is None else int(self.counts[place])

    def __setitem__(self, key: _K, value: int) -> None:
        place = self._place(key)
        if place is None:
            self._others[key] = value
        else:
            self.counts[place] = value

    def __delitem__(self, key: _K) -> None:
        self[key] = 0
        self._others.pop(key, None)

    def clear(self) -> None:
        """Set all counts to 0: a count in the array cannot be removed."""
        self.counts[:] = 0
        self._others.clear()

    def __iter__(self) -> Iterator[_K]:
        yield from (self._key(*map(int, place)) for place in np.argwhere(self.counts))
        yield from self._others

    def __len__(self) -> int:
        return int(np.count_nonzero(self.counts)) + len(self._others)


class Flags(SharedCounts[Flag]):
    """Counts of flags between pipes."""

    def __init__(self, before: Mapping[Flag, int]) -> None:
        super().__init__(before, np.zeros((len(NAMES), len(NAMES), EVENT_IDS), np.int32))

    def _place(self, key: Flag) -> tuple[int, int, int] | None:
        src, dst, event = key
        known = src in NAMES and dst in NAMES and 0 <= event < EVENT_IDS
        return (NAMES[src], NAMES[dst], event) if known else None

    def _key(self, a: int, b: int, c: int) -> Flag:
        return _NAMED[a], _NAMED[b], c


SIGNAL_IDS: Final = 64
VECTORS = 0
CUBES = 1
_HEAD = 2  # words before the counts
_RECEIVERS: Final = (("cube", 0), ("vector", 0), ("vector", 1), ("both", 0))
Signal = tuple[tuple[str, int, int], int]  # (receiver's side, its sub-block, id), sender


def receiver(side: str) -> int:
    """The number of a side as a receiver of signals; sub-block 1 comes after sub-block 0."""
    return _RECEIVERS.index((side, 0))


def signal_offset(heard: int) -> int:
    """The byte offset of the signals to one receiver: a count for each id and sender."""
    return 8 * (_HEAD + heard * SIGNAL_IDS * 2)


class Signals(SharedCounts[Signal]):
    """Counts of signals between the agents of a core, after the number of its agents."""

    def __init__(self, before: Mapping[Signal, int]) -> None:
        self.words = np.zeros(_HEAD + len(_RECEIVERS) * SIGNAL_IDS * 2, np.int64)
        super().__init__(before, self.words[_HEAD:].reshape(len(_RECEIVERS), SIGNAL_IDS, 2))

    def count_agents(self, vectors: int, cubes: int) -> None:
        """Set how many agents of each kind the core has now."""
        self.words[VECTORS], self.words[CUBES] = vectors, cubes

    def _place(self, key: Signal) -> tuple[int, int, int] | None:
        (side, sub, number), sender = key
        known = (side, sub) in _RECEIVERS and 0 <= number < SIGNAL_IDS and 0 <= sender < 2
        return (_RECEIVERS.index((side, sub)), number, sender) if known else None

    def _key(self, a: int, b: int, c: int) -> Signal:
        return (*_RECEIVERS[a], b), c


def _words(name: str) -> int:
    """The words of a register in the array; 0 if it is no number."""
    first = registers.first(name)
    if name in registers.OPTIONAL:
        return 1 + registers.OPTIONAL[name]  # the first word is 1 if there is a value
    if name == registers.SQZN:
        return 1
    return len(first) if isinstance(first, tuple) else int(isinstance(first, int))


def _slots() -> dict[str, tuple[int, int]]:
    """Registers in the array: offset and number of words."""
    found: dict[str, tuple[int, int]] = {}
    at = 0
    for name in registers.names():
        if _words(name):
            found[name] = at, _words(name)
            at += _words(name)
    return found


_SLOTS: Final = _slots()
_WORDS: Final = sum(count for _, count in _SLOTS.values())
REGISTER_BYTES: Final = 8 * _WORDS
_SIGN: Final = 1 << 63
NO_SQUEEZE: Final = -1  # SQZN before the first squeeze


def register_offset(name: str) -> int:
    """Bytes to the first word of a register in the array."""
    return 8 * _SLOTS[name][0]


class SharedRegisters(MutableMapping[str, Any]):
    """Words and pairs of words are in the array, everything else in a dictionary."""

    def __init__(self, before: Mapping[str, Any]) -> None:
        self.array = np.zeros(_WORDS, np.int64)
        self._others: dict[str, Any] = {}
        for name in _SLOTS:
            self[name] = registers.first(name)
        self.update(before)

    def __getitem__(self, key: str) -> Any:
        slot = _SLOTS.get(key)
        if slot is None:
            return self._others[key]
        at, count = slot
        words = [int(word) for word in self.array[at : at + count]]
        if key in registers.OPTIONAL:
            return tuple(words[1:]) if words[0] else None
        if key == registers.SQZN and words[0] == NO_SQUEEZE:
            return None
        return words[0] & registers.MASK if count == 1 else tuple(words)

    def __setitem__(self, key: str, value: Any) -> None:
        slot = _SLOTS.get(key)
        if slot is None:
            self._others[key] = value
            return
        at, count = slot
        if key in registers.OPTIONAL:
            value = (0,) * count if value is None else (1, *value)
        value = NO_SQUEEZE if value is None else value
        for n, word in enumerate((value,) if count == 1 else value):
            self.array[at + n] = ((word + _SIGN) & registers.MASK) - _SIGN

    def __delitem__(self, key: str) -> None:
        if key in _SLOTS:
            self[key] = registers.first(key)
        else:
            del self._others[key]

    def clear(self) -> None:
        """Set initial values again: a register in the array cannot be removed."""
        for name in _SLOTS:
            del self[name]
        self._others.clear()

    def __iter__(self) -> Iterator[str]:
        yield from _SLOTS
        yield from self._others

    def __len__(self) -> int:
        return len(_SLOTS) + len(self._others)
