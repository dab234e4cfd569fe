"""Repairs a program: inserts fixes one after the other, each kept only if the next run is better.

Candidates for a race are in `fix.py`; here are also those for a flag that is never set, or left
set.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from pto.core.errors import Diagnostic
from pto.ir.graph import Module, Operation
from pto.isa.row.flag import Flag
from pto.isa.row.traits import Control
from pto.observe.fixes.fix import Candidate, Gap, candidates, named, place_of, set_text, wait_text
from pto.observe.mode import mode_of
from pto.observe.replay import TrialRun
from pto.observe.sanitize import Sanitizer
from pto.plan.calls import entry_functions
from pto.run.order import effects as fx
from pto.transform.edits import Edit, applied, apply, take_out, text_of

_ROUNDS = 64  # fixes of one program: each costs a few runs
_TRIED = 64  # fixes that are tried in one round
_TURNS = 4  # buffers of a multiple buffer, at most, if a flag id is chosen at run time
_KINDS = ("PTO-R", "PTO-D")
Score = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class Repair:
    """The inserted fixes as text, the resulting program, and the findings that remain."""

    done: tuple[str, ...]
    text: str
    left: tuple[Diagnostic, ...]


@dataclass(frozen=True, slots=True)
class _Seen:
    """The findings of a watched run."""

    errors: list[Diagnostic]
    gaps: list[Gap]
    waiting: list[tuple[Operation, Flag]]  # waits that never end
    left_set: list[tuple[Operation, Flag]]  # sets that no wait has taken

    @property
    def score(self) -> Score:
        """Lower is better: blocked pipes before flags left set before races."""
        waits = sum(d.code.startswith("PTO-D") for d in self.errors) - len(self.left_set)
        races = sum(d.code.startswith("PTO-R") for d in self.errors)
        return waits, len(self.left_set), races


def repair(module: Module, launches: Sequence[TrialRun], source: str) -> Repair:
    """Repair a program as far as fixes can be proven; the module itself is unchanged."""
    edits: list[Edit] = []
    edited: list[Operation] = []
    done: list[str] = []
    try:
        state = _watch(module, launches)
        while state.errors and len(done) < _ROUNDS:
            better = _step(module, launches, state)
            if better is None:
                break
            (words, more), state = better
            edited += apply(more)
            edits += more
            done.append(words)
        return Repair(tuple(done), text_of(module, edits, source), tuple(state.errors))
    finally:
        take_out(edited)


def _step(
    module: Module, launches: Sequence[TrialRun], state: _Seen
) -> tuple[Candidate, _Seen] | None:
    """The fix with the best next run, and the findings of that run; of equal ones the first."""
    best: tuple[Candidate, _Seen] | None = None
    score = state.score
    for candidate in islice(_ideas(state), _TRIED):
        with applied(candidate[1]):
            after = _watch(module, launches)
        if after.score < score:
            best, score = (candidate, after), after.score
        if not after.errors:
            break
    return best


def _watch(module: Module, launches: Sequence[TrialRun]) -> _Seen:
    state = _Seen([], [], [], [])
    for run in launches:
        functions = entry_functions(module, run.options.get("entry"))
        watcher = Sanitizer(run.profile(module), mode_of(functions))
        ended = run.attempt(module, check=False, observer=watcher)
        errors = [d for d in (*watcher.findings(), *ended) if d.severity == "error"]
        state.errors.extend(d for d in errors if d.code.startswith(_KINDS))
        state.gaps.extend(gap for _, gap in watcher.gaps() if gap is not None)
        for agent in watcher.order.all:
            blocked = [thread.queue[0] for thread in agent.pipes.values() if thread.queue]
            state.waiting.extend(
                (e.op, e.effect.flag) for e in blocked if isinstance(e.effect, fx.FlagWait)
            )
            left = agent.flags.values() if not blocked else ()  # else a wait may still take them
            sets = [queue[-1][1] for queue in left if queue]
            state.left_set.extend(
                (s.op, s.effect.flag) for s in sets if isinstance(s.effect, fx.FlagSet)
            )
    return state


# ---- candidates


def _ideas(state: _Seen) -> Iterator[Candidate]:
    for op, flag in state.waiting:
        yield from _for_wait(op, flag)
    for op, flag in state.left_set if not state.waiting else ():
        yield from _for_set(op, flag, state.gaps)
    for gap in state.gaps:
        yield from candidates(gap)


def _for_wait(op: Operation, flag: Flag) -> Iterator[Candidate]:
    """Candidates for a wait: a flag set at the end of each iteration, or a missing set."""
    loops = list(op.around(Control.FOR))
    numbers = [(flag.id,), *(tuple(range(n)) for n in range(2, _TURNS + 1) if op.operands)]
    for loop in loops:
        for ids in numbers:
            flags = [Flag(flag.src, flag.dst, n) for n in ids]
            prime = [Edit(loop, False, set_text(f)) for f in flags]
            drain = [Edit(loop, True, wait_text(f)) for f in reversed(flags)]
            words = ", ".join(f"set_flag{named(f)}" for f in flags)
            yield (
                f"{words} before the loop of {place_of(loop)}, wait_flag after it",
                [*prime, *drain],
            )
            yield f"{words} before the loop of {place_of(loop)}", prime
    yield f"set_flag{named(flag)} before {place_of(op)}", [Edit(op, False, set_text(flag))]


def _for_set(op: Operation, flag: Flag, gaps: Sequence[Gap]) -> Iterator[Candidate]:
    """Candidates for an unmatched set: a wait where the order is missing, or after the loops."""
    wait = wait_text(flag)
    for gap in gaps:
        if (gap.source, gap.target) == (flag.src, flag.dst):
            yield f"wait_flag{named(flag)} before {place_of(gap.later)}", [gap.before(wait)]
    for loop in op.loops():
        yield f"wait_flag{named(flag)} after the loop of {place_of(loop)}", [Edit(loop, True, wait)]
    yield f"wait_flag{named(flag)} after {place_of(op)}", [Edit(op, True, wait)]
