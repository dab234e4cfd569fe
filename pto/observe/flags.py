"""What is wrong with flags when a launch is over: pipes that can never go on, flags left set."""

from __future__ import annotations

from dataclasses import dataclass

from pto.core.errors import Diagnostic, Note
from pto.observe.clocks import Agent, Item, Thread
from pto.observe.order import Order
from pto.observe.races import counters_text
from pto.run import effects as fx
from pto.target.facts import Sync


@dataclass(frozen=True, slots=True)
class _Stuck:
    """The first operation of a queue that cannot start, and what it waits for."""

    number: int
    thread: Thread
    item: Item

    @property
    def place(self) -> str:
        op = self.item.event.op
        where = counters_text(op, self.item.event.counters)
        return f"at {op.loc}{f' ({where})' if where else ''}"


def findings(order: Order) -> list[Diagnostic]:
    """Call it when every agent is done."""
    order.pump_all()
    found: list[Diagnostic] = []
    for agent in order.all:
        stuck = _stuck(agent)
        found += [_deadlock(agent, stuck)] if stuck else _left_set(agent)
    return [*found, *(_set_twice(order.sync, *each) for each in order.set_twice.values())]


def _set_twice(sync: Sync, agent: Agent, flag: fx.Flag, first: Item, second: Item) -> Diagnostic:
    """Flags that are one bit lose the second set; others count."""
    op = second.event.op
    where = counters_text(op, second.event.counters)
    is_bit = sync.flag_arity == "bit"
    lost = "it is one bit" if is_bit else "it counts here, and is one bit elsewhere"
    return Diagnostic(
        "PTO-D203",
        f"flag {flag} of {agent.name} is set again before the last set was waited for: {lost}",
        op.loc,
        "error" if is_bit else "warning",
        notes=(
            Note(f"set first by #{first.moment.number}", first.event.op.loc),
            Note(f"set again by #{second.moment.number}{f', {where}' if where else ''}", op.loc),
        ),
    )


def _stuck(agent: Agent) -> list[_Stuck]:
    waiting = [t for t in agent.threads.values() if t.queue]
    waiting.sort(key=lambda t: t.queue[0].moment.number)
    return [_Stuck(n, t, t.queue[0]) for n, t in enumerate(waiting, 1)]


def _deadlock(agent: Agent, stuck: list[_Stuck]) -> Diagnostic:
    reasons = [_reason(agent, each, stuck) for each in stuck]
    notes: list[Note] = []
    for each, (because, _) in zip(stuck, reasons, strict=True):
        text = f"{each.number}. {each.thread.pipe} waits for {_wanted(each)} {each.place}"
        notes.append(Note(f"{text}, because {because}", each.item.event.op.loc))
    never = [each for each, (_, pending) in zip(stuck, reasons, strict=True) if not pending]
    held = sum(len(t.queue) for t in agent.threads.values()) + len(agent.waiting) - len(stuck)
    notes.append(Note(f"{held} later operations of {agent.name} can never run"))
    if never:
        each = never[0]
        message = (
            f"{each.thread.pipe} of {agent.name} waits for {_wanted(each)}, which is never set"
        )
        return Diagnostic("PTO-D201", message, each.item.event.op.loc, notes=tuple(notes))
    message = f"deadlock on {agent.name}: no pipe can go on"
    return Diagnostic("PTO-D200", message, stuck[0].item.event.op.loc, notes=tuple(notes))


def _flag(each: _Stuck) -> fx.Flag | None:
    effect = each.item.event.effect
    return effect.flag if isinstance(effect, fx.WaitFlag) else None


def _wanted(each: _Stuck) -> str:
    effect = each.item.event.effect
    if isinstance(effect, fx.WaitFlag):
        return f"flag {effect.flag}"
    if isinstance(effect, fx.GetBuffer):
        return f"buffer id {effect.id}"
    return "a signal of another agent"


def _reason(agent: Agent, each: _Stuck, stuck: list[_Stuck]) -> tuple[str, bool]:
    """(why, whether what it waits for stands behind something in a queue)."""
    for other in stuck:
        if any(_answers(item, each) for item in other.thread.queue):
            return f"its set is behind {other.number}. in the queue of {other.thread.pipe}", True
    if any(_answers(item, each) for item in agent.waiting):
        full = [s for s in stuck if s.thread.pipe == "S"] or stuck
        return f"its set is not issued: the scalar unit is held by {full[0].number}.", True
    flag = _flag(each)
    if flag is None:
        return "nothing answers it", False
    return f"no set_flag({flag.src}, {flag.dst}, {flag.id}) was issued for it", False


def _answers(item: Item, each: _Stuck) -> bool:
    mine, theirs = each.item.event.effect, item.event.effect
    if isinstance(mine, fx.WaitFlag) and isinstance(theirs, fx.SetFlag):
        return mine.flag == theirs.flag
    if isinstance(mine, fx.GetBuffer) and isinstance(theirs, fx.ReleaseBuffer):
        return mine.id == theirs.id
    return False


def _left_set(agent: Agent) -> list[Diagnostic]:
    found: list[Diagnostic] = []
    for flag, queue in agent.flags.items():
        if not queue:
            continue
        item = queue[-1][1]
        many = f" {len(queue)} times" if len(queue) > 1 else ""
        where = counters_text(item.event.op, item.event.counters)
        found.append(
            Diagnostic(
                "PTO-D202",
                f"flag {flag} of {agent.name} is left set{many} at the end of the kernel",
                item.event.op.loc,
                notes=(Note(f"set last by #{item.moment.number}{', ' + where if where else ''}"),),
            )
        )
    return found
