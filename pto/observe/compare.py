"""Compares two compilers' outputs of one program: do they order the same accesses?

Both run under the sanitizer on the inputs of `trials.py`. A difference is a pair of accesses to
common bytes, one of them a write, that only one program leaves unordered. Fences that differ
without such an effect are notes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from pto.core.errors import Diagnostic, Note
from pto.ir.graph import Module, Operation
from pto.observe.aligned import Aligned, AlignedFence, align
from pto.observe.deep import affordable
from pto.observe.replay import TrialRun
from pto.observe.sanitize import Sanitizer
from pto.observe.trials import choose, entry_names
from pto.verify.program import target_of

LOST = "PTO-D220"
GAINED = "PTO-D221"
FENCE = "PTO-D222"
WORK = "PTO-D223"
_SHOWN = 4  # fences that a finding names
Pair = tuple[int, int]  # numbers of aligned operations


@dataclass(frozen=True, slots=True)
class Compared:
    """The differences of two programs; those in `order` make them differ, `fences` need not."""

    order: list[Diagnostic]
    fences: list[Diagnostic]
    both: int  # fences at the same position of both
    other: int  # fences of one program, or at another position
    runs: int

    @property
    def is_same(self) -> bool:
        return not self.order


def compare(
    first: Module, second: Module, *, profile: str | None = None, device: str | None = None
) -> Compared:
    """The differences in order between the first and the second program."""
    target = target_of(first, profile=profile, device=device).profile
    aligned = align(first, second, target)
    order = [_unlike(*run_found) for run_found in aligned.unlike]
    runs = 0
    by_key: dict[tuple[object, ...], Diagnostic] = {}
    for entry in entry_names(first):
        for run_found in affordable(choose(first, entry, profile=profile, device=device)):
            runs += 1
            for key, finding in _run(first, second, run_found.trial, aligned):
                by_key.setdefault(key, finding)
    order += by_key.values()
    named = {note.loc for finding in order for note in finding.notes}
    fences = [d for d in _fences(aligned) if named.isdisjoint((d.loc, *(n.loc for n in d.notes)))]
    other = len(aligned.lost) + len(aligned.fresh) + len(aligned.moved)
    return Compared(order, fences, aligned.both, other, runs)


# ---- runs


def _run(
    first: Module, second: Module, trial: TrialRun, aligned: Aligned
) -> Iterator[tuple[tuple[object, ...], Diagnostic]]:
    one, two = _watched(first, trial), _watched(second, trial)
    before, after = (_by_pair(watcher, aligned) for watcher in (one, two))
    for pair in after.keys() - before.keys():
        yield (LOST, *pair), _changed(LOST, after[pair], pair, aligned)
    for pair in before.keys() - after.keys():
        yield (GAINED, *pair), _changed(GAINED, before[pair], pair, aligned)
    stuck_findings = {(d.code, d.message) for d in one.stuck()}
    for finding in two.stuck():
        if (finding.code, finding.message) not in stuck_findings:
            yield (finding.code, finding.message), finding


class _OrderWatcher(Sanitizer):
    """A sanitizer of a run that may end early, by flags that block or by an error."""

    ended: tuple[Diagnostic, ...] = ()

    def stuck(self) -> list[Diagnostic]:
        """Errors about flags, and the error that ended the run."""
        deadlocks = [d for d in self.findings() if d.code.startswith("PTO-D")]
        return [d for d in (*deadlocks, *self.ended) if d.severity == "error"]


def _watched(module: Module, trial: TrialRun) -> _OrderWatcher:
    watcher = _OrderWatcher(trial.profile(module))
    watcher.ended = trial.attempt(module, observer=watcher)
    return watcher


def _by_pair(watcher: Sanitizer, aligned: Aligned) -> dict[Pair, Diagnostic]:
    """Races between operations that both programs have."""
    by_numbers: dict[Pair, Diagnostic] = {}
    for finding, (earlier, later) in watcher.races():
        numbers = aligned.number(earlier), aligned.number(later)
        if numbers[0] is not None and numbers[1] is not None:
            by_numbers[numbers[0], numbers[1]] = finding
    return by_numbers


# ---- differences as findings

_SENTENCES = {
    LOST: "the first program orders these accesses, this one does not",
    GAINED: "this program leaves these accesses without an order, the second orders them",
}


def _changed(code: str, finding: Diagnostic, pair: Pair, aligned: Aligned) -> Diagnostic:
    fences = aligned.lost if code == LOST else aligned.fresh
    moved = [
        moved_fence.first if code == LOST else moved_fence.second for moved_fence in aligned.moved
    ]
    near = [f for f in (*fences, *moved) if _between(f, pair)] or [*fences, *moved]
    where = "the first" if code == LOST else "the second"
    return Diagnostic(
        code,
        f"{_SENTENCES[code]}: {finding.message}",
        finding.loc,
        finding.severity if code == LOST else "warning",
        notes=(
            *finding.notes[:2],
            *(
                Note(f"{fence} is only in {where} program, here", fence.op.loc)
                for fence in near[:_SHOWN]
            ),
        ),
    )


def _between(fence: AlignedFence, pair: Pair) -> bool:
    low, high = min(pair), max(pair)
    return low < fence.place <= high


def _unlike(first: Operation | None, second: Operation | None) -> Diagnostic:
    """The finding of an operation that the other program lacks, or has another one instead."""
    if second is None and first is not None:
        message = f"{_name(first)} is only in the first program"
    elif first is None and second is not None:
        message = f"{_name(second)} is only in the second program"
    elif first is not None and second is not None:
        message = f"the second program has {_name(second)} here, the first {_name(first)}"
    else:
        raise RuntimeError("no operation differs")
    here = second or first
    notes = (Note("in the first program", first.loc),) if first and second else ()
    return Diagnostic(WORK, message, here.loc if here else None, notes=notes)


def _name(op: Operation) -> str:
    return op.name.removeprefix("pto.")


def _fences(aligned: Aligned) -> Iterator[Diagnostic]:
    """Fences of one program, as warnings."""
    for fence in aligned.lost:
        yield Diagnostic(FENCE, f"{fence} is only in the first program", fence.op.loc, "warning")
    for fence in aligned.fresh:
        yield Diagnostic(FENCE, f"{fence} is only in the second program", fence.op.loc, "warning")
    for moved_fence in aligned.moved:
        message = f"{moved_fence.second} stands at another place than in the first program"
        note = Note("in the first program", moved_fence.first.op.loc)
        yield Diagnostic(FENCE, message, moved_fence.second.op.loc, "warning", notes=(note,))
