"""Findings about flags at the end of a launch: pipes blocked for ever, flags left set."""

from __future__ import annotations

from dataclasses import dataclass, replace
from operator import attrgetter

from pto.core.errors import Diagnostic, Note
from pto.ir.graph import Operation
from pto.isa.row import order as kinds
from pto.isa.row.flag import Flag, flag_of
from pto.isa.row.traits import Control
from pto.isa.rules.rule import Case
from pto.observe.order.clocks import ClockAgent, Thread
from pto.observe.order.pipes import RunOrder
from pto.observe.races import counters_text
from pto.run.order import effects as fx
from pto.run.order.state import answers, wanted
from pto.run.watch.events import InstructionEvent
from pto.target.facts import Profile


@dataclass(frozen=True, slots=True)
class _Stuck:
    """The first operation of a queue that cannot start, and its wait."""

    number: int
    thread: Thread
    item: InstructionEvent

    @property
    def op(self) -> Operation:
        return self.item.op

    @property
    def place(self) -> str:
        return f"at {self.op.loc}{counters_text(self.op, self.item.counters, ' ({})')}"


@dataclass(frozen=True, slots=True)
class _Reason:
    """The reason of a wait; `answer` is the operation that would end it, if one is queued."""

    text: str
    answer: Operation | None = None
    is_pending: bool = False


def findings(order: RunOrder, profile: Profile) -> list[Diagnostic]:
    """All findings; call it after every agent has ended."""
    order.pump_all()
    findings: list[Diagnostic] = []
    for agent in order.all:
        stuck = _stuck(agent)
        judge = _Judge(order, profile, agent)
        findings += [judge.deadlock(stuck)] if stuck else judge.left_set()
    findings += _unheard(order)
    return [*findings, *(_set_twice(profile, *setting) for setting in order.set_twice.values())]


def _set_twice(
    profile: Profile,
    agent: ClockAgent,
    flag: Flag,
    first: InstructionEvent,
    second: InstructionEvent,
) -> Diagnostic:
    """The finding of a repeated set: a one-bit flag loses it, a counting flag does not."""
    op = second.op
    where = counters_text(op, second.counters)
    is_bit = profile.sync.flag_arity == "bit"
    lost = "it is one bit" if is_bit else "it counts here, and is one bit elsewhere"
    return Diagnostic(
        "PTO-D203",
        f"flag {flag} of {agent.name} is set again before the last set was waited for: {lost}",
        op.loc,
        "error" if is_bit else "warning",
        notes=(
            Note(f"set first by #{first.number}", first.op.loc),
            Note(f"set again by #{second.number}{where}", op.loc),
        ),
    )


def _unheard(order: RunOrder) -> list[Diagnostic]:
    """Signals between agents without a wait."""
    by_op: dict[int, Diagnostic] = {}
    for (_, (receiver, _)), queue in order.signals.items():
        if not queue:
            continue
        _, thread, item = queue[-1]
        side, sub, number = receiver
        who = f"vector {sub}" if side == "vector" else "the cube"
        many = f" {len(queue)} times" if len(queue) > 1 else ""
        message = f"signal {number} of {thread.agent.name} to {who} is sent but{many} never awaited"
        op = item.op
        finding = Diagnostic("PTO-D211", message, op.loc, "warning", notes=_sent(item))
        by_op.setdefault(id(op), finding)
    return list(by_op.values())


def _sent(item: InstructionEvent) -> tuple[Note, ...]:
    return (Note(f"sent last by #{item.number}{counters_text(item.op, item.counters)}"),)


_OVERFLOW = "PTO-D113"


def explained(error: Diagnostic, order: RunOrder) -> Diagnostic:
    """Add the progress of all agents to the error of a counter that overflows."""
    if error.code != _OVERFLOW:
        return error
    notes: list[Note] = []
    for agent in order.all:
        last = max(
            (t.moments[-1] for t in agent.pipes.values() if t.moments), key=_number, default=None
        )
        if last is None:
            notes.append(Note(f"{agent.name} has completed nothing yet"))
        else:
            name = last.op.name.removeprefix("pto.")
            notes.append(
                Note(f"{agent.name} has executed up to {name} #{last.number}", last.op.loc)
            )
    return replace(error, notes=(*error.notes, *notes))


_number = attrgetter("number")

# ---- pipes blocked for ever


def _stuck(agent: ClockAgent) -> list[_Stuck]:
    waiting = [t for t in agent.pipes.values() if t.queue]
    waiting.sort(key=lambda t: t.queue[0].number)
    return [_Stuck(n, t, t.queue[0]) for n, t in enumerate(waiting, 1)]


class _Judge:
    """Finds out why the pipes of an agent are blocked, or why a flag is left set."""

    def __init__(self, order: RunOrder, profile: Profile, agent: ClockAgent) -> None:
        self._order = order
        self._profile = profile
        self._agent = agent

    def deadlock(self, stuck: list[_Stuck]) -> Diagnostic:
        reasons = [self._reason(blocked, stuck) for blocked in stuck]
        notes: list[Note] = []
        for blocked, reason in zip(stuck, reasons, strict=True):
            waits = f"waits for {wanted(blocked.item)} {blocked.place}"
            text = f"{blocked.number}. {blocked.thread.pipe} {waits}"
            notes.append(Note(f"{text}, because {reason.text}", blocked.op.loc))
        queues = (t.queue for t in self._agent.pipes.values())
        later = sum(map(len, queues)) + len(self._agent.waiting) - len(stuck)
        notes.append(Note(f"{later} later operations of {self._agent.name} can never run"))
        code, message, op, more = self._named(stuck, reasons)
        return Diagnostic(code, message, op.loc, notes=(*notes, *more))

    def _named(
        self, stuck: list[_Stuck], reasons: list[_Reason]
    ) -> tuple[str, str, Operation, list[Note]]:
        """The kind of error: code, sentence, location, and further notes."""
        for blocked, reason in zip(stuck, reasons, strict=True):
            loop = self._unprimed(blocked, reason)
            if loop is not None and reason.answer is not None:
                message = (
                    f"a loop is not primed: {blocked.thread.pipe} of {self._agent.name} waits for "
                    f"{wanted(blocked.item)}, which only the same turn sets, later"
                )
                notes = [Note("set here", reason.answer.loc), Note("the loop", loop.loc)]
                return "PTO-D204", message, blocked.op, notes
        never = [e for e, r in zip(stuck, reasons, strict=True) if not r.is_pending]
        if not never:
            message = f"deadlock on {self._agent.name}: no pipe can proceed"
            return "PTO-D200", message, stuck[0].op, []
        blocked = never[0]
        message = (
            f"{blocked.thread.pipe} of {self._agent.name} waits for {wanted(blocked.item)}, which"
        )
        flag = _flag(blocked)
        branch = None if flag is None else self._untaken(blocked.op, flag, kinds.SetFlag)
        if branch is not None:
            note = Note("its set is in a branch that was not taken", branch.loc)
            return "PTO-D205", f"{message} only an untaken branch sets", blocked.op, [note]
        return "PTO-D201", f"{message} is never set", blocked.op, []

    def _reason(self, blocked: _Stuck, stuck: list[_Stuck]) -> _Reason:
        for other in stuck:
            for item in other.thread.queue:
                if answers(self._agent, item, blocked.item):
                    action = "set" if _flag(blocked) else "release"
                    queue = f"the queue of {other.thread.pipe}"
                    text = f"its {action} is behind {other.number}. in {queue}"
                    return _Reason(text, item.op, True)
        for item in self._agent.waiting:
            if answers(self._agent, item, blocked.item):
                full = [s for s in stuck if s.thread.pipe == "S"] or stuck
                text = f"its set is not issued: the scalar unit is held by {full[0].number}."
                return _Reason(text, item.op, True)
        flag = _flag(blocked)
        if flag is None:
            return _Reason("nothing answers it")
        return _Reason(f"no set_flag({flag.src}, {flag.dst}, {flag.id}) was issued for it")

    def _unprimed(self, blocked: _Stuck, reason: _Reason) -> Operation | None:
        """The loop that sets a flag after the wait for it, if the flag was never taken."""
        answer = reason.answer
        flag = _flag(blocked)
        if answer is None or flag is None or flag in self._agent.taken:
            return None
        above = {id(a): a for a in answer.around(Control.FOR)}
        loop = next((a for a in blocked.op.ancestors() if id(a) in above), None)
        if loop is None:
            return None
        order = [id(op) for op in loop.walk()]
        return loop if order.index(id(blocked.op)) < order.index(id(answer)) else None

    def _untaken(self, op: Operation, flag: Flag, kind: type[kinds.OfFlag]) -> Operation | None:
        """An operation on this flag inside a branch that never ran."""
        root = [op, *op.ancestors()][-1]
        for other in root.walk():
            if not isinstance(other.order, kind):
                continue
            if id(other) in self._order.fences.done or self._flag_of(other) != flag:
                continue
            if any(other.around(Control.IF)):
                return other
        return None

    def _flag_of(self, op: Operation) -> Flag | None:
        """The flag that attributes name; None if its id is an operand."""
        if op.operands:
            return None
        return flag_of(Case(op, self._profile))

    # ---- flags left set

    def left_set(self) -> list[Diagnostic]:
        return [self._left(q[-1][1], len(q)) for q in self._agent.flags.values() if q]

    def _left(self, item: InstructionEvent, count: int) -> Diagnostic:
        op, effect = item.op, item.effect
        if not isinstance(effect, fx.FlagSet):
            raise RuntimeError("a flag that nothing set")
        many = f" {count} times" if count > 1 else ""
        notes = [Note(f"set last by #{item.number}{counters_text(op, item.counters)}")]
        message = f"flag {effect.flag} of {self._agent.name} is left set{many}"
        branch = self._untaken(op, effect.flag, kinds.WaitFlag)
        if branch is not None:
            notes.append(Note("its wait is in a branch that was not taken", branch.loc))
            message = f"{message}: only an untaken branch waits for it"
            return Diagnostic("PTO-D205", message, op.loc, notes=tuple(notes))
        return Diagnostic(
            "PTO-D202", f"{message} at the end of the kernel", op.loc, notes=tuple(notes)
        )


def _flag(blocked: _Stuck) -> Flag | None:
    effect = blocked.item.effect
    return effect.flag if isinstance(effect, fx.FlagWait) else None
