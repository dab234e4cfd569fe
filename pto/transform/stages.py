"""Stages across cores: the cube computes iteration i + 1 while the vector core computes i.

An iteration in which the cube waits for a tile of the vector core has two stages: what comes before
that tile, and what needs it. The loop runs the first stage some iterations ahead, so that both
cores have work while a tile is on its way. The trip count may be known only when the program runs,
and may be zero. The pass works on the function of both cores, when moves between them have become
pushes and pops, so that both cores run the same order.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field

from pto.core.dtypes import I1
from pto.core.memory import Role
from pto.core.tile import TileType
from pto.ir.builder import INDEX, Builder, Operands, new_block, scalar_type
from pto.ir.copied import copied_operation
from pto.ir.graph import Block, Operation, Value
from pto.isa.handle.tile import GET_VALIDSHAPE, SET_VALIDSHAPE
from pto.isa.meaning.order.ring import period_of
from pto.isa.meaning.tile.rearrange import RESHAPE
from pto.isa.order.queue import FREE_AT, POP_AT, PUSH_FROM
from pto.isa.row.attributes import Enum, Int, integer
from pto.isa.row.instr import Instr
from pto.isa.row.types import Ptr, TileBuf
from pto.isa.scalar.arith import CMPI
from pto.isa.scalar.structure import FOR, IF, YIELD
from pto.isa.tile.move import TMOV
from pto.isa.tile.rearrange import TRESHAPE
from pto.transform.cores import CUBE, OTHER, sides_of
from pto.transform.index_math import IndexMath, Number, known
from pto.transform.pass_result import PassResult
from pto.transform.popped import SLOTS, queue_of
from pto.transform.strides import counted_loops, innermost, is_countable, is_inside

STAGES = "pto.stages"  # the attribute of a loop that the split runs in stages; how many
_ROUNDS = 4  # iterations of both stages in which a queue shows how it fills
_ENDS = {side: (PUSH_FROM[side], POP_AT[side], FREE_AT[side]) for side in OTHER}
_QUEUE = {*PUSH_FROM.values(), *POP_AT.values(), *FREE_AT.values()}

Slots = dict[int, int]  # of queues, by number
Queue = tuple[str, int]  # the core that pushes tiles, and the number
Touched = dict[Hashable, bool]  # tiles, arrays and tiles in queues; True where one is written


class _OneStage(Exception):
    """The reason why a loop has one stage."""


def mark(function: Operation, stages: int) -> list[Operation]:
    """Let the split run every innermost loop that uses both cores in stages: these loops."""
    loops = [
        loop
        for loop in innermost(counted_loops(function))
        if {side for op in loop.walk() for side in sides_of(op)} == {*OTHER}
    ]
    for loop in loops:
        loop.attrs[STAGES] = Int(stages, INDEX)
    return loops


def unmark(loop: Operation) -> None:
    """Let a loop run as it is written."""
    loop.attrs.pop(STAGES, None)


def is_marked(function: Operation) -> bool:
    """True if a loop of the function is to run in stages."""
    return any(STAGES in loop.attrs for loop in counted_loops(function))


def run_stages(function: Operation, builder: Builder) -> list[tuple[PassResult, Slots]]:
    """Run the loops in stages that are marked so; the slots that queues need then, by number."""
    results: list[tuple[PassResult, Slots]] = []
    for loop in counted_loops(function):
        stages = integer(loop.attrs, STAGES)
        if stages is not None:
            del loop.attrs[STAGES]
            results.append(_staged(loop, stages - 1, builder))
    return results


def _staged(loop: Operation, ahead: int, builder: Builder) -> tuple[PassResult, Slots]:
    """Let the first stage of a loop run some iterations ahead of the second."""
    try:
        if not is_countable(loop) or loop.results:
            raise _OneStage("the loop carries values")
        body = _Body(loop)
        body.divide()
        ahead = min(ahead, _turns(loop) or ahead)
        slots = _queue_slots(body, ahead)
    except _OneStage as reason:
        return PassResult(f"one stage: {reason}", loop.loc, is_done=False), {}
    _rewrite(loop, body, ahead, builder)
    times = "1 iteration" if ahead == 1 else f"{ahead} iterations"
    words = f"what comes before the tiles of the vector core runs {times} ahead on both cores"
    return PassResult(words, loop.loc), slots


def _turns(loop: Operation) -> int | None:
    """The number of iterations, if it is known."""
    low, high, step = (value.number for value in loop.operands[:3])
    return None if low is None or high is None or not step else max(0, -((low - high) // step))


# ---- which stage


@dataclass(slots=True)
class _Body:
    """The instructions of a loop by stage; `late` ones of the first stage follow the second."""

    loop: Operation
    work: list[Operation] = field(init=False)  # in program order
    touched: dict[Operation, Touched] = field(init=False)
    second: set[Operation] = field(default_factory=set[Operation])
    late: set[Operation] = field(default_factory=set[Operation])

    def __post_init__(self) -> None:
        ops = self.loop.regions[0].block.ops[:-1]
        self.work = [op for op in ops if not _describes(op)]
        numbers = _numbered(self.work)
        self.touched = {op: self._touched(op, numbers) for op in self.work}

    @property
    def first(self) -> list[Operation]:
        return [op for op in self.work if op not in self.second]

    @property
    def early(self) -> list[Operation]:
        return [op for op in self.first if op not in self.late]

    @property
    def delayed(self) -> list[Operation]:
        return [op for op in self.first if op in self.late]

    @property
    def behind(self) -> list[Operation]:
        return [op for op in self.work if op in self.second]

    def divide(self) -> None:
        """Find the stage of each instruction; raise the reason why there is one stage."""
        self.second = {op for op in self.work if op.row is POP_AT[CUBE]}
        if not self.second:
            raise _OneStage("the cube waits for no tile of the vector core")
        self._close()
        if not any(op.row is PUSH_FROM[CUBE] for op in self.first):
            raise _OneStage("the cube has no work before the tile that it waits for")
        self._sink()
        self._require_queues()
        crossing = self.crossing()
        for value in crossing:
            maker, type = value.maker, value.type
            if maker is None or not maker.traits.allocates:
                raise _OneStage("a number passes from one stage to the next")
            if not isinstance(type, TileBuf) or type.tile.role is not Role.VEC:
                raise _OneStage(
                    "a tile of another buffer than UB passes from one stage to the next"
                )
            if any(is_inside(v, self.loop) for v in maker.operands):
                raise _OneStage("a tile that both stages use has another size in each iteration")
        self._delay(crossing)
        if any(op.row in _QUEUE for op in self.late):
            raise _OneStage("the vector core sends what the second stage reads")

    def crossing(self) -> set[Value]:
        """The values that both stages touch, of those which each iteration has for itself."""
        sides = [{r for op in ops for r in self.touched[op]} for ops in (self.first, self.second)]
        shared = sides[0] & sides[1]
        return {r for r in shared if isinstance(r, Value) and self._is_own(r)}

    def _is_own(self, root: Hashable) -> bool:
        return not isinstance(root, Value) or is_inside(root, self.loop)

    def _close(self) -> None:
        """Put into the second stage what comes behind a part of it."""
        size = -1
        while size != len(self.second):
            size = len(self.second)
            for at, op in enumerate(self.work):
                before = {o for o in self.work[:at] if o in self.second}
                if op not in self.second and (
                    any(self._meet(op, o) for o in before)
                    or any(self._meet(op, o, shared=True) for o in self.second)
                ):
                    self.second.add(op)

    def _meet(self, a: Operation, b: Operation, *, shared: bool = False) -> bool:
        """True if the order of two instructions counts; `shared`: in different iterations."""
        one, other = self.touched[a], self.touched[b]
        return any(
            (writes or other[root]) and not (shared and self._is_own(root))
            for root, writes in one.items()
            if root in other
        )

    def _sink(self) -> None:
        """Put instructions into the second stage that serve it alone, and need nothing that the
        first stage makes or changes."""
        serving: set[Operation] = set()
        for op in reversed(self.first):
            makes = {r for r, writes in self.touched[op].items() if writes}
            users = {o for o in self.work if makes & self.touched[o].keys()} - {op}
            own = all(map(self._is_own, makes)) and op.row not in _QUEUE
            if own and users and users <= self.second | serving:
                serving.add(op)
        size = -1
        while size != len(serving):
            size = len(serving)
            rest = [op for op in self.first if op not in serving]
            serving -= {op for op in serving if any(self._needs(op, other) for other in rest)}
        self.second |= serving

    def _needs(self, op: Operation, other: Operation) -> bool:
        """True if two instructions share something of their iteration, or what the other writes."""
        one, two = self.touched[op], self.touched[other]
        return any(self._is_own(root) or two[root] for root in one.keys() & two.keys())

    def _delay(self, crossing: set[Value]) -> None:
        """Let the first stage write what the second one reads of the iteration before when that
        has read it."""
        for at, op in enumerate(self.first):
            before = [o for o in self.first[:at] if o in self.late]
            if crossing & self.touched[op].keys() or any(self._meet(op, o) for o in before):
                self.late.add(op)

    def _require_queues(self) -> None:
        """Raise unless tiles leave each queue in the order in which they enter it."""
        queues: dict[Queue, dict[Instr, list[bool]]] = {}
        for op in self.work:
            if op.row in _QUEUE:
                ends = queues.setdefault(_queue(op), {})
                ends.setdefault(op.row, []).append(op in self.second)
        for (side, _), ends in queues.items():
            pushes, pops, frees = (
                ends.get(row, []) for row in (PUSH_FROM[OTHER[side]], POP_AT[side], FREE_AT[side])
            )
            mixed = any(len(set(end)) > 1 for end in (pushes, pops))
            if pops != frees or (pushes != pops and (mixed or len(pushes) != len(pops))):
                raise _OneStage("tiles of both stages would change places in a queue")

    def _touched(self, op: Operation, numbers: dict[Operation, tuple[Queue, int]]) -> Touched:
        found: Touched = {}
        for each in op.walk():
            if each is not op and each.row in _QUEUE:
                raise _OneStage("a branch or a loop inside passes tiles")
            if each.order is not None and each.row not in _QUEUE:
                raise _OneStage(f"'{each.name}' orders the cores")
            if _describes(each) or each.is_terminator:
                continue
            made = dict.fromkeys(each.results, True)
            outputs = each.operands[: each.row is SET_VALIDSHAPE] or each.given("out", "inout")
            for value in each.operands:
                for root in _roots(value):
                    stored = isinstance(root.type, TileBuf | Ptr)
                    if stored or root.maker is not None:
                        made[root] = made.get(root, False) or (stored and value in outputs)
            for root, writes in made.items():
                found[root] = found.get(root, False) or writes
            if not each.operands and not each.results and each.row not in _QUEUE:
                found["outside"] = True
        if op in numbers:
            found[numbers[op]] = op.row in PUSH_FROM.values()
            if op.row in FREE_AT.values():
                pop = next(o for o, n in numbers.items() if n == numbers[op] and o.results)
                found[pop.results[0]] = True
        return found


def _queue(op: Operation) -> Queue:
    side = next(side for side, rows in _ENDS.items() if op.row in rows)
    return (OTHER[side] if op.row is PUSH_FROM[side] else side), queue_of(op)


def _numbered(work: Iterable[Operation]) -> dict[Operation, tuple[Queue, int]]:
    """Pushes, pops and frees with their queue, and the number of the tile in it."""
    counts: Counter[tuple[Queue, Instr]] = Counter()
    found: dict[Operation, tuple[Queue, int]] = {}
    for op in work:
        if op.row in _QUEUE:
            queue = _queue(op)
            found[op] = queue, counts[queue, op.row]
            counts[queue, op.row] += 1
    return found


def _describes(op: Operation) -> bool:
    named = op.traits.pure or op.traits.names_only or op.traits.allocates or op.body is RESHAPE
    return op.control is None and bool(named) and op.row not in (GET_VALIDSHAPE, SET_VALIDSHAPE)


def _roots(value: Value) -> set[Value]:
    """The tiles, arrays and numbers that a value is derived from."""
    maker = value.maker
    if maker is None or not _describes(maker) or maker.traits.allocates:
        return {value}
    return {root for each in maker.operands for root in _roots(each)}


# ---- the queues


def _queue_slots(body: _Body, ahead: int) -> Slots:
    """The least slots with which no core waits for ever, found by running pushes and pops.

    Where the number of iterations is not known, no core is in another loop than the other one
    either, nor an iteration ahead of it: so the order is proved for any number.
    """
    first, second = ([op for op in ops if op.row in _QUEUE] for ops in (body.first, body.behind))
    parts = [first * ahead, *[[*first, *second]] * _ROUNDS, second * ahead]
    if _turns(body.loop) is not None:
        parts = [[op for part in parts for op in part]]
    for slots in (1, *SLOTS):
        if _ends(parts, slots):
            return dict.fromkeys(map(queue_of, (*first, *second)), slots)
    raise _OneStage("the queues have too few slots")


def _ends(parts: Iterable[Sequence[Operation]], slots: int) -> bool:
    """True if both cores reach the end of each part on queues with this many slots."""
    period = period_of(slots)
    done: Counter[tuple[Queue, Instr]] = Counter()

    def waits(op: Operation, side: str) -> bool:
        queue, number = _queue(op), done[_queue(op), op.row]
        if op.row is POP_AT[side]:
            return done[queue, PUSH_FROM[OTHER[side]]] <= number
        freed = number - number % period - slots + period if number >= slots else 0
        return op.row is PUSH_FROM[side] and done[queue, FREE_AT[OTHER[side]]] < freed

    for part in parts:
        todo = {side: [op for op in part if op.row in rows] for side, rows in _ENDS.items()}
        moved = True
        while moved:
            moved = False
            for side, ops in todo.items():
                while ops and not waits(ops[0], side):
                    op = ops.pop(0)
                    done[_queue(op), op.row] += 1
                    moved = True
        if any(todo.values()):
            return False
    return True


# ---- the loop in stages


def _rewrite(loop: Operation, body: _Body, ahead: int, builder: Builder) -> None:
    """Replace a loop by iterations of the first stage, a loop of both, and iterations of the
    second, where it has enough iterations; else it runs as it is. Tiles that pass from one stage to
    the next have a copy for each iteration between them."""
    numbers = IndexMath(builder, loop)
    low, high, step = (known(v) for v in loop.operands[:3])
    trips = numbers.cdiv(numbers.sub(high, low), step)
    lead = numbers.mul(step, ahead)
    begun, end = numbers.add(low, lead), numbers.add(low, numbers.mul(trips, step))
    behind = numbers.sub(end, lead)
    copies = [_Copies(tile, loop, ahead, builder) for tile in body.crossing()]
    anchor = loop if isinstance(trips, int) else _guarded(loop, trips, ahead, builder)
    old = loop.regions[0].block.args[0]
    for first_index, last_index, early, behind_ops, delayed in (
        (low, begun, body.early, None, body.delayed),
        (low, behind, body.early, body.behind, body.delayed),
        (behind, end, None, body.behind, None),
    ):
        if first_index == last_index:
            continue
        bounds = {
            "lower": numbers.value(first_index),
            "upper": numbers.value(last_index),
            "step": loop.operands[2],
        }
        made = builder.make(FOR, bounds, where=loop.loc)
        new_block(made, [Value(INDEX, old.name)])
        home = made.regions[0].block
        home.append(builder.make(YIELD, {"results": []}))
        anchor.home.insert(anchor.home.ops.index(anchor), made)
        counter: Number = home.args[0]
        if early is not None and behind_ops is not None:
            counter = IndexMath(builder, home.ops[-1]).add(counter, lead)
        assert isinstance(counter, Value)
        first = {old: counter}
        second = {old: home.args[0]} | {c.tile: c.oldest for c in copies}
        _append(early or (), made, first)
        _append(behind_ops or (), made, second)
        for each in copies:
            each.shift(made, builder)
        _append(delayed or (), made, first)
    if anchor is loop:
        loop.erase()


def _guarded(loop: Operation, trips: Value, least: int, builder: Builder) -> Operation:
    """Let a loop run where it has fewer than the least iterations: the end of the other branch.

    A loop of known length for what runs ahead, and no smaller one for the rest, lets the order of
    the queues be proved.
    """
    ends = [builder.make(YIELD, {"results": []}) for _ in range(2)]
    compared: Operands = {"lhs": trips, "rhs": builder.constant(least, INDEX)}
    at_least = {"predicate": Enum("cmpi_predicate", "sge")}
    enough = builder.make(CMPI, compared, attrs=at_least, results=[scalar_type(I1)])
    test = builder.make(IF, {"condition": enough.results[0]}, where=loop.loc)
    loop.home.insert(loop.home.ops.index(loop), enough, test)
    for end in ends:
        new_block(test).append(end)
    loop.move_before(ends[1])
    return ends[0]


class _Copies:
    """A tile that passes from the first stage to the second, and older values of it."""

    def __init__(self, tile: Value, loop: Operation, ahead: int, builder: Builder) -> None:
        self.tile = tile
        self.tiles = [tile]  # newest first
        assert tile.maker is not None
        tile.maker.move_before(loop)
        for _ in range(ahead - 1):
            made = copied_operation(tile.maker, {})
            loop.home.insert(loop.home.ops.index(loop), made)
            self.tiles.append(made.results[0])

    @property
    def oldest(self) -> Value:
        return self.tiles[-1]

    def shift(self, loop: Operation, builder: Builder) -> None:
        """Move every value to the next older tile, at the end of a loop."""
        home = loop.regions[0].block
        for older, newer in zip(self.tiles[:0:-1], self.tiles[-2::-1], strict=True):
            names = [_as_row(tile, home, builder) for tile in (newer, older)]
            move = builder.make(TMOV, {"src": names[0], "dst": names[1]}, where=loop.loc)
            home.insert(len(home.ops) - 1, move)


def _as_row(tile: Value, home: Block, builder: Builder) -> Value:
    """A column of numbers seen as a row, which can be copied; other tiles as they are."""
    assert isinstance(tile.type, TileBuf)
    type = tile.type.tile
    if type.cols != 1:
        return tile
    row = TileBuf(tile.type.elem, TileType.of(Role.VEC, type.dtype, 1, type.rows))
    made = builder.make(TRESHAPE, {"src": tile}, results=[row])
    home.insert(len(home.ops) - 1, made)
    return made.results[0]


def _append(ops: Sequence[Operation], loop: Operation, twins: dict[Value, Value]) -> None:
    """Put copies of instructions at the end of a loop, with copies of what describes them."""
    home = loop.regions[0].block

    def describe(op: Operation) -> None:
        for value in (value for inner in op.walk() for value in inner.operands):
            maker = value.maker
            if maker is None or value in twins or not _describes(maker):
                continue
            if maker.parent is ops[0].parent:
                describe(maker)
                home.insert(len(home.ops) - 1, copied_operation(maker, twins))

    for op in ops:
        describe(op)
        home.insert(len(home.ops) - 1, copied_operation(op, twins))
