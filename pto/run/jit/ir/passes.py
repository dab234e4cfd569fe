"""Loop partition: which steps of a group share a pass over its rows, and which values one pass
leaves to another.

A pass works on all elements of some rows, or on one value a row (`is_column`). It ends where a step
needs a reduction of a whole row. A pass computes a value again instead of loading what an earlier
pass stored: loaded values are loaded again, and cheap ones computed again, as storing and loading
takes longer. Only for tiles that no other instruction reads.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from pto.run.jit.ir.nest import Step
from pto.run.jit.ir.strided import Access
from pto.run.jit.llvm.lowering import Cost, cost

_CHEAP = 3  # lines of LLVM that compute a value
_LANES = 16  # at a time, for the cost


def spilled_values(
    passes: Sequence[Sequence[Step]], of: Sequence[Step] | None = None
) -> dict[str, Access]:
    """Private refs that one pass leaves to another; with `of`, those that this pass leaves."""
    found: dict[str, Access] = {}
    made = set[str]()
    for steps in passes:
        own = set[str]()
        for step in steps:
            found |= {r.pointer: r for r in step.reads if r.private and r.pointer in made - own}
            own.add(step.dst.pointer)
        made = made | own if of is None or steps is of else made - own
    return found


def is_column(step: Step) -> bool:
    return step.dst.shape == "column" and step.fold is None


def passes(steps: Sequence[Step]) -> list[list[Step]]:
    """Put each step into the first possible pass: not before steps that share its accesses, and
    after the fold that it needs."""
    found: list[list[Step]] = []
    for step in steps:
        first = 0
        for n, earlier in enumerate(found):
            if any(_shares(step, other) for other in earlier):
                first = n + any(other.fold is not None and _needs(step, other) for other in earlier)
        kind = is_column(step)
        fitting = (each for each in found[first:] if is_column(each[0]) == kind)
        into = next(fitting, None)
        if into is None:
            found.append([step])
        else:
            into.append(step)
    return found


def _needs(step: Step, other: Step) -> bool:
    return any(ref.identity == other.dst.identity for ref in step.reads)


def _shares(step: Step, other: Step) -> bool:
    """True if one writes an access of the other; views of global memory may always overlap."""
    pairs = [(step.dst, ref) for ref in (other.dst, *other.reads)]
    pairs += [(ref, other.dst) for ref in step.reads]
    return any(a.identity == b.identity or (is_view(a) and is_view(b)) for a, b in pairs)


def is_view(ref: Access) -> bool:
    return ref.memory < 0 and not ref.private


# ---- rematerialisation


class _Made(NamedTuple):
    """The step that wrote a ref, the versions of its sources, and the number of earlier stores to
    global memory."""

    step: Step
    sources: dict[str, int]
    stores: int


def _cost(step: Step) -> Cost:
    return Cost() if step.expr is None else cost([step.expr], _LANES)


class Rematerialiser:
    """Processes passes in order; `of` returns a pass with its rematerialised steps."""

    def __init__(self) -> None:
        self._now: dict[str, int] = {}  # how often each ref was written: its version
        self._made: dict[tuple[str, int], _Made] = {}
        self._stores = 0

    def of(self, steps: Sequence[Step]) -> list[Step]:
        found: list[Step] = []
        here = set[str]()  # refs with a value in this pass
        for step in steps:
            for ref in step.reads:
                if ref.private and ref.shape == "matrix" and ref.pointer not in here:
                    more = self._again(ref.pointer, self._version(ref.pointer)) or []
                    found += more
                    here |= {again.dst.pointer for again in more}
            found.append(step)
            here.add(step.dst.pointer)
            self._note(step)
        return found

    def _version(self, name: str) -> int:
        return self._now.get(name, 0)

    def _note(self, step: Step) -> None:
        name, sources = step.dst.pointer, {r.pointer: self._version(r.pointer) for r in step.reads}
        self._now[name] = self._version(name) + 1
        self._stores += step.dst.memory < 0 and not step.dst.private
        self._made[name, self._now[name]] = _Made(step, sources, self._stores)

    def _again(self, name: str, version: int) -> list[Step] | None:
        """Steps that compute a version again without changing other refs; None if that is not
        cheap."""
        found = self._steps(name, version)
        if found is None or sum(_cost(step).lines for step in found) > _CHEAP:
            return None
        last = {step.dst.pointer: step for step in found}
        current = (self._made.get((n, self._version(n))) for n in last)
        same = all(
            m is not None and m.step is s for m, s in zip(current, last.values(), strict=True)
        )
        return found if same else None

    def _steps(self, name: str, version: int) -> list[Step] | None:
        made = self._made.get((name, version))
        if made is None or made.step.fold is not None or made.stores != self._stores:
            return None
        if _cost(made.step).is_slow:
            return None
        found: list[Step] = []
        for ref in made.step.reads:
            own, given = ref.private and ref.shape == "matrix", made.sources[ref.pointer]
            more = self._steps(ref.pointer, given) if own else []
            if more is None or (not own and given != self._version(ref.pointer)):
                return None
            found += [step for step in more if step not in found]
        return [*found, made.step]
