"""Flags that an instruction uses inside, set by the program at the same time."""

from __future__ import annotations

from pto.core.errors import Diagnostic, Note
from pto.isa.row.flag import Flag, key_of
from pto.isa.row.pipe_of import inner_flags
from pto.isa.rules.rule import Case
from pto.observe.order.clocks import ClockAgent
from pto.observe.races import counters_text
from pto.run.watch.events import InstructionEvent
from pto.target.facts import Profile


class Reserved:
    """One finding an instruction and flag."""

    def __init__(self, profile: Profile) -> None:
        self._profile = profile
        self._inner: dict[int, tuple[Flag, ...]] = {}  # by operation
        self._found: dict[
            tuple[int, Flag], tuple[ClockAgent, InstructionEvent, InstructionEvent]
        ] = {}

    def look(self, agent: ClockAgent, item: InstructionEvent) -> None:
        """An instruction starts: none of the flags it uses inside may be set now."""
        op = item.op
        inner = self._inner.get(id(op))
        if inner is None:
            inner = self._inner[id(op)] = self._flags(item)
        for flag in inner:
            queue = agent.flags.get(key_of(flag, self._profile.sync.flag_identity))
            if queue:
                self._found.setdefault((id(op), flag), (agent, queue[-1][1], item))

    def _flags(self, item: InstructionEvent) -> tuple[Flag, ...]:
        row = item.op.row
        if not row.phases:
            return ()
        case = Case(item.op, self._profile)
        return tuple(Flag(*flag) for flag in inner_flags(case))

    def findings(self) -> list[Diagnostic]:
        return [_diagnostic(flag, *uses) for (_, flag), uses in self._found.items()]


def _diagnostic(
    flag: Flag, agent: ClockAgent, setter: InstructionEvent, item: InstructionEvent
) -> Diagnostic:
    op = item.op
    name = op.name.removeprefix("pto.")
    where = counters_text(op, item.counters)
    return Diagnostic(
        "PTO-D209",
        f"flag {flag} of {agent.name} is set while {name} runs, which may set and wait for the"
        " same flag inside",
        op.loc,
        "warning",
        notes=(
            Note(f"set by #{setter.number}", setter.op.loc),
            Note(f"{name} #{item.number}{where}", op.loc),
        ),
        help=f"wait for it before {name}, or take another id",
    )
