"""Values that a pass makes again, instead of finding them where an earlier pass left them.

What was loaded is read where it lies, and what takes a processor an instruction or two is done once
more: to store it and to load it takes longer. Only of tiles that nobody else sees.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from pto.run.jit.emit.tile.group import Step

_CHEAP = 3  # lines of text that make a value
_DEAR = ("fdiv", "sdiv", "udiv", "frem", "call")

Weigh = Callable[[Step], Sequence[str]]  # lines of text that a step takes


class _Made(NamedTuple):
    """Who wrote a ref, from which versions of others, after how many stores to global memory."""

    step: Step
    sources: dict[str, int]
    stores: int


class Again:
    """Goes through passes in order; `of` gives each with what it makes again."""

    def __init__(self, weigh: Weigh) -> None:
        self._weigh = weigh
        self._now: dict[str, int] = {}  # how often each ref was written: its version
        self._made: dict[tuple[str, int], _Made] = {}
        self._stores = 0

    def of(self, steps: Sequence[Step]) -> list[Step]:
        found: list[Step] = []
        here = set[str]()  # refs whose values this pass has
        for step in steps:
            for ref in step.refs:
                if ref.owner and ref.shape == "matrix" and ref.pointer not in here:
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
        name, sources = step.dst.pointer, {r.pointer: self._version(r.pointer) for r in step.refs}
        self._now[name] = self._version(name) + 1
        self._stores += step.dst.memory < 0 and not step.dst.owner
        self._made[name, self._now[name]] = _Made(step, sources, self._stores)

    def _again(self, name: str, version: int) -> list[Step] | None:
        """Steps that make a version again and leave refs as they are; None: at no small cost."""
        found = self._steps(name, version)
        if found is None or sum(len(self._weigh(step)) for step in found) > _CHEAP:
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
        if any(word in line for line in self._weigh(made.step) for word in _DEAR):
            return None
        found: list[Step] = []
        for ref in made.step.refs:
            own, given = ref.owner and ref.shape == "matrix", made.sources[ref.pointer]
            more = self._steps(ref.pointer, given) if own else []
            if more is None or (not own and given != self._version(ref.pointer)):
                return None
            found += [step for step in more if step not in found]
        return [*found, made.step]
