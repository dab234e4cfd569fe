"""Findings about a buffer that is too small, with the live tiles at its fullest point; warnings."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from pto.core.errors import Diagnostic, Note
from pto.core.memory import Space
from pto.plan.buffers import unplaced
from pto.plan.placement import BufferUse, FunctionPlan, Placed
from pto.target.device import device, smallest
from pto.target.devices import DeviceSpec
from pto.target.facts import Profile

_LARGEST = 5  # tiles that a finding lists
_ADVICE = "split the largest, or use them one after the other"


def shortage(plan: FunctionPlan, profile: Profile) -> Iterator[Diagnostic]:
    """One finding for each buffer that is too small for the tiles planned there."""
    for use in plan.uses:
        free = [p for p in plan.placed if p.buffer.space is use.space and p.buffer.fixed is None]
        largest = max(free, key=lambda p: p.buffer.nbytes, default=None)
        if largest is None or all(p.end <= use.capacity for p in free):
            continue
        if largest.buffer.nbytes > use.capacity:
            yield _too_large(largest, use, profile)
        else:
            yield _too_full(plan, use, free, profile)


def _too_large(p: Placed, use: BufferUse, profile: Profile) -> Diagnostic:
    has = f"has {use.capacity:,}" if use.capacity else "has none"
    need = f"{p.buffer.name} needs {p.buffer.nbytes:,} bytes of {use.space.value}"
    return Diagnostic("PTO-M120", f"{need}, {profile} {has}", p.buffer.op.loc)


def _too_full(
    plan: FunctionPlan, use: BufferUse, free: Sequence[Placed], profile: Profile
) -> Diagnostic:
    together = [p for p in (*plan.placed, *plan.taken) if _is_alive(p, use.space, use.fullest)]
    together.sort(key=lambda p: (-p.buffer.nbytes, p.start))
    line = plan.line(use.fullest)
    where = f" at line {line}" if line else ""
    need = f"{len(together)} buffers in use{where} need {use.alive:,} bytes of {use.space.value}"
    code, message = "PTO-M120", f"{need}, {profile} has {use.capacity:,}"
    if use.alive <= use.capacity:
        code = "PTO-M121"
        message = (
            f"no packing into the {use.capacity:,} bytes of {use.space.value} on {profile} was "
            f"found, though the {need}"
        )
    last = max(
        (p for p in free if _is_alive(p, use.space, use.fullest)),
        key=lambda p: (p.buffer.alive.first if p.buffer.alive else 0, p.buffer.nbytes),
        default=free[0],
    )
    notes = tuple(_note(plan, p) for p in together[:_LARGEST])
    rest = together[_LARGEST:]
    if rest:
        total = sum(p.buffer.nbytes for p in rest)
        notes += (Note(f"and {len(rest)} more of {total:,} bytes together"),)
    return Diagnostic(code, message, last.buffer.op.loc, notes=notes, help=_ADVICE)


def _is_alive(p: Placed, space: Space, at: int) -> bool:
    alive = p.buffer.alive
    return alive is not None and p.buffer.space is space and alive.first <= at <= alive.last


def _note(plan: FunctionPlan, p: Placed) -> Note:
    lines = plan.lines(p.buffer.alive)
    when = f", lines {lines[0]} to {lines[1]}" if lines else ""
    return Note(
        f"{p.buffer.name}: {p.buffer.nbytes:,} bytes, {p.buffer.type}{when}", p.buffer.op.loc
    )


def warnings(plan: FunctionPlan, profile: Profile, *, by_hand: bool) -> Iterator[Diagnostic]:
    """Warnings about a plan; none for a function that sets all addresses itself.

    `by_hand`: the program orders its pipes itself.
    """
    if all(p.buffer.fixed is not None for p in plan.placed):
        return
    for op in unplaced(plan.function, plan.times):
        message = (
            f"'{op.name}' op uses local memory the planner cannot see: it may lie on planned tiles"
        )
        yield Diagnostic("PTO-M124", message, op.loc, "warning", help=_PLACE_ALL)
    for use in plan.uses:
        yield from _narrower(plan, use, profile)
        if by_hand:
            yield from _shared(plan, use, profile)


def _shared(plan: FunctionPlan, use: BufferUse, profile: Profile) -> Iterator[Diagnostic]:
    """A warning if tiles of a function that sets flags by hand have to share bytes."""
    here = [p for p in plan.placed if p.buffer.space is use.space and p.buffer.alive is not None]
    here.sort(key=lambda p: p.start)
    pairs = [(a, b) for a, b in pairwise(here) if b.start < a.end and None in _fixed(a, b)]
    if not pairs:
        return
    a, b = pairs[0]
    total = sum(p.buffer.nbytes for p in here)
    message = (
        f"@{plan.name} sets flags by hand, and its tiles need {total:,} bytes of {use.space.value}"
        f" side by side: {profile} has {use.capacity:,}, so that {b.buffer.name} lies on"
        f" {a.buffer.name}"
    )
    notes = (_note(plan, a), _note(plan, b))
    yield Diagnostic(SHARED, message, b.buffer.op.loc, "warning", notes=notes, help=_ORDER)


def _fixed(*placed: Placed) -> list[int | None]:
    return [p.buffer.fixed for p in placed]


SHARED = "PTO-M129"
_ORDER = "order the last use of one before the first of the other, or give them addresses"
_PLACE_ALL = "give every tile of the function an address, or none"


def everywhere(space: Space, profile: Profile) -> int:
    """The bytes of a buffer that a program may use on every device of the profile."""
    chip = _tight(space, profile)
    size = profile.buffers[space.value]
    return min(_usable(space, profile), size if chip is None else chip.buffers[space.value])


def _tight(space: Space, profile: Profile) -> DeviceSpec | None:
    """The device with the smallest buffer; None if one is chosen, or all have as much."""
    return smallest(profile, space.value) if profile.device is None else None


def _usable(space: Space, profile: Profile) -> int:
    """The bytes of a buffer below those that the chosen device uses itself."""
    if space is Space.UB and profile.device is not None:
        return device(profile.device).usable_ub
    return profile.buffers[space.value]


def _narrower(plan: FunctionPlan, use: BufferUse, profile: Profile) -> Iterator[Diagnostic]:
    what = f"@{plan.name} takes {use.high:,} bytes of {use.space.value}"
    chip = _tight(use.space, profile)
    if chip is not None and use.high > chip.buffers[use.space.value]:
        message = f"{what}: {profile} has them, {chip.name} only {chip.buffers[use.space.value]:,}"
        help = f"`--device {chip.name}` plans for it"
        yield Diagnostic("PTO-M125", message, plan.function.loc, "warning", help=help)
    kept = _usable(use.space, profile)
    if kept < use.high <= use.capacity:
        message = f"{what}: from byte {kept:,} on, {profile.device} uses them itself"
        yield Diagnostic("PTO-M128", message, plan.function.loc, "warning")
