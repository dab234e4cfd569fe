"""Ten times a second, compiled code that runs in a loop comes back to Python for a moment.

There signals are handled (Ctrl-C) and the limit of the launch is looked at. Each thread has a word
that its compiled code reads at every turn of a loop; a thread of this module sets the words of all
who are inside, and sleeps while nobody is.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from typing import Any, Final
from weakref import WeakSet

import numpy as np

from pto.core.memory import aligned_bytes

TICK: Final = 0.1  # seconds
SCRATCH: Final = 2 << 20  # bytes for one instruction's own use
_PATIENCE: Final = 20  # ticks without anybody inside before the clock stops


class Hand:
    """What a thread has for the compiled code it runs: its word, memory for an instruction."""

    def __init__(self) -> None:
        self.word = np.zeros(1, np.uint64)
        self.word_address = self.word.ctypes.data
        self.room = aligned_bytes(SCRATCH)
        self.room_address = self.room.ctypes.data
        self.inside = False


class _Local(threading.local):
    def __init__(self) -> None:
        self.hand = Hand()
        _clock.hands.add(self.hand)


class _Clock:
    """The thread that ticks. It begins with the first compiled code, and again after a fork."""

    def __init__(self) -> None:
        self.hands = WeakSet[Hand]()
        self.is_running = False
        self._awake = threading.Event()
        self._started = False

    def wake(self) -> None:
        if not self._started:
            self._started = True
            threading.Thread(target=self._tick, name="pto clock", daemon=True).start()
        self._awake.set()
        self.is_running = True  # who is inside now keeps it so

    def _tick(self) -> None:
        quiet = 0
        while True:
            time.sleep(TICK)
            inside = [hand for hand in list(self.hands) if hand.inside]
            for hand in inside:
                hand.word[0] = 1
            quiet = 0 if inside else quiet + 1
            self.is_running = quiet <= _PATIENCE
            if not self.is_running and not any(hand.inside for hand in list(self.hands)):
                self._awake.wait()
                self._awake.clear()
                self.is_running, quiet = True, 0


_clock = _Clock()
_local = _Local()


def _after_fork() -> None:
    """Threads do not survive a fork."""
    global _clock, _local
    _clock = _Clock()
    _local = _Local()


os.register_at_fork(after_in_child=_after_fork)


class _Interrupts:
    """Ctrl-C that comes when compiled code has just called Python, before the first line of what it
    calls: no `try` there sees it, and ctypes drops it. It is kept here and raised at the next tick.
    """

    def __init__(self) -> None:
        self.came = False
        self._other: Any = None  # who hears of such exceptions otherwise
        self.hook = self._heard

    def listen(self) -> None:
        self._other, sys.unraisablehook = sys.unraisablehook, self.hook

    def _heard(self, what: Any) -> None:
        if (
            what.exc_type is KeyboardInterrupt
            and getattr(what.object, "__self__", None) is not None
        ):
            self.came = True
        else:
            (self._other or sys.__unraisablehook__)(what)

    def raise_kept(self) -> None:
        if self.came:
            self.came = False
            raise KeyboardInterrupt


_interrupts = _Interrupts()


def enter() -> Hand:
    """Before compiled code runs, on the thread it runs on."""
    if sys.unraisablehook is not _interrupts.hook:
        _interrupts.listen()
    hand = _local.hand
    hand.inside = True
    if not _clock.is_running:
        _clock.wake()
    return hand


def leave(hand: Hand) -> None:
    hand.inside = False


def rest() -> None:
    """Compiled code has come back: its word is read. Python handles signals on the way."""
    _local.hand.word[0] = 0
    _interrupts.raise_kept()


def interrupted() -> BaseException | None:
    """The interrupt that ended compiled code, where it was that."""
    try:
        _interrupts.raise_kept()
    except KeyboardInterrupt as error:
        return error
    return None
