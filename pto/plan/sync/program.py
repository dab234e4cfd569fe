"""Inserts synchronisation into a program that has none: `insert` returns a new program."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet

from pto.core.errors import fail
from pto.ir.copied import copied
from pto.ir.graph import Module, Operation
from pto.isa.row.flag import Flag
from pto.plan.buffers import FunctionPlan, Placement
from pto.plan.calls import FunctionNames, callees_first
from pto.plan.memory import plan_memory
from pto.plan.mode import may_lack_order
from pto.plan.sync.effects import NUMBER, PIPES, Effects, Phase
from pto.plan.sync.footprint import Footprints
from pto.plan.sync.ids import TextSpans, allocate, join_two
from pto.plan.sync.outside import GlobalViews
from pto.plan.sync.place import Placer
from pto.plan.sync.queues import known_order
from pto.plan.sync.storage import Storage
from pto.plan.sync.tree import Node, TreeReader, WorkNode, walk
from pto.plan.sync.walk import ALL, FenceSet, PlacedFence
from pto.target.facts import Profile
from pto.transform.addresses import write_addresses
from pto.transform.cores import state_core
from pto.transform.fences import Insertions, barrier, flag
from pto.verify.functions import first_flag

_ROUNDS = 8  # plans that new operations may change before an error
Starts = tuple[tuple[int, ...], ...]  # of every buffer of every function


def insert(module: Module, profile: Profile) -> Module:
    """The same program with every dependence between its pipes ordered; `module` is unchanged.

    Its tiles get the addresses for which the flags were placed. Existing barriers count, and stay.

    Some buffers cannot have an address in the text, and a plan of the result may move them. Then
    all addresses that such a buffer had are considered, until the plan of the result is known.
    """
    flag = first_flag([module.op])
    if flag is not None:
        message = f"the program orders its pipes itself: it has '{flag.name}' already"
        raise fail("PTO-U250", message, loc=flag.loc, help=_JUDGE)
    all_starts: list[Starts] = []
    for _ in range(_ROUNDS):
        result = copied(module)
        placement = plan_memory(result, profile)
        all_starts = all_starts or [_starts(placement)]
        _write(placement, all_starts)
        write_addresses(result, placement.addresses)
        starts = _starts(plan_memory(result, profile))
        if starts in all_starts:
            return result
        all_starts.append(starts)
    message = "the tiles find no place that holds once flags stand between their uses"
    raise fail("PTO-U251", message, help="give every tile an address: alloc_tile addr = ...")


def _write(placement: Placement, all_starts: Sequence[Starts]) -> None:
    """Write called functions first: their flags are in use during the calls."""
    plans = {plan.function: n for n, plan in enumerate(placement.functions)}
    used: dict[Operation, set[Flag]] = {}
    for function, calls in callees_first(
        [p.function for p in placement.functions], FunctionNames()
    ):
        n = plans[function]
        inner = set[Flag]().union(*(used[callee] for _, callee in calls))
        starts = [starts_seen[n] for starts_seen in all_starts]
        writer = _Function(placement.functions[n], starts, placement.profile, used)
        used[function] = inner | writer.write()


def ordered(module: Module, profile: Profile) -> Module:
    """The program with synchronisation inserted if a compiler is to do it; else unchanged."""
    functions = [f for f in module.functions() if f.has_body]
    needs = bool(functions) and may_lack_order(functions)
    return insert(module, profile) if needs else module


_JUDGE = "`pto sync` is for programs without any flag; `pto check --deep` judges those that have"


def _starts(placement: Placement) -> Starts:
    return tuple(tuple(p.start for p in plan.placed) for plan in placement.functions)


def _phases(items: list[Node]) -> Iterator[Phase]:
    return (p for item in walk(items) if isinstance(item, WorkNode) for p in item.work.phases)


class _Function:
    """One function: its fences by side, and their ids."""

    def __init__(
        self,
        plan: FunctionPlan,
        starts: Sequence[Sequence[int]],
        profile: Profile,
        used: Mapping[Operation, AbstractSet[Flag]],
    ) -> None:
        self.used = used
        self.function = plan.function
        self.profile = profile
        self.ordered = frozenset(NUMBER[pipe] for pipe in profile.sync.memory_ordered)
        self.outside = GlobalViews(plan.function)
        storage = Storage(plan, starts, profile)
        self.effects = Effects(plan.function, storage, profile, self.outside)
        self.names = FunctionNames()

    def write(self) -> set[Flag]:
        """Insert the fences; returns the flags they use."""
        writer, taken = Insertions(), set[Flag]()
        sides = self._sides()
        for side in sides:
            reader = TreeReader(self.effects, self.names, side)
            items = reader.block(self.function.regions[0].block)
            taken |= self._order(items, writer, side)
        writer.finish()
        if sides == [None]:
            state_core(self.function)
        return taken

    def _sides(self) -> Sequence[str | None]:
        """The sides of a core that run parts of this function; None: one agent runs all of it."""
        if self.function.side() is not None:
            return [None]
        sides = {side for op in self.function.walk() if (side := op.own_side())}
        for op in self.function.walk():
            callee = self.names.find(op.attrs.get("callee"), self.function)
            kind = None if callee is None else callee.side()
            if kind is not None:
                sides.add(kind)
        return sorted(sides) or [None]

    def _order(self, items: list[Node], writer: Insertions, side: str | None) -> set[Flag]:
        """Assign ids. If ids run out, flags are merged, or a barrier replaces them."""
        phases = list(_phases(items))
        places, stops = TextSpans(items, self.profile.sync, self.used), list[Node]()
        existing = list(known_order(self.function, items, self.names))
        while True:
            footprint = Footprints(phases, self.outside, self.profile.sync)
            placer = Placer(footprint, self.ordered, stops, existing)
            placer.place(items)
            count, fences = self.profile.sync.event_ids, placer.fences
            ids, without = allocate(fences.flags, places, count)
            while without and join_two(fences, without[0], places):
                ids, without = allocate(fences.flags, places, count)
            if not without:
                _insert(writer, placer.fences, ids, side)
                return {places.flag(fence, n) for fence, n in ids.items()}
            stops.append(without[0].before)


def _insert(
    writer: Insertions, fences: FenceSet, ids: Mapping[PlacedFence, int], side: str | None
) -> None:
    """Add operations in the order in which the fences were assumed: see `Walk.step`."""
    writer.side = side

    def made(name: str, fence: PlacedFence) -> Operation:
        return flag(name, PIPES[fence.source], PIPES[fence.target], ids[fence])

    for item, pipes in fences.barriers.items():
        for pipe in pipes:
            writer.before(item.op, barrier("ALL" if pipe == ALL else PIPES[pipe]))
    for fence in fences.flags:
        writer.before(fence.before.op, made("wait_flag", fence))
    for fence in fences.flags:
        writer.after(fence.after.op, made("set_flag", fence))
    for loop, flags in fences.around.items():
        for fence in flags:
            if fence.primed:
                writer.before(loop.op, made("set_flag", fence))
            if fence.drained:
                writer.after(loop.op, made("wait_flag", fence))
