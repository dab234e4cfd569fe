"""Races as findings: the two accesses, their common bytes, and the missing order."""

from __future__ import annotations

from dataclasses import dataclass, field

from pto.core.errors import Diagnostic, Note
from pto.ir.graph import Operation
from pto.isa.row.traits import Control
from pto.observe.fixes.fix import Gap
from pto.observe.memory.granules import Conflict
from pto.observe.memory.lost import Pair
from pto.observe.order.clocks import Moment, Thread

# (earlier writes, later writes) -> its name and its column in _CODES
_KINDS = {
    (True, False): ("read-after-write", 0),
    (False, True): ("write-after-read", 1),
    (True, True): ("write-after-write", 2),
}
_VERBS = {False: ("read", "read"), True: ("write", "written")}
_IN_SCOPE = "in a vector scope"
# The relation of the two accesses.
_CODES = {
    "between pipes": ("PTO-R001", "PTO-R002", "PTO-R003"),
    "in a pipe": ("PTO-R004", "PTO-R005", "PTO-R006"),
    _IN_SCOPE: ("PTO-R007", "PTO-R007", "PTO-R007"),
    "cube and vector": ("PTO-R011", "PTO-R012", "PTO-R013"),
    "between blocks": ("PTO-R021", "PTO-R022", "PTO-R023"),
    "between launches": ("PTO-R031", "PTO-R032", "PTO-R033"),
    "between ranks": ("PTO-R034", "PTO-R035", "PTO-R036"),
}
# Two transfers of one pipe to the same bytes: the manual requires a barrier between them (micro
# instruction manual, pto.pipe_barrier); programs that depend on their order exist.
_SAME_PIPE_WRITES = "PTO-R006"
_STORES = "VST_VST"  # inside a vector scope: the same
_REMEMBERED = 1000  # locations of one finding that are listed separately


def counters_text(op: Operation, counters: tuple[int, ...], frame: str = ", {}") -> str:
    """`, i=2, j=0`: the loops around an operation, outermost first; empty if there are none."""
    names = [loop.regions[0].block.args[0].name for loop in op.loops()]
    text = ", ".join(f"{name}={value}" for name, value in zip(names, counters, strict=False))
    return frame.format(text) if text else ""


def described(thread: Thread, moment: Moment) -> str:
    """`tload #7 on MTE2, block 0, i=2`; without the pipe if a compiler orders the pipes."""
    name, where = moment.op.name.removeprefix("pto."), counters_text(moment.op, moment.counters)
    pipe = "" if thread.agent.automatic else f" on {thread.pipe}"
    return f"{name} #{moment.number}{pipe}, {thread.agent.name}{where}"


@dataclass(slots=True)
class _Race:
    code: str
    message: str
    pair: Pair
    notes: tuple[Note, ...]
    gap: Gap | None
    counters: list[tuple[int, ...]] = field(default_factory=list[tuple[int, ...]])
    count: int = 0


class Races:
    """All races of a run; those between the same two operations are one finding."""

    def __init__(self, target: str) -> None:
        self.target = target
        self._found: dict[tuple[str, int, int], _Race] = {}  # by place and operations
        self.lost: set[Pair] = set()  # two writes of one pipe, of which one is lost in part
        self.harmful: set[Pair] = set()  # those that lose data

    def add(
        self,
        conflict: Conflict,
        where: str,
        other: Thread,
        thread: Thread,
        moment: Moment,
        writes: bool,
        barrier: str = "",
        costs_data: bool | None = None,
    ) -> None:
        """`barrier`: the one that would order two accesses of a vector scope. `costs_data`: True if
        one of two writes fills scratch space and the other is a result; None: values decide."""
        kind, column = _KINDS[conflict.other_writes, writes]
        relation = _place(other, thread, barrier)
        code = _SAME_PIPE_WRITES if barrier == _STORES else _CODES[relation][column]
        earlier = other.moments[conflict.time - 1]
        # one missing order is one finding, also where an operand is read and written
        key = (relation, id(earlier.op), id(moment.op))
        race = self._found.get(key)
        if race is None:
            message = f"{kind} race on {where}: {_sentence(conflict, other, thread, writes)}"
            notes = (
                Note(
                    f"{_VERBS[conflict.other_writes][0]}: {described(other, earlier)}",
                    earlier.op.loc,
                ),
                Note(f"{_VERBS[writes][0]}: {described(thread, moment)}", moment.op.loc),
                Note(f"order: {_order(other, thread, barrier)}"),
            )
            gap = None
            if other.agent is thread.agent:
                gap = Gap(earlier.op, moment.op, other.pipe, thread.pipe, barrier)
            race = _Race(code, message, (earlier.op, moment.op), notes, gap)
            self._found[key] = race
        if race.code != code:
            return
        if code == _SAME_PIPE_WRITES and costs_data:
            self.harmful.add(race.pair)
        elif code == _SAME_PIPE_WRITES and costs_data is None:
            self.lost.add(race.pair)
        race.count += 1
        if len(race.counters) < _REMEMBERED:
            race.counters.append(moment.counters)

    def touch_registers(
        self, thread: Thread, reads: tuple[str, ...], leaves: tuple[str, ...]
    ) -> None:
        """Check special registers: a pipe is ordered with its own; other pipes must wait for its
        writes."""
        special = thread.agent.special
        for name in reads:
            other, left = special.get(name, (thread, 0))
            if other is not thread and left > thread.clock[other.index]:
                conflict = Conflict(other.index, left, True, 0, 0)
                where = f"special register {name}"
                self.add(conflict, where, other, thread, thread.moments[-1], False)
        special.update(dict.fromkeys(leaves, (thread, thread.now)))

    def findings(self) -> list[Diagnostic]:
        return [diagnostic for diagnostic, _ in self.with_gaps()]

    def with_gaps(self) -> list[tuple[Diagnostic, Gap | None]]:
        """Every finding with the two operations that a flag or barrier may order."""
        return [(self._diagnostic(race), race.gap) for race in self._found.values()]

    def with_pairs(self) -> list[tuple[Diagnostic, Pair]]:
        """Every finding with its two operations."""
        return [(self._diagnostic(race), race.pair) for race in self._found.values()]

    def _diagnostic(self, race: _Race) -> Diagnostic:
        is_kept = race.code == _SAME_PIPE_WRITES and race.pair not in self.harmful
        return Diagnostic(
            race.code,
            race.message,
            race.pair[1].loc,
            "warning" if is_kept else "error",
            notes=(*race.notes, Note(f"target: {self.target}{_alike(race)}")),
        )


def _place(other: Thread, thread: Thread, barrier: str) -> str:
    if other is thread:
        return _IN_SCOPE if barrier else "in a pipe"
    if other.agent is thread.agent:
        return "between pipes"
    if other.agent.rank != thread.agent.rank:
        return "between ranks"
    if other.agent.launch != thread.agent.launch:
        return "between launches"
    same_core = other.agent.cluster == thread.agent.cluster
    return "cube and vector" if same_core else "between blocks"


def _named(thread: Thread, beside: Thread) -> str:
    if thread.agent is beside.agent:
        return thread.pipe
    is_whole = thread.agent.automatic  # one thread for all pipes, which a compiler orders
    return thread.agent.name if is_whole else f"{thread.pipe} of {thread.agent.name}"


def _sentence(conflict: Conflict, other: Thread, thread: Thread, writes: bool) -> str:
    verb, (_, past) = _VERBS[writes][0], _VERBS[conflict.other_writes]
    if other is thread:
        return f"{thread.pipe} may {verb} before its own earlier operation has {past}"
    return f"{_named(thread, other)} may {verb} before {_named(other, thread)} has {past}"


def _order(other: Thread, thread: Thread, barrier: str) -> str:
    if barrier:
        return f'nothing tracks addresses in a vector scope; pto.mem_bar "{barrier}" orders them'
    if other is thread:
        return f"{thread.pipe} issues in order and completes in any order without a barrier"
    name, after = _named(thread, other), _named(other, thread)
    time = int(thread.clock[other.index])
    if not time:
        return f"{name} has never waited for {after}"
    number = other.moments[time - 1].number
    return f"{name} has waited for {after} only up to #{number}{_last_wait(thread, other)}"


def _last_wait(thread: Thread, other: Thread) -> str:
    last = thread.heard.get(other.index)
    if last is None:
        return ""
    flag, op = last
    line = f", line {op.loc.line}" if op.loc else ""
    return f" (wait_flag{flag}{line})"


def _alike(race: _Race) -> str:
    if race.count == 1:
        return ""
    last = [c[-1] for c in race.counters if c]
    loops = list(race.pair[1].around(Control.FOR))
    if not last or not loops:
        return f"; {race.count} alike"
    name = loops[0].regions[0].block.args[0].name
    return f"; {race.count} alike, {name}={min(last)}..{max(last)}"
