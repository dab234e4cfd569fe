"""Whole lines of the data caches: a write-back of a line overwrites bytes of other writers.

The scalar unit fetches a line of 64 bytes, changes some of it, and later writes all of it back
(simpler docs/hardware/cache-coherency.md; PTOAS issue 915, pypto issue 2005). A write of another
core, or of a transfer, to the line between the fetch and the write-back is lost. It is kept if the
line was fetched after that write, or written back before it. Lines are counted from the start of an
array, as an allocation of the device is aligned.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass

from pto.core.errors import Diagnostic, Note
from pto.observe.memory.accesses import TimedAccess
from pto.observe.memory.granules import Cells
from pto.observe.memory.log import GlobalLog
from pto.observe.order.clocks import Clock, Clocks, Moment, Thread
from pto.observe.races import described

LINE = 64  # bytes
_FIX = (
    "give each core lines of its own (16 words of 4 bytes apart), or put pto.cmo.cacheinvalid"
    " between the accesses, in an order that flags or signals keep"
)


@dataclass(slots=True)
class _Copy:
    """A line in the cache of a scalar unit."""

    thread: Thread
    clock: Clock  # accesses before the fetch
    moment: Moment  # of its last store
    stored: int = 0  # time of the last store; 0: none
    back: int = 0  # time of the write-back since; 0: none
    is_held: bool = True

    def clock_of(self, thread: int) -> int:
        """The newest access of a thread before the fetch."""
        return int(self.clock[thread]) if thread < self.clock.size else 0


Stale = tuple[Thread, int, int, int]  # writer, time, first byte, one past the last


class CacheLines:
    """The lines in the caches of all scalar units."""

    def __init__(self, clocks: Clocks, log: GlobalLog) -> None:
        self._clocks = clocks
        self._log = log
        self._arrays: list[tuple[int, int]] = []  # base and end
        self._copies: dict[int, dict[int, _Copy]] = {}  # by line, then by agent
        self._found: dict[tuple[int, int], Diagnostic] = {}

    def findings(self) -> list[Diagnostic]:
        return list(self._found.values())

    def know(self, base: int, size: int) -> None:
        """Register an array of the host; an array inside another shares its lines."""
        self._arrays = sorted({*self._arrays, (base, base + size)})

    def flush(self, thread: Thread, address: int | None, time: int) -> None:
        """Write back and drop the line at an address, or all."""
        wanted = self._copies if address is None else [self.line(address)]
        for line in wanted:
            copy = self._copies.get(line, {}).get(id(thread.agent))
            if copy is not None:
                copy.back, copy.is_held = time, False

    def load(self, touch: TimedAccess) -> Iterator[Stale]:
        """A scalar read: yields writes of transfers of the same core that the line misses."""
        thread = touch.thread
        for line in self._of(touch):
            copy = self._fetched(touch, line)
            for writer, time, first, last in self._log.writers(touch.cells, touch.base):
                other = self._clocks.threads[writer]
                is_own = other.agent is thread.agent and not _is_scalar(other.moments[time - 1])
                if is_own and copy.clock_of(writer) < time <= thread.clock[writer]:
                    yield other, time, first, last

    def store(self, touch: TimedAccess) -> None:
        """A scalar write into a line: report writes of other agents since the fetch (lost)."""
        thread = touch.thread
        moment = touch.moment
        base = touch.base
        low, high = (base + n for n in touch.cells.span())
        for line in self._of(touch):
            copy = self._fetched(touch, line)
            line_cells = Cells(line - base, (), (), LINE)
            for writer, when, first, last in self._log.writers(line_cells, base):
                other = self._clocks.threads[writer]
                written = other.moments[when - 1]
                is_own = other is thread and _is_scalar(written)
                if is_own or not _together(other, thread):
                    continue
                races = when > thread.clock[writer] and first < high and last > low
                if not races and when > copy.clock_of(writer):
                    self._report(copy.thread, moment, other, written, line - base)
            copy.moment = moment
            copy.stored = touch.time
            copy.back = 0

    def write(self, touch: TimedAccess) -> None:
        """A write of any pipe: report a later write-back of the line that overwrites it."""
        thread = touch.thread
        moment = touch.moment
        base = touch.base
        low, high = touch.cells.span()
        for line, copies in self._near(base + low, base + high):
            if not _meet(touch.cells, base, line):
                continue
            for copy in copies.values():
                is_own = copy.thread is thread and _is_scalar(moment)
                if is_own or not copy.stored or not _together(copy.thread, thread):
                    continue
                if not 0 < copy.back <= thread.clock[copy.thread.index]:
                    self._report(copy.thread, copy.moment, thread, moment, line - base)

    # ---- lines

    def line(self, address: int) -> int:
        """The start of the line of an address."""
        n = bisect_right(self._arrays, (address, 1 << 63))
        around = [base for base, end in self._arrays[:n] if address < end]
        base = min(around, default=0)
        return address - (address - base) % LINE

    def between(self, low: int, high: int) -> range:
        """The starts of the lines with bytes between two addresses."""
        return range(self.line(low), high, LINE)

    def _of(self, touch: TimedAccess) -> range:
        low, high = touch.cells.span()
        return self.between(touch.base + low, touch.base + high)

    def _near(self, low: int, high: int) -> Iterator[tuple[int, dict[int, _Copy]]]:
        """Known lines with bytes between two addresses."""
        if (high - low) // LINE < len(self._copies):
            lines = self.between(low, high)
            yield from ((n, self._copies[n]) for n in lines if n in self._copies)
        else:
            yield from ((n, c) for n, c in self._copies.items() if n < high and n + LINE > low)

    def _fetched(self, touch: TimedAccess, line: int) -> _Copy:
        """The line in the cache of a scalar unit, fetched if it is missing."""
        thread, copies = touch.thread, self._copies.setdefault(line, {})
        copy = copies.get(id(thread.agent))
        if copy is None:
            copy = copies[id(thread.agent)] = _Copy(thread, thread.clock.copy(), touch.moment)
        elif not copy.is_held:
            copy.clock, copy.is_held = thread.clock.copy(), True
        return copy

    def _report(
        self, holder: Thread, stored: Moment, other: Thread, moment: Moment, start: int
    ) -> None:
        key = (id(stored.op), id(moment.op))
        if key in self._found or key[::-1] in self._found:
            return
        where = f"GM[{start:#06x}..{start + LINE:#06x})"
        if _is_scalar(moment):
            code = "PTO-R043"
            message = (
                f"scalar stores of {holder.agent.name} and {other.agent.name} go to one cache line,"
                f" {where}: each writes all {LINE} bytes back, and the last one wins"
            )
        else:
            code = "PTO-R044"
            message = (
                f"the cache line {where} of {holder.agent.name} is written back with a scalar"
                f" store, over what {other.pipe} of {other.agent.name} writes there"
            )
        notes = (
            Note(f"scalar store: {described(holder, stored)}", stored.op.loc),
            Note(f"other write: {described(other, moment)}", moment.op.loc),
        )
        self._found[key] = Diagnostic(code, message, stored.op.loc, notes=notes, help=_FIX)


def _together(a: Thread, b: Thread) -> bool:
    """True if both are of one launch: a kernel begins with an empty cache."""
    return a.agent.launch == b.agent.launch and a.agent.rank == b.agent.rank


def _is_scalar(moment: Moment) -> bool:
    row = moment.op.row
    return row.pipe == "S" and not row.traits.uncached


def _meet(cells: Cells, base: int, line: int) -> bool:
    starts = cells.starts() + base
    return bool(((starts < line + LINE) & (starts + cells.width > line)).any())
