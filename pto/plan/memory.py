"""Addresses for tiles and buffers without one: liveness, then packing, one function at a time.

A function is planned after its callees: their memory is occupied during the calls.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from pto.core.errors import Diagnostic, PtoError
from pto.core.intervals import merged
from pto.core.memory import Space
from pto.ir.copied import copied
from pto.ir.graph import Module, Operation, Value
from pto.ir.liveness import Lifetime, Timeline, aliases, handed_on, timeline
from pto.isa.meaning.cube.factors import SCALE_SHIFT
from pto.isa.rules.cube import TABLE_UNIT
from pto.plan.buffers import (
    BufferUse,
    FunctionPlan,
    LocalBuffer,
    Placed,
    Placement,
    buffers,
    everywhere,
    scaled,
    shortage,
    unplaced,
    warnings,
)
from pto.plan.calls import FunctionNames, callees_first, imports, with_peers
from pto.plan.instances import check_calls, check_loops
from pto.plan.packing import Item, fullest, pack, spread
from pto.target.facts import Profile
from pto.transform.addresses import write_addresses

# PTOAS PTOPlanMemory.cpp, alignment; a profile may require more, never less.
BLOCK, FRACTAL = 32, 512
_FRACTALS = (Space.L0A, Space.L0B, Space.L0C)
# Tables that the units address in larger steps: pto-isa TMov.hpp (TMovToBt, SetFPC).
_TABLES = {Space.BIAS: 64, Space.FIXPIPE: TABLE_UNIT}


def plan_memory(program: Module | Operation | Sequence[Operation], profile: Profile) -> Placement:
    """A placement for a program, or for functions of it with all that they call.

    Tiles get disjoint bytes as long as the buffer is large enough. If it is not, bytes are reused
    as late as possible, so that a load rarely waits for the tile that it overwrites.
    """
    if isinstance(program, Module):
        functions = list(program.functions())
    else:
        functions = [program] if isinstance(program, Operation) else list(program)
    names = FunctionNames()
    wanted = with_peers([f for f in functions if f.has_body], names)
    plans, problems = _plans(wanted, names, profile, low=False)
    if problems:  # a called function may have taken bytes that its callers need
        plans, problems = _plans(wanted, names, profile, low=True)
    if problems:
        raise PtoError(*problems)
    ordered = tuple(plans[f] for f in wanted)
    addresses = {p.buffer.op: p.start for plan in ordered for p in plan.placed}
    addresses |= {op: addresses[reserve] for op, reserve in imports(wanted, names)}
    advice = tuple(d for plan in ordered for d in warnings(plan, profile, wanted))
    return Placement(profile, ordered, advice, addresses)


def _plans(
    wanted: Sequence[Operation], names: FunctionNames, profile: Profile, *, low: bool
) -> tuple[dict[Operation, FunctionPlan], list[Diagnostic]]:
    """A plan for each function, and the findings about buffers that are too small."""
    plans: dict[Operation, FunctionPlan] = {}
    problems: list[Diagnostic] = []
    for function, calls in callees_first(wanted, names):
        called = [(op, plans[callee]) for op, callee in calls]
        plans[function] = plan = _plan(function, called, profile, low)
        problems += shortage(plan, profile)
    return plans, problems


def addressed(module: Module, profile: Profile) -> Module:
    """The same program with every address that `plan_memory` chooses; `module` stays as it is.

    A compiler that keeps the addresses cannot place the program otherwise: what was proven of this
    one holds there too.
    """
    result = copied(module)
    write_addresses(result, plan_memory(result, profile).addresses)
    return result


def alignment(space: Space, profile: Profile) -> int:
    """The alignment of a planned buffer in bytes."""
    natural = FRACTAL if space in _FRACTALS else _TABLES.get(space, BLOCK)
    return max(natural, profile.alignment.base)


def _plan(
    function: Operation,
    called: Sequence[tuple[Operation, FunctionPlan]],
    profile: Profile,
    low: bool,
) -> FunctionPlan:
    """The plan of one function; with `low` its tiles take as few bytes as possible."""
    own_buffers = list(buffers(function))
    results = [v for op, plan in called if plan.returned for v in op.results]
    roots = [b.root for b in own_buffers if b.root is not None] + results
    times = timeline(function, roots, profile.name)
    taken = list(_taken(called, times))
    if any(op.is_loop for op in times.order):
        check_loops(roots, {b.root for b in own_buffers if b.fixed is not None}, times)
    if taken:
        check_calls(taken)
    operands = scaled(function)
    low = low or next(unplaced(function, times), None) is not None
    living = _together([b.living(times) for b in own_buffers], operands)
    placed: dict[LocalBuffer, Placed] = {}
    uses: list[BufferUse] = []
    used = {b.space for b in living} | {p.buffer.space for p in taken}
    for space in (s for s in Space if s in used):
        here = [b for b in living if b.space is space]
        over = [p for p in taken if p.buffer.space is space]
        at = {p.buffer.root: p.start for p in placed.values()}
        placed_beside = [
            _beside(b, at.get(operands[b.root]) if b.root in operands else None) for b in here
        ]
        starts, use = _pack(placed_beside, over, space, profile, low)
        placed |= {b: Placed(b, start) for b, start in zip(here, starts, strict=True)}
        uses.append(use)
    in_order = tuple(placed[b] for b in living)
    returned = tuple(_returned(function, in_order, called))
    return FunctionPlan(function, in_order, tuple(taken), returned, tuple(uses), times)


def _together(living: list[LocalBuffer], operands: Mapping[Value, Value]) -> list[LocalBuffer]:
    """The buffers, with operands of MX products alive as long as their scales."""
    alive = {operands[b.root]: b.alive for b in living if b.root and b.root in operands and b.alive}
    longer = ((b, alive.get(b.root) if b.root and b.alive else None) for b in living)
    return [replace(b, alive=b.alive.joined(more)) if more and b.alive else b for b, more in longer]


def _beside(scale: LocalBuffer, operand: int | None) -> LocalBuffer:
    """Scales at the place that the address of their operand gives them."""
    if operand is None or scale.fixed is not None:
        return scale
    return replace(scale, fixed=operand >> SCALE_SHIFT)


def _pack(
    here: Sequence[LocalBuffer],
    taken: Sequence[Placed],
    space: Space,
    profile: Profile,
    low: bool,
) -> tuple[list[int], BufferUse]:
    """A start for each buffer of one space, and the memory use."""
    align, capacity = alignment(space, profile), profile.buffers[space.value]
    items = [(_item(b), b) for b in here if b.alive is not None]
    fixed = [item for item, b in items if b.fixed is not None]
    fixed += [_item(p.buffer) for p in taken]
    free = [item for item, b in items if b.fixed is None]
    packing = None if low else spread(free, fixed, align, everywhere(space, profile))
    packing = packing or pack(free, fixed, align, capacity)
    planned = iter(packing.starts)
    starts = [
        b.fixed if b.fixed is not None else 0 if b.alive is None else next(planned) for b in here
    ]
    high = max([packing.high, *(i.end for i in fixed)])
    position, alive = fullest(free, fixed, align)
    unused = max((b.nbytes for b in here if b.alive is None), default=0)
    return starts, BufferUse(space, max(high, unused), alive, position, capacity)


def _item(buffer: LocalBuffer) -> Item:
    alive = buffer.alive or Lifetime(0, 0)
    start = -1 if buffer.fixed is None else buffer.fixed
    return Item(alive.first, alive.last, buffer.nbytes, start)


# ---- calls


def _taken(called: Sequence[tuple[Operation, FunctionPlan]], times: Timeline) -> Iterator[Placed]:
    """Buffers of called functions: live during the call, and while a returned tile is in use."""
    at = {op: n for n, op in enumerate(times.order)} if called else {}
    for op, plan in called:
        now = Lifetime(at[op], at[op])
        for space, start, end in _ranges([*plan.placed, *plan.taken]):
            name, size = f"@{plan.name}", end - start
            yield Placed(LocalBuffer(op, name, "call", space, size, None, start, now), start)
        for value in op.results:
            alive = times.of(value)
            if alive is None:
                continue
            for p in plan.returned:
                held_buffer = replace(
                    p.buffer, op=op, name=f"%{value.name}", type="call", root=value
                )
                yield Placed(replace(held_buffer, fixed=p.start, alive=now.joined(alive)), p.start)


def _ranges(placed: Sequence[Placed]) -> Iterator[tuple[Space, int, int]]:
    """The bytes of buffers as ranges, with touching ones merged."""
    by_space: dict[Space, list[tuple[int, int]]] = {}
    for p in placed:
        if p.buffer.alive is not None and p.buffer.nbytes:
            by_space.setdefault(p.buffer.space, []).append((p.start, p.end))
    for space, ranges in by_space.items():
        yield from ((space, start, end) for start, end in merged([np.array(ranges)]).tolist())


def _returned(
    function: Operation,
    placed: Sequence[Placed],
    called: Sequence[tuple[Operation, FunctionPlan]],
) -> Iterator[Placed]:
    """Buffers of a function, or of its callees, that it returns."""
    values = handed_on(function.regions[0])
    if not values:
        return
    sources = [(p.buffer.root, [p]) for p in placed if p.buffer.root is not None]
    sources += [(v, list(plan.returned)) for op, plan in called for v in op.results]
    names = aliases(function, [root for root, _ in sources])
    for n in sorted({n for v in values for n in names.get(v, ())}):
        yield from sources[n][1]
