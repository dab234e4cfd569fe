"""The data cache of the scalar unit: it hides writes in both directions.

Scalar accesses to global memory go through a cache that is not coherent. A scalar read sees the
write of another core only after the line was invalidated; other cores, and transfers of the same
core, see a scalar write only after the line was written back. `dcci` and `cmo.cacheinvalid` do
both. The sources are in decisions_isa.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from pto.core.errors import Diagnostic, Note
from pto.observe.memory.accesses import TimedAccess
from pto.observe.memory.lines import CacheLines
from pto.observe.memory.log import GlobalLog
from pto.observe.order.clocks import Clock, Clocks, Thread, knows
from pto.observe.races import described

_FIX = "pto.cmo.cacheinvalid %ptr single_cache_line (on a5 also pto.dcci)"


@dataclass(slots=True)
class _Flushed:
    """When an agent has flushed lines: its clock, and its own time."""

    all: tuple[Clock, int] | None = None
    lines: dict[int, tuple[Clock, int]] = field(default_factory=dict[int, tuple[Clock, int]])

    def of(self, lines: Iterable[int]) -> Iterator[tuple[Clock, int] | None]:
        """The latest flush of every line."""
        for line in lines:
            yield max((self.lines.get(line), self.all), key=lambda f: -1 if f is None else f[1])


class Caches:
    """The caches of all agents."""

    def __init__(self, clocks: Clocks, log: GlobalLog) -> None:
        self._clocks = clocks
        self._log = log  # all accesses to global memory
        self.lines = CacheLines(clocks, log)
        self._flushed: dict[int, _Flushed] = {}  # by agent
        self._stores = GlobalLog()  # writes of scalar units
        self._has_stores = False  # a scalar has written to global memory
        self._found: dict[tuple[str, int, int], Diagnostic] = {}

    def findings(self) -> list[Diagnostic]:
        return [*self._found.values(), *self.lines.findings()]

    def flush(self, thread: Thread, address: int | None, time: int) -> None:
        """Write back and invalidate lines: the one at an address, or all."""
        self.lines.flush(thread, address, time)
        flushed = self._flushed.setdefault(id(thread.agent), _Flushed())
        now = thread.clock.copy(), time
        if address is None:
            flushed.all = now
        else:
            flushed.lines[self.lines.line(address)] = now

    def touch(self, touch: TimedAccess) -> None:
        if not touch.is_scalar and not self._has_stores:
            return
        if not touch.access.writes:
            self._read(touch)
            if touch.is_scalar:
                self._load(touch)
            return
        self.lines.write(touch)
        if touch.is_scalar:  # it stays in the cache for now
            self._has_stores = True
            self.lines.store(touch)
            at = touch.thread.index, touch.time, touch.thread.clock
            self._stores.touch(touch.cells, touch.base, *at, "write")

    def _load(self, touch: TimedAccess) -> None:
        """A scalar read: report lines that were not invalidated since another core wrote them."""
        thread = touch.thread
        flushed = self._flushed.get(id(thread.agent), _Flushed())
        for stale in self.lines.load(touch):
            self._report("PTO-R038", touch, *stale)
        for writer, time, first, last in self._log.writers(touch.cells, touch.base):
            other = self._clocks.threads[writer]
            if other.agent is thread.agent or _over(thread, other, time):
                continue
            if time > thread.clock[writer]:
                continue  # a race, which is reported as such
            flushes = flushed.of(self.lines.between(first, last))
            if not all(f is not None and knows(f[0], writer, time) for f in flushes):
                self._report("PTO-R038", touch, other, time, first, last)

    def _read(self, touch: TimedAccess) -> None:
        """Any read: report scalar writes that were not written back."""
        if not self._has_stores:
            return
        thread = touch.thread
        for writer, time, first, last in self._stores.writers(touch.cells, touch.base):
            other = self._clocks.threads[writer]
            if other.agent is thread.agent and touch.is_scalar:
                continue
            if time > thread.clock[writer] or _over(thread, other, time):
                continue
            flushed = self._flushed.get(id(other.agent), _Flushed())
            late = int(thread.clock[writer]) if other is not thread else other.now
            flushes = flushed.of(self.lines.between(first, last))
            if not all(f is not None and time < f[1] <= late for f in flushes):
                self._report("PTO-R039", touch, other, time, first, last)

    def _report(
        self, code: str, touch: TimedAccess, other: Thread, time: int, first: int, last: int
    ) -> None:
        thread, moment = touch.thread, touch.moment
        earlier = other.moments[time - 1]
        key = code, id(earlier.op), id(moment.op)
        if key in self._found:
            return
        where = f"GM[{first - touch.base:#06x}..{last - touch.base:#06x})"
        if code == "PTO-R038":
            message = (
                f"scalar read of {where} may see what the data cache holds:"
                f" {other.agent.name} has written it since, and no line was dropped"
            )
        else:
            message = (
                f"{thread.agent.name} reads {where} that a scalar of {other.agent.name} has"
                " written and not written back: it may still be in the data cache"
            )
        notes = (
            Note(f"write: {described(other, earlier)}", earlier.op.loc),
            Note(f"read: {described(thread, moment)}", moment.op.loc),
        )
        self._found[key] = Diagnostic(code, message, moment.op.loc, notes=notes, help=_FIX)


def _over(thread: Thread, other: Thread, time: int) -> bool:
    """True if the other kernel had ended before this one began: caches are empty then."""
    base = thread.agent.base
    return knows(base, other.index, time) and other.agent.launch != thread.agent.launch
