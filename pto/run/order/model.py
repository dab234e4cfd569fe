"""The one model of pipes, flags, buffer ids, queues and barriers, generic over its clock.

The scalar unit of an agent issues operations in program order, each into the queue of its pipe. An
operation starts when it is the first of its queue and everything it waits for has happened. The
rules of flags, buffer ids, queues and barriers are defined here once. A user of the model supplies

- **a clock**: a subclass of `Pipe` with `publish`, `join` and `settle` on its own stamps, and
  `Model.merged`. The sanitizer's stamps are vector clocks (`observe/order/clocks.py`); a schedule
  needs none (`pipes.py`). For time, a stamp is a cycle, `join` and `merged` are the maximum,
  `publish` is the end of the pipe's last operation, and `settle` keeps the pipe busy until then.
- **work**: `Model.work` is called when an operation starts, after everything it waits for was
  joined: it checks accesses, runs the step, or adds a duration to its pipe. `Model.issuing` is
  called when the scalar unit issues an operation: a clock of time advances the scalar pipe there.
- **a policy**: `issue` starts each operation as soon as it can (the order of starts changes no
  stamp, since pipes are in order and flags first in, first out); `put`, `wants` and `start` leave
  the choice to the caller (`choice.py`).

Timing is then `class Timed(Pipe[float, I])` with `free` and `done`, and a `Model` with a `work`
that sets `start = max(free, joined)`, `free = start + occupancy` and `done = free + latency`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Generic

from pto.isa.meaning.kinds import Blocked
from pto.isa.row.flag import Flag
from pto.run.order import effects as fx
from pto.run.order.buffers import Releases
from pto.run.order.state import I, Issuer, P, QueuedOp, S, answers, wanted
from pto.run.order.words import SignalWord
from pto.target.facts import Sync

Want = QueuedOp | Blocked | None  # an operation to run first; blocked by another agent; nothing
_IsMet = Callable[[Issuer[S, P, I], I, Any], bool]
_Part = Callable[[Issuer[S, P, I], P, I, Any], None]
_Rule = tuple[_IsMet[S, P, I] | None, _Part[S, P, I] | None, _Part[S, P, I] | None]


class Model(ABC, Generic[S, P, I]):
    """Orders the operations of all agents."""

    def __init__(self, sync: Sync) -> None:
        self.sync = sync
        self.parked: set[Issuer[S, P, I]] = set()  # agents with operations that could not start
        # sent and not yet received
        self.signals: dict[Any, deque[tuple[S, P, I]]] = {}
        self._rounds: dict[Any, list[tuple[int, S]]] = {}
        self._rendezvous_stamps: dict[Any, S] = {}
        self._arrived: dict[Any, int] = {}  # arrivals at a barrier
        self._words: dict[Any, SignalWord[S]] = {}
        # the condition for a start, the effect before the work of an operation, and the one after
        self._rules: dict[type, _Rule[S, P, I]] = {
            fx.FlagSet: (None, None, self._set_flag),
            fx.FlagWait: (self._is_set, self._wait_flag, None),
            fx.PipeBarrier: (None, self._barrier, None),
            fx.BufferAcquire: (self._is_released, self._acquire, None),
            fx.BufferRelease: (None, None, self._release),
            fx.SignalSend: (None, None, self._send),
            fx.SignalWait: (self._is_sent, self._receive, None),
            fx.Rendezvous: (self._is_complete, self._rendezvous, self._publish),
            fx.WordWrite: (None, None, self._notify),
            fx.WordWait: (self._is_satisfied, self._await, None),
        }

    # ---- supplied by a user of the model

    @abstractmethod
    def new_pipe(self, unit: Any, name: str) -> P: ...

    @abstractmethod
    def merged(self, a: S, b: S) -> S:
        """The stamp that covers both."""

    @abstractmethod
    def work(self, unit: Any, pipe: P, item: I) -> Blocked | None:
        """Start an operation; Blocked, with nothing done, if its semantics make it wait."""

    def issuing(self, unit: Any, item: I) -> None:
        """Called when the scalar unit issues an operation."""

    def was_set(
        self, unit: Any, pipe: P, item: I, flag: Flag, stamp: S, before: Sequence[tuple[S, I]]
    ) -> None:
        """Called when a flag is set, with this stamp; `before`: earlier sets not yet consumed."""

    def was_taken(self, unit: Any, pipe: P, item: I, flag: Flag, by: tuple[S, I]) -> None:
        """Called when a wait consumes the set of another operation; its stamp is not joined yet."""

    def was_fenced(self, unit: Any, pipe: P | None, item: I) -> None:
        """Called before a barrier of a pipe, or of all, takes effect."""

    # ---- issue

    def pipe(self, unit: Issuer[S, P, I], name: str) -> P:
        """The pipe of an agent; operations without a pipe belong to the scalar unit."""
        pipe = unit.pipes.get(name)
        if pipe is None:
            name = "S" if name in ("none", "ALL") else name
            pipe = unit.pipes.get(name)
            if pipe is None:
                pipe = unit.pipes[name] = self.new_pipe(unit, name)
        return pipe

    def put(self, unit: Issuer[S, P, I], item: I) -> None:
        """Append an operation to its queue."""
        self._count(unit, item)
        self._append(unit, self.pipe(unit, item.pipe), item)

    def issue(self, unit: Issuer[S, P, I], item: I) -> None:
        """Issue an operation in program order; it starts at once, or as soon as it can."""
        was_parked = unit in self.parked
        if unit.waiting or not self._issue(unit, item):
            unit.waiting.append(item)
        if was_parked:
            self._pump(unit)

    def _issue(self, unit: Issuer[S, P, I], item: I) -> bool:
        """Issue an operation; False if the scalar unit has to wait first."""
        scalar = unit.pipes.get("S")
        if scalar is not None and scalar.queue:
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
            self._append(unit, pipe, item)
            self.parked.add(unit)
        return True

    def _append(self, unit: Issuer[S, P, I], pipe: P, item: I) -> None:
        item.stamp, item.version = self.pipe(unit, "S").handed(), unit.version
        pipe.queue.append(item)
        if item.mark is not None:
            unit.marked.append(item)

    def _count(self, unit: Issuer[S, P, I], item: I) -> None:
        """Number a release in program order, and an acquire by the releases that precede it."""
        effect = item.effect
        if not isinstance(effect, fx.BufferAcquire | fx.BufferRelease):
            return
        releases = unit.buffers.get(effect.id)
        if releases is None:
            releases = unit.buffers[effect.id] = Releases[S](self.merged)
        if isinstance(effect, fx.BufferAcquire):
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

    def fence(self, unit: Issuer[S, P, I], item: I) -> None:
        """A barrier of all pipes, called when all of them are empty."""
        pipes = list(unit.pipes.values()) or [self.pipe(unit, "S")]
        self.was_fenced(unit, None, item)
        merged = pipes[0].publish()
        for pipe in pipes[1:]:
            merged = self.merged(merged, pipe.publish())
        for pipe in pipes:
            pipe.join(merged)
        unit.version += 1

    # ---- conditions for a start

    def wants(self, unit: Issuer[S, P, I], item: I) -> Want:
        """The operation or signal that an operation still waits for."""
        first = self.pipe(unit, item.pipe).queue[0]
        if first is not item:
            return first
        if item.mark is not None and (other := self._marker(unit, item)) is not None:
            return other
        is_met = self._rules.get(type(item.effect), _NO_RULE)[0]
        if is_met is None or is_met(unit, item, item.effect):
            return None
        return self._answer(unit, item)

    def _is_set(self, unit: Issuer[S, P, I], item: I, effect: fx.FlagWait) -> bool:
        return bool(unit.flags.get(effect.key))

    def _is_released(self, unit: Issuer[S, P, I], item: I, effect: fx.BufferAcquire) -> bool:
        return unit.buffers[effect.id].done >= item.need

    def _is_sent(self, unit: Issuer[S, P, I], item: I, effect: fx.SignalWait) -> bool:
        return all(self.signals.get(unit.signal(key)) for key in effect.signals)

    def _is_complete(self, unit: Issuer[S, P, I], item: I, effect: fx.Rendezvous) -> bool:
        """True if a barrier can be passed: all other pipes are empty, all agents have arrived."""
        if not effect.is_of_all_cores:
            return True
        if any(pipe.queue and pipe.queue[0] is not item for pipe in unit.pipes.values()):
            return False
        others = effect.quorum - len(effect.publishes)
        return all(self._arrived.get(unit.meeting(k), 0) >= others for k in effect.joins)

    def _is_satisfied(self, unit: Issuer[S, P, I], item: I, effect: fx.WordWait) -> bool:
        """False only while a blocked agent has yet to write one of the words."""
        pipe, late = self.pipe(unit, item.pipe), self._held_words() if self.parked else ()
        return not any(
            word in late and not self._word(word).seen(pipe, effect.is_met)[0]
            for word in effect.words
        )

    def _held_words(self) -> set[Any]:
        items = (item for unit in self.parked for item in (*unit.items(), *unit.waiting))
        return {item.effect.word for item in items if isinstance(item.effect, fx.WordWrite)}

    def _answer(self, unit: Issuer[S, P, I], item: I) -> Want:
        """The issued operation that unblocks an item, if there is one."""
        for other in unit.items():
            if answers(unit, other, item):
                return other
        return Blocked(f"{wanted(item)}, which nothing has {_VERBS.get(type(item.effect), 'sent')}")

    def _marker(self, unit: Issuer[S, P, I], item: I) -> I | None:
        """The first earlier operation that sets the state for which a unit flag waits."""
        mark = item.mark
        if mark is None:
            return None
        for other in unit.marked:
            if other.number >= item.number:
                break
            if other.mark is not None and mark.follows(other.mark):
                return other
        return None

    # ---- start

    def start(self, unit: Issuer[S, P, I], item: I) -> bool:
        """Run the first operation of a queue; False if its semantics make it wait."""
        pipe = self.pipe(unit, item.pipe)
        if not self._begin(unit, pipe, item):
            return False
        self._leave(unit, pipe, item)
        return True

    def _leave(self, unit: Issuer[S, P, I], pipe: P, item: I) -> None:
        pipe.queue.popleft()
        if item.mark is not None:
            unit.marked.remove(item)

    def _begin(self, unit: Issuer[S, P, I], pipe: P, item: I) -> bool:
        """Run one operation; False when it has to wait."""
        effect, mark = item.effect, item.mark
        is_met, join, publish = self._rules.get(type(effect), _NO_RULE)
        if is_met is not None and not is_met(unit, item, effect):
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
            if join is not None:
                join(unit, pipe, item, effect)
            self.work(unit, pipe, item)
            if publish is not None:
                publish(unit, pipe, item, effect)
        for releases, number in item.after:
            releases.complete(number, pipe.publish())
        if mark is not None and mark.sets:
            stamp, old = pipe.publish(), unit.marks.get(mark)
            unit.marks[mark] = stamp if old is None else self.merged(stamp, old)
        item.is_done = True
        if pipe is unit.pipes.get("S"):
            unit.version += 1
        return True

    def _catch_up(self, unit: Issuer[S, P, I], pipe: P, item: I) -> None:
        """Order an operation after the scalar unit at its issue, and after unit flags."""
        if item.stamp is not None:
            if item.version != pipe.seen:
                pipe.join(item.stamp)
                pipe.seen = item.version
        elif pipe.seen != unit.version:
            scalar = unit.pipes.get("S") or self.pipe(unit, "S")
            if pipe is not scalar:
                pipe.join(scalar.handed())
            pipe.seen = unit.version
        if (mark := item.mark) is not None:
            for other, stamp in unit.marks.items():
                if mark.follows(other):
                    pipe.join(stamp)

    def _pump(self, unit: Issuer[S, P, I]) -> None:
        """Run the parked operations of an agent as far as possible."""
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
        """Run parked operations of all agents until no more can start."""
        before = -1
        while before != (left := self._left()):
            before = left
            for unit in list(self.parked):
                self._pump(unit)

    def _left(self) -> int:
        return sum(len(unit.waiting) + sum(1 for _ in unit.items()) for unit in self.parked)

    def _wake(self, but: Issuer[S, P, I]) -> None:
        for unit in list(self.parked):
            if unit is not but:
                self._pump(unit)

    # ---- effects within an agent

    def _set_flag(self, unit: Issuer[S, P, I], pipe: P, item: I, effect: fx.FlagSet) -> None:
        stamp = pipe.publish()
        queue = unit.flags.get(effect.key)
        if queue is None:
            queue = unit.flags[effect.key] = deque()
        self.was_set(unit, pipe, item, effect.flag, stamp, queue)
        queue.append((stamp, item))

    def _wait_flag(self, unit: Issuer[S, P, I], pipe: P, item: I, effect: fx.FlagWait) -> None:
        flag_set = unit.flags[effect.key].popleft()
        self.was_taken(unit, pipe, item, effect.flag, flag_set)
        pipe.join(flag_set[0])

    def _barrier(self, unit: Issuer[S, P, I], pipe: P, item: I, effect: fx.PipeBarrier) -> None:
        self.was_fenced(unit, pipe, item)
        pipe.settle()

    def _acquire(self, unit: Issuer[S, P, I], pipe: P, item: I, effect: fx.BufferAcquire) -> None:
        if item.need > 0:
            pipe.join(unit.buffers[effect.id].before(item.need))

    def _release(self, unit: Issuer[S, P, I], pipe: P, item: I, effect: fx.BufferRelease) -> None:
        unit.buffers[effect.id].complete(item.need, pipe.publish())

    # ---- between agents

    def _send(self, unit: Issuer[S, P, I], pipe: P, item: I, effect: fx.SignalSend) -> None:
        stamp = pipe.publish()
        for key in effect.signals:
            self.signals.setdefault(unit.signal(key), deque()).append((stamp, pipe, item))
        for (meeting, block, _), value in effect.arrivals:
            self._rounds.setdefault((unit.launch, meeting, value), []).append((block, stamp))
        self._wake(unit)

    def _receive(self, unit: Issuer[S, P, I], pipe: P, item: I, effect: fx.SignalWait) -> None:
        for key in effect.signals:
            pipe.join(self.signals[unit.signal(key)].popleft()[0])
        for meeting, value in effect.meetings:
            for where, stamp in self._rounds.get((unit.launch, meeting, value), ()):
                if meeting[0] == "0" or where == unit.block:
                    pipe.join(stamp)

    def _rendezvous(self, unit: Issuer[S, P, I], pipe: P, item: I, effect: fx.Rendezvous) -> None:
        if any(key in effect.joins for key in effect.publishes):
            # after a barrier, the work of one pipe of this agent is done for its other pipes too
            self._publish(unit, pipe, item, effect)
        for key in effect.joins:
            stamp = self._rendezvous_stamps.get(unit.meeting(key))
            for ordered in _ordered_pipes(unit, pipe, effect) if stamp is not None else ():
                ordered.join(stamp)

    def _publish(self, unit: Issuer[S, P, I], pipe: P, item: I, effect: fx.Rendezvous) -> None:
        """Publish after the work of the operation itself: a push has written what a pop reads."""
        for key in (unit.meeting(key) for key in effect.publishes):
            self._arrived[key] = self._arrived.get(key, 0) + 1
            stamp = self._rendezvous_stamps.get(key)
            for ordered in _ordered_pipes(unit, pipe, effect):
                published = ordered.publish()
                stamp = published if stamp is None else self.merged(stamp, published)
            if stamp is not None:
                self._rendezvous_stamps[key] = stamp
        self._wake(unit)

    # ---- words in global memory

    def _word(self, key: Any) -> SignalWord[S]:
        return self._words.setdefault(key, SignalWord[S]())

    def _notify(self, unit: Issuer[S, P, I], pipe: P, item: I, effect: fx.WordWrite) -> None:
        self._word(effect.word).tell(effect, pipe.publish(), self.merged)
        self._wake(unit)

    def _await(self, unit: Issuer[S, P, I], pipe: P, item: I, effect: fx.WordWait) -> None:
        for key in effect.words:
            _, stamp = self._word(key).seen(pipe, effect.is_met)
            if stamp is not None:
                pipe.join(stamp)


_NO_RULE = (None, None, None)
_VERBS: dict[type, str] = {fx.FlagWait: "set"}


def _ordered_pipes(unit: Issuer[S, P, I], pipe: P, effect: fx.Rendezvous) -> list[P]:
    """The pipes that a barrier orders: all of the agent if it is of all cores, else one."""
    return list(unit.pipes.values()) if effect.is_of_all_cores else [pipe]
