"""A timer that makes compiled loops return to Python ten times a second.

There signals are handled (Ctrl-C) and the limit of the launch is checked. Each thread has a poll
flag that its compiled code reads in every iteration of a loop. A timer thread sets the flags of all
threads that run compiled code, and sleeps while there is none.
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
SCRATCH: Final = 2 << 20  # bytes of scratch memory for one instruction
_PATIENCE: Final = 20  # ticks without compiled code before the timer stops


class ThreadState:
    """State of a thread that compiled code uses: its poll flag and scratch memory."""

    def __init__(self) -> None:
        self.word = np.zeros(1, np.uint64)
        self.word_address = self.word.ctypes.data
        self.scratch = aligned_bytes(SCRATCH)
        self.scratch_address = self.scratch.ctypes.data
        self.inside = False


class _Local(threading.local):
    def __init__(self) -> None:
        self.state = ThreadState()
        _clock.states.add(self.state)


class _Clock:
    """The timer thread. It starts with the first compiled code, and again after a fork."""

    def __init__(self) -> None:
        self.states = WeakSet[ThreadState]()
        self.is_running = False
        self._awake = threading.Event()
        self._started = False

    def wake(self) -> None:
        if not self._started:
            self._started = True
            threading.Thread(target=self._tick, name="pto clock", daemon=True).start()
        self._awake.set()
        self.is_running = True  # threads in compiled code keep it so

    def _tick(self) -> None:
        quiet = 0
        while True:
            time.sleep(TICK)
            inside = [state for state in list(self.states) if state.inside]
            for state in inside:
                state.word[0] = 1
            quiet = 0 if inside else quiet + 1
            self.is_running = quiet <= _PATIENCE
            if not self.is_running and not any(state.inside for state in list(self.states)):
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
    """Keeps an interrupt (Ctrl-C) that arrives when compiled code has just called Python, before
    any `try` there: ctypes would drop it. It is raised at the next tick."""

    def __init__(self) -> None:
        self.came = False
        self._other: Any = None  # the previous hook for such exceptions
        self.hook = self._unraisable

    def listen(self) -> None:
        self._other, sys.unraisablehook = sys.unraisablehook, self.hook

    def _unraisable(self, what: Any) -> None:
        # Before Python 3.13 `object` is the called function; since then it is named in the message.
        called = getattr(what.object, "__self__", None) is not None
        called |= "ctypes callback" in (what.err_msg or "")
        if what.exc_type is KeyboardInterrupt and called:
            self.came = True
        else:
            (self._other or sys.__unraisablehook__)(what)

    def raise_kept(self) -> None:
        if self.came:
            self.came = False
            raise KeyboardInterrupt


_interrupts = _Interrupts()


def enter() -> ThreadState:
    """Mark the current thread as running compiled code."""
    if sys.unraisablehook is not _interrupts.hook:
        _interrupts.listen()
    state = _local.state
    state.inside = True
    if not _clock.is_running:
        _clock.wake()
    return state


def current() -> ThreadState:
    """The state of the current thread."""
    return _local.state


def leave(state: ThreadState) -> None:
    state.inside = False


def clear_poll_flag() -> None:
    """Clear the poll flag, after compiled code has returned. Python handles signals meanwhile."""
    _local.state.word[0] = 0
    _interrupts.raise_kept()


def interrupted() -> BaseException | None:
    """The interrupt that ended compiled code, if any."""
    try:
        _interrupts.raise_kept()
    except KeyboardInterrupt as error:
        return error
    return None
