"""Threads that wait in compiled code for the blocks of a launch.

A thread that returned to Python between two launches would need Python's lock, which all threads
share. So a thread calls compiled code once: there it waits for a launch, wakes two more threads,
takes blocks from a shared counter, and waits again.
"""

from __future__ import annotations

import ctypes
import os
import sys
import threading
from collections.abc import Callable, Sequence
from functools import cache as once
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from pto.core.memory import aligned_bytes
from pto.run.jit.llvm import native
from pto.run.jit.runtime import clock

if TYPE_CHECKING:
    from pto.run.jit.runtime.threads import BlockWorker

IS_SUPPORTED: Final = sys.platform == "linux"  # elsewhere semaphores in memory are missing
Stop = Callable[[BaseException | None], None]
Seen = Callable[[int], None]
_MOST: Final = 1024  # threads of a team
# The words of a team: the semaphore of the launch, then these. A word that several threads change
# has a cache line of its own.
_FUNCTION, _CHUNK, _END, _COUNT, _OWN = range(8, 13)
_COUNTER = 16
_LEFT = 24
_THREADS = 32
# The words of a thread: its semaphore, then these.
_CONTEXT = 8
_FRAME = 9
_RESULT = 10
_THREAD = 16
_PATIENCE: Final = 100_000_000  # nanoseconds until a launch that waits returns to Python


def _field(of: str, index: int, name: str) -> str:
    return f"%{name} = getelementptr i64, ptr {of}, i64 {index}"


# serve(team, n): thread n. wake(team, n): wakes thread n, if the launch has that many. wait(team):
# waits for the threads of a launch; returns after a while with the number that still run.
_TEXT: Final = f"""
declare i32 @sem_wait(ptr)
declare i32 @sem_post(ptr)
declare i32 @sem_timedwait(ptr, ptr)
declare i32 @clock_gettime(i32, ptr)

define internal ptr @thread(ptr %team, i64 %n) {{
  %nth = mul i64 %n, {_THREAD}
  %at = add i64 %nth, {_THREADS}
  %thread = getelementptr i64, ptr %team, i64 %at
  ret ptr %thread
}}
define internal void @wake(ptr %team, i64 %n) {{
  {_field("%team", _COUNT, "where")}
  %count = load i64, ptr %where
  %is = icmp slt i64 %n, %count
  br i1 %is, label %yes, label %no
yes:
  %thread = call ptr @thread(ptr %team, i64 %n)
  %status = call i32 @sem_post(ptr %thread)
  br label %no
no:
  ret void
}}
define internal i64 @take(ptr %team, ptr %context, ptr %frame) {{
  {_field("%team", _FUNCTION, "of")}
  %function = load ptr, ptr %of
  {_field("%team", _CHUNK, "size")}
  %chunk = load i64, ptr %size
  {_field("%team", _END, "last")}
  %end = load i64, ptr %last
  {_field("%team", _COUNTER, "counter")}
  %stopped = call i64 %function(ptr %context, ptr %frame, i64 %chunk, i64 %end, ptr %counter)
  ret i64 %stopped
}}
define void @serve(ptr %team, i64 %n) {{
entry:
  %thread = call ptr @thread(ptr %team, i64 %n)
  {_field("%thread", _CONTEXT, "c")}
  {_field("%thread", _FRAME, "f")}
  {_field("%thread", _RESULT, "r")}
  {_field("%team", _LEFT, "left")}
  %twice = mul i64 %n, 2
  %one = add i64 %twice, 2
  %two = add i64 %twice, 3
  br label %sleep
sleep:
  %status = call i32 @sem_wait(ptr %thread)
  %awake = icmp eq i32 %status, 0
  br i1 %awake, label %work, label %sleep
work:
  call void @wake(ptr %team, i64 %one)
  call void @wake(ptr %team, i64 %two)
  %context = load ptr, ptr %c
  %frame = load ptr, ptr %f
  %stopped = call i64 @take(ptr %team, ptr %context, ptr %frame)
  store i64 %stopped, ptr %r
  %before = atomicrmw sub ptr %left, i64 1 acq_rel
  %last = icmp eq i64 %before, 1
  br i1 %last, label %tell, label %sleep
tell:
  %told = call i32 @sem_post(ptr %team)
  br label %sleep
}}
define i64 @launch(ptr %team, ptr %context, ptr %frame) {{
  {_field("%team", _COUNT, "of")}
  %count = load i64, ptr %of
  {_field("%team", _LEFT, "left")}
  store atomic i64 %count, ptr %left release, align 8
  call void @wake(ptr %team, i64 0)
  call void @wake(ptr %team, i64 1)
  %stopped = call i64 @take(ptr %team, ptr %context, ptr %frame)
  {_field("%team", _OWN, "own")}
  store i64 %stopped, ptr %own
  %running = call i64 @wait(ptr %team)
  ret i64 %running
}}
define i64 @wait(ptr %team) {{
entry:
  {_field("%team", _LEFT, "left")}
  %now = alloca [2 x i64]
  %nanoseconds = getelementptr i64, ptr %now, i64 1
  %status = call i32 @clock_gettime(i32 0, ptr %now)
  %n = load i64, ptr %nanoseconds
  %until = add i64 %n, {_PATIENCE}
  %over = sdiv i64 %until, 1000000000
  %rest = srem i64 %until, 1000000000
  %second = load i64, ptr %now
  %later = add i64 %second, %over
  store i64 %later, ptr %now
  store i64 %rest, ptr %nanoseconds
  br label %look
look:
  %running = load atomic i64, ptr %left acquire, align 8
  %some = icmp ne i64 %running, 0
  br i1 %some, label %sleep, label %done
sleep:
  %told = call i32 @sem_timedwait(ptr %team, ptr %now)
  %again = icmp eq i32 %told, 0
  br i1 %again, label %look, label %done
done:
  ret i64 %running
}}
"""


class _Code:
    """The compiled functions of all teams. It is never freed: threads wait there."""

    def __init__(self) -> None:
        code = native.target().code(_TEXT, ["serve", "launch", "wait"])
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(code))
        pointer, number = ctypes.c_void_p, ctypes.c_int64
        kind = ctypes.CFUNCTYPE
        self.serve = kind(None, pointer, number)(code.address("serve"))
        self.launch = kind(number, pointer, pointer, pointer)(code.address("launch"))
        self.wait = kind(number, pointer)(code.address("wait"))


_code = once(_Code)


class Team:
    """Threads for one launch at a time."""

    def __init__(self) -> None:
        self._code = _code()
        raw = aligned_bytes(8 * (_THREADS + _THREAD * _MOST))
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(raw))  # threads wait there until exit
        self._pointer = raw.ctypes.data
        words = raw.view(np.int64)
        self._words, self._rows = words, words[_THREADS:].reshape(_MOST, _THREAD)
        self._states: list[clock.ThreadState] = []
        self._make_semaphore(0)

    def _make_semaphore(self, word: int) -> None:
        where = ctypes.c_void_p(self._pointer + 8 * word)
        if ctypes.CDLL(None).sem_init(where, 0, 0):
            raise OSError("sem_init failed")

    def _grow(self, count: int) -> None:
        """Start threads until there are `count`."""
        for n in range(len(self._states), min(count, _MOST)):
            self._make_semaphore(_THREADS + n * _THREAD)
            started, name = threading.Event(), "pto worker"
            work = threading.Thread(target=self._serve, args=(n, started), name=name, daemon=True)
            work.start()
            started.wait()

    def _serve(self, n: int, started: threading.Event) -> None:
        self._states.append(clock.current())
        started.set()
        with np.errstate(all="ignore"):  # for Python that compiled code calls
            self._code.serve(self._pointer, n)

    def run(
        self, workers: Sequence[BlockWorker], blocks: range, chunk: int, stop: Stop, seen: Seen
    ) -> list[int]:
        """Run blocks on this thread with the first worker, and on a thread for each of the others.

        Returns the block that each worker could not run, or the end. `stop` is called if one fails
        while others run, and with an interrupt: it makes the workers end. `seen` is called
        regularly with the number of blocks that have started.
        """
        words, count = self._words, min(len(workers) - 1, _MOST)
        function = ctypes.cast(workers[0].shared_loop, ctypes.c_void_p).value or 0
        self._grow(count)
        rows, states = self._rows[:count], self._states[:count]
        words[_FUNCTION : _COUNT + 1] = function, chunk, blocks.stop, count
        words[_COUNTER] = blocks.start
        words[_OWN] = rows[:, _RESULT] = blocks.stop
        for row, state, worker in zip(rows, states, workers[1:], strict=False):
            row[_CONTEXT : _FRAME + 1] = worker.pointers
            worker.context.set_thread(state)
            state.inside = True

        def look(_: int = 0) -> None:
            if min(words[_OWN], rows[:, _RESULT].min()) < blocks.stop:
                stop(None)
            seen(min(int(words[_COUNTER]), blocks.stop))

        workers[0].context.on_progress = look
        work: Any = self._code.launch, (self._pointer, *workers[0].pointers)
        states = [workers[0].context.begin(), *states]
        running = 1
        while running:
            try:
                running, work = work[0](*work[1]), (self._code.wait, (self._pointer,))
                if running:
                    look()
            except BaseException as error:
                work = self._code.wait, (self._pointer,)
                stop(error)
        for state in states:
            clock.leave(state)
        return [int(words[_OWN]), *rows[:, _RESULT].tolist()]


class ThreadTeam:
    """The same without semaphores: a thread of Python for each worker of a launch."""

    def run(
        self, workers: Sequence[BlockWorker], blocks: range, chunk: int, stop: Stop, seen: Seen
    ) -> list[int]:
        counter, ends = np.array([blocks.start]), [blocks.stop] * len(workers)

        def work(n: int) -> None:
            with np.errstate(all="ignore"):  # for Python that compiled code calls
                worker, where = workers[n], counter.ctypes.data
                given = *worker.pointers, chunk, blocks.stop, where
                ends[n] = worker.context.call(worker.shared_loop, *given)

        def look(_: int = 0) -> None:
            if min(ends) < blocks.stop:
                stop(None)
            seen(min(int(counter[0]), blocks.stop))

        workers[0].context.on_progress = look
        others = [
            threading.Thread(target=work, args=(n,), daemon=True) for n in range(1, len(workers))
        ]
        for other in others:
            other.start()
        try:
            work(0)
        except BaseException as error:
            stop(error)
        while any(other.is_alive() for other in others):
            try:
                others[0].join(clock.TICK)
                others.append(others.pop(0))
                look()
            except BaseException as error:
                stop(error)
        return ends


_idle: Final = list[Team | ThreadTeam]()
os.register_at_fork(after_in_child=_idle.clear)  # threads do not survive a fork


def take() -> Team | ThreadTeam:
    """A team that no launch uses; give it back with `give`."""
    try:
        return _idle.pop()
    except IndexError:
        return Team() if IS_SUPPORTED else ThreadTeam()


def give(threads: Team | ThreadTeam) -> None:
    _idle.append(threads)
