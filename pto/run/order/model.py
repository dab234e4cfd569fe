"""The one model of pipes, flags, buffer ids, queues and meetings, generic over its clock.

The scalar unit of an agent issues operations in program order, each into the queue of its pipe; an
operation starts when it is the first of its queue and what it waits for has happened. What that
means for flags and the rest stands here once. Who uses the model brings

- **a clock**: a subclass of `Pipe` whose `publish`, `join` and `settle` work on stamps of its own,
  and `Model.merged`. The sanitizer's stamps are vector clocks (`observe/order/clocks.py`); a
  schedule needs none (`NoClock`); of time, a stamp is the cycle at which everything told is done,
  `join` and `merged` are the maximum, `publish` is when the pipe's last operation is done, `settle`
  makes the pipe free only then.
- **work**: `Model.work` is called when an operation starts, after all it waits for was joined: it
  looks at accesses, runs the step, or adds a duration to its pipe. `Model.issuing` is called when
  the scalar unit hands an operation out: a clock of time moves the scalar pipe on there.
- **a choice**: `issue` starts each operation as soon as it can (the order of starts changes no
  stamp, since pipes are in order and flags first in, first out); `put`, `wants` and `start` leave
  the choice to the caller (`choice.py`).

Timing is then `class Timed(Pipe[float, I])` with `free` and `done`, and a `Model` whose `work` sets
`start = max(free, what was joined)`, `free = start + occupancy` and `done = free + latency`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Generic

from pto.isa.meaning import Blocked
from pto.isa.row.flag import Flag
from pto.run.order import effects as fx
from pto.run.order.buffers import Releases
from pto.run.order.state import I, Item, P, S, Unit, answers, wanted
from pto.run.order.words import Word
from pto.target.facts import Sync

Want = Item | Blocked | None  # to be done first; not at hand; nothing


class Model(ABC, Generic[S, P, I]):
    """Decides what comes after what, for all agents together."""

    def __init__(self, sync: Sync) -> None:
        self.sync = sync
        self.parked: set[Unit[S, P, I]] = set()  # agents with work that could not start
        # sent and not yet heard
        self.signals: dict[Any, deque[tuple[S, P, I]]] = {}
        self._rounds: dict[Any, list[tuple[int, S]]] = {}
        self._meetings: dict[Any, S] = {}
        self._came: dict[Any, int] = {}  # to a meeting
        self._words: dict[Any, Word[S]] = {}
        self._met: dict[type, Callable[[Unit[S, P, I], I, Any], bool]] = {
            fx.WaitFlag: self._is_set,
            fx.Acquire: self._is_released,
            fx.Hear: self._is_sent,
            fx.Meet: self._is_complete,
            fx.Await: self._is_told,
        }
        self._joins: dict[type, Callable[[Unit[S, P, I], P, I, Any], None]] = {
            fx.WaitFlag: self._wait_flag,
            fx.Barrier: self._barrier,
            fx.Acquire: self._acquire,
            fx.Hear: self._hear,
            fx.Meet: self._meet,
            fx.Await: self._await,
        }
        self._tells: dict[type, Callable[[Unit[S, P, I], P, I, Any], None]] = {
            fx.SetFlag: self._set_flag,
            fx.Release: self._release,
            fx.Send: self._send,
            fx.Meet: self._publish,
            fx.Notify: self._notify,
        }

    # ---- what a user of the model brings

    @abstractmethod
    def new_pipe(self, unit: Any, name: str) -> P: ...

    @abstractmethod
    def merged(self, a: S, b: S) -> S:
        """What both tell of."""

    @abstractmethod
    def work(self, unit: Any, pipe: P, item: I) -> Blocked | None:
        """An operation starts; Blocked where its own meaning makes it wait, nothing done."""

    def issuing(self, unit: Any, item: I) -> None:
        """The scalar unit hands an operation out."""

    def was_set(
        self, unit: Any, pipe: P, item: I, flag: Flag, stamp: S, before: Sequence[tuple[S, I]]
    ) -> None:
        """A flag was set, with this stamp; `before`: sets of it that nobody has taken yet."""

    def was_taken(self, unit: Any, pipe: P, item: I, flag: Flag, by: tuple[S, I]) -> None:
        """A wait takes what another operation has set; its stamp is not joined yet."""

    def was_fenced(self, unit: Any, pipe: P | None, item: I) -> None:
        """A barrier of a pipe, or of all, is about to take effect."""

    # ---- issue

    def pipe(self, unit: Unit[S, P, I], name: str) -> P:
        """The pipe of an agent; what no pipe does is the scalar unit's."""
        found = unit.pipes.get(name)
        if found is None:
            name = "S" if name in ("none", "ALL") else name
            found = unit.pipes.get(name)
            if found is None:
                found = unit.pipes[name] = self.new_pipe(unit, name)
        return found

    def put(self, unit: Unit[S, P, I], item: I) -> None:
        """The last of its queue."""
        self._count(unit, item)
        pipe = self.pipe(unit, item.pipe)
        item.stamp, item.version = self.pipe(unit, "S").handed(), unit.version
        pipe.queue.append(item)
        if item.mark is not None:
            unit.marked.append(item)

    def issue(self, unit: Unit[S, P, I], item: I) -> None:
        """In program order; it starts at once, or as soon as it can."""
        if self.parked and unit in self.parked:
            if unit.waiting or not self._issue(unit, item):
                unit.waiting.append(item)
            self._pump(unit)
            return
        if item.pipe == "ALL":
            self.issuing(unit, item)
            self.fence(unit, item)
            return
        self.issuing(unit, item)
        if type(item.effect) in _COUNTED:
            self._count(unit, item)
        pipe = unit.pipes.get(item.pipe) or self.pipe(unit, item.pipe)
        if not self._begin(unit, pipe, item):
            self._park(unit, pipe, item)

    def _issue(self, unit: Unit[S, P, I], item: I) -> bool:
        """False while the scalar unit has to wait before it can hand out this operation."""
        if self.pipe(unit, "S").queue:
            return False
        if item.pipe == "ALL":
            if not unit.is_idle:
                return False
            self.issuing(unit, item)
            self.fence(unit, item)
            return True
        pipe = self.pipe(unit, item.pipe)
        if len(pipe.queue) >= self.sync.queue_depth:
            return False
        self.issuing(unit, item)
        self._count(unit, item)
        if pipe.queue or not self._begin(unit, pipe, item):
            self._park(unit, pipe, item)
        return True

    def _park(self, unit: Unit[S, P, I], pipe: P, item: I) -> None:
        item.stamp, item.version = self.pipe(unit, "S").handed(), unit.version
        pipe.queue.append(item)
        if item.mark is not None:
            unit.marked.append(item)
        self.parked.add(unit)

    def _count(self, unit: Unit[S, P, I], item: I) -> None:
        """Number a release in program order, and an acquire by the releases that precede it."""
        effect = item.effect
        if not isinstance(effect, fx.Acquire | fx.Release):
            return
        releases = unit.buffers.get(effect.id)
        if releases is None:
            releases = unit.buffers[effect.id] = Releases[S](self.merged)
        if isinstance(effect, fx.Acquire):
            item.need = releases.issued if effect.waits else 0
            releases.holders[item.pipe] = None
            return
        item.need = releases.issue()
        releases.holders.pop(item.pipe, None)
        for name in releases.holders if effect.of_all else ():
            pipe, number = self.pipe(unit, name), releases.issue()
            if pipe.queue:
                pipe.queue[-1].after += ((releases, number),)
            else:
                releases.complete(number, pipe.publish())

    def fence(self, unit: Unit[S, P, I], item: I) -> None:
        """A barrier of all pipes, none of which has anything left to do."""
        pipes = list(unit.pipes.values()) or [self.pipe(unit, "S")]
        self.was_fenced(unit, None, item)
        whole = pipes[0].publish()
        for pipe in pipes[1:]:
            whole = self.merged(whole, pipe.publish())
        for pipe in pipes:
            pipe.join(whole)
        unit.version += 1

    # ---- what may start

    def wants(self, unit: Unit[S, P, I], item: I) -> Want:
        """What has to happen before an operation can be tried."""
        first = self.pipe(unit, item.pipe).queue[0]
        if first is not item:
            return first
        if item.mark is not None and (other := self._marker(unit, item)) is not None:
            return other
        if self._is_met(unit, item):
            return None
        return self._answer(unit, item)

    def _is_met(self, unit: Unit[S, P, I], item: I) -> bool:
        met = self._met.get(type(item.effect))
        return met is None or met(unit, item, item.effect)

    def _is_set(self, unit: Unit[S, P, I], item: I, effect: fx.WaitFlag) -> bool:
        return bool(unit.flags.get(effect.key))

    def _is_released(self, unit: Unit[S, P, I], item: I, effect: fx.Acquire) -> bool:
        return unit.buffers[effect.id].done >= item.need

    def _is_sent(self, unit: Unit[S, P, I], item: I, effect: fx.Hear) -> bool:
        return all(self.signals.get(unit.signal(key)) for key in effect.signals)

    def _is_complete(self, unit: Unit[S, P, I], item: I, effect: fx.Meet) -> bool:
        """Where all cores meet, one's own pipes are done first, and the others have come."""
        if not effect.is_of_all_cores:
            return True
        if any(pipe.queue and pipe.queue[0] is not item for pipe in unit.pipes.values()):
            return False
        others = effect.quorum - len(effect.publishes)
        return all(self._came.get(unit.meeting(k), 0) >= others for k in effect.joins)

    def _is_told(self, unit: Unit[S, P, I], item: I, effect: fx.Await) -> bool:
        """False only while somebody who is held up will change one of the words."""
        pipe, late = self.pipe(unit, item.pipe), self._held_words() if self.parked else ()
        return not any(
            word in late and not self._word(word).seen(pipe, effect.is_met)[0]
            for word in effect.words
        )

    def _held_words(self) -> set[Any]:
        items = (item for unit in self.parked for item in (*unit.items(), *unit.waiting))
        return {item.effect.word for item in items if isinstance(item.effect, fx.Notify)}

    def _answer(self, unit: Unit[S, P, I], item: I) -> Want:
        """The operation that lets an item go on, where one was issued."""
        for other in unit.items():
            if answers(unit, other, item):
                return other
        return Blocked(f"{wanted(item)}, which nothing has {_VERBS.get(type(item.effect), 'sent')}")

    def _marker(self, unit: Unit[S, P, I], item: I) -> I | None:
        """The first earlier operation that tells what a unit flag waits for."""
        waits = item.mark.waits if item.mark is not None else ""
        for other in unit.marked:
            if other.number >= item.number:
                break
            if other.mark is not None and other.mark.tells == waits:
                return other
        return None

    # ---- start

    def start(self, unit: Unit[S, P, I], item: I) -> bool:
        """Do the first of a queue that can be tried; False when its meaning makes it wait."""
        pipe = self.pipe(unit, item.pipe)
        if not self._begin(unit, pipe, item):
            return False
        self._leave(unit, pipe, item)
        return True

    def _leave(self, unit: Unit[S, P, I], pipe: P, item: I) -> None:
        pipe.queue.popleft()
        if item.mark is not None:
            unit.marked.remove(item)

    def _begin(self, unit: Unit[S, P, I], pipe: P, item: I) -> bool:
        """Run one operation; False when it has to wait."""
        effect, mark = item.effect, item.mark
        kind = type(effect)
        met = self._met.get(kind)
        if met is not None and not met(unit, item, effect):
            return False
        if mark is not None and self._marker(unit, item) is not None:
            return False
        if pipe.seen != unit.version or item.stamp is not None or mark is not None:
            self._catch_up(unit, pipe, item)
        if effect is None:
            item.reason = self.work(unit, pipe, item)
            if item.reason is not None:
                return False
        else:
            join, tell = self._joins.get(kind), self._tells.get(kind)
            if join is not None:
                join(unit, pipe, item, effect)
            self.work(unit, pipe, item)
            if tell is not None:
                tell(unit, pipe, item, effect)
        for releases, number in item.after:
            releases.complete(number, pipe.publish())
        if mark is not None and mark.tells:
            stamp, old = pipe.publish(), unit.marks.get(mark.tells)
            unit.marks[mark.tells] = stamp if old is None else self.merged(stamp, old)
        item.is_done = True
        if pipe is unit.pipes.get("S"):
            unit.version += 1
        return True

    def _catch_up(self, unit: Unit[S, P, I], pipe: P, item: I) -> None:
        """It comes after what the scalar unit knew when it was issued, and after unit flags."""
        if item.stamp is not None:
            if item.version != pipe.seen:
                pipe.join(item.stamp)
                pipe.seen = item.version
        elif pipe.seen != unit.version:
            scalar = unit.pipes.get("S") or self.pipe(unit, "S")
            if pipe is not scalar:
                pipe.join(scalar.handed())
            pipe.seen = unit.version
        if item.mark is not None and item.mark.waits in unit.marks:
            pipe.join(unit.marks[item.mark.waits])

    def _pump(self, unit: Unit[S, P, I]) -> None:
        """Let parked pipes go on as far as they can."""
        moved = True
        while moved:
            moved = False
            for pipe in list(unit.pipes.values()):
                while pipe.queue and self._begin(unit, pipe, pipe.queue[0]):
                    self._leave(unit, pipe, pipe.queue[0])
                    moved = True
            while unit.waiting and self._issue(unit, unit.waiting[0]):
                unit.waiting.popleft()
                moved = True
        if not unit.waiting and unit.is_idle:
            self.parked.discard(unit)

    def pump_all(self) -> None:
        """Until nothing moves any more."""
        before = -1
        while before != (left := self._left()):
            before = left
            for unit in list(self.parked):
                self._pump(unit)

    def _left(self) -> int:
        return sum(len(unit.waiting) + sum(1 for _ in unit.items()) for unit in self.parked)

    def _wake(self, but: Unit[S, P, I]) -> None:
        for unit in list(self.parked):
            if unit is not but:
                self._pump(unit)

    # ---- what each effect does, within an agent

    def _set_flag(self, unit: Unit[S, P, I], pipe: P, item: I, effect: fx.SetFlag) -> None:
        stamp = pipe.publish()
        queue = unit.flags.get(effect.key)
        if queue is None:
            queue = unit.flags[effect.key] = deque()
        self.was_set(unit, pipe, item, effect.flag, stamp, queue)
        queue.append((stamp, item))

    def _wait_flag(self, unit: Unit[S, P, I], pipe: P, item: I, effect: fx.WaitFlag) -> None:
        found = unit.flags[effect.key].popleft()
        self.was_taken(unit, pipe, item, effect.flag, found)
        pipe.join(found[0])

    def _barrier(self, unit: Unit[S, P, I], pipe: P, item: I, effect: fx.Barrier) -> None:
        self.was_fenced(unit, pipe, item)
        pipe.settle()

    def _acquire(self, unit: Unit[S, P, I], pipe: P, item: I, effect: fx.Acquire) -> None:
        if item.need > 0:
            pipe.join(unit.buffers[effect.id].before(item.need))

    def _release(self, unit: Unit[S, P, I], pipe: P, item: I, effect: fx.Release) -> None:
        unit.buffers[effect.id].complete(item.need, pipe.publish())

    # ---- between agents

    def _send(self, unit: Unit[S, P, I], pipe: P, item: I, effect: fx.Send) -> None:
        stamp = pipe.publish()
        for key in effect.signals:
            self.signals.setdefault(unit.signal(key), deque()).append((stamp, pipe, item))
        for (meeting, block, _), value in effect.arrivals:
            self._rounds.setdefault((unit.launch, meeting, value), []).append((block, stamp))
        self._wake(unit)

    def _hear(self, unit: Unit[S, P, I], pipe: P, item: I, effect: fx.Hear) -> None:
        for key in effect.signals:
            pipe.join(self.signals[unit.signal(key)].popleft()[0])
        for meeting, value in effect.meetings:
            for where, stamp in self._rounds.get((unit.launch, meeting, value), ()):
                if meeting[0] == "0" or where == unit.block:
                    pipe.join(stamp)

    def _meet(self, unit: Unit[S, P, I], pipe: P, item: I, effect: fx.Meet) -> None:
        if any(key in effect.joins for key in effect.publishes):
            # where all meet, what one's own pipes have done is done for one's other pipes too
            self._publish(unit, pipe, item, effect)
        for key in effect.joins:
            stamp = self._meetings.get(unit.meeting(key))
            for each in _who_meets(unit, pipe, effect) if stamp is not None else ():
                each.join(stamp)

    def _publish(self, unit: Unit[S, P, I], pipe: P, item: I, effect: fx.Meet) -> None:
        """After the work of the operation itself: a push has written what a pop reads."""
        for key in (unit.meeting(key) for key in effect.publishes):
            self._came[key] = self._came.get(key, 0) + 1
            stamp = self._meetings.get(key)
            for each in _who_meets(unit, pipe, effect):
                own = each.publish()
                stamp = own if stamp is None else self.merged(stamp, own)
            if stamp is not None:
                self._meetings[key] = stamp
        self._wake(unit)

    # ---- words in global memory

    def _word(self, key: Any) -> Word[S]:
        return self._words.setdefault(key, Word[S]())

    def _notify(self, unit: Unit[S, P, I], pipe: P, item: I, effect: fx.Notify) -> None:
        self._word(effect.word).tell(effect, pipe.publish(), self.merged)
        self._wake(unit)

    def _await(self, unit: Unit[S, P, I], pipe: P, item: I, effect: fx.Await) -> None:
        for key in effect.words:
            _, stamp = self._word(key).seen(pipe, effect.is_met)
            if stamp is not None:
                pipe.join(stamp)


_COUNTED = (fx.Acquire, fx.Release)
_VERBS: dict[type, str] = {fx.WaitFlag: "set"}


def _who_meets(unit: Unit[S, P, I], pipe: P, effect: fx.Meet) -> list[P]:
    """The pipe of the operation; where all cores meet, every pipe of the agent."""
    return list(unit.pipes.values()) if effect.is_of_all_cores else [pipe]
