"""Splits a function that uses the cube and the vector core into one function for each core.

Chips run the two cores apart, so a move between them becomes a push and a pop of a queue. Both
functions keep the control flow, and each has the instructions of its core. Where a popped tile can
stand for the tile that it was moved to, nothing copies it. Arrays that both cores use are ordered
by the queue too: before it uses one, the cube core pops a tile of zeros.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Unpack

from pto.core.dtypes import F16, F32, I8, I32, I64
from pto.core.errors import PtoError, fail
from pto.core.layout import ND, NZ
from pto.core.memory import Role
from pto.core.tile import TileType
from pto.ir.builder import INDEX, Builder, Operands, Parts, scalar_type
from pto.ir.copied import copied, copied_operation
from pto.ir.graph import Module, Operation, Value
from pto.isa.handle.tile import ALLOC_TILE, GET_VALIDSHAPE, SET_VALIDSHAPE
from pto.isa.handle.view import ADDPTR
from pto.isa.order.fence import FULL_FENCE
from pto.isa.order.flags import PIPE_BARRIER
from pto.isa.order.queue import FREE_AT, POP_AT, PUSH_FROM
from pto.isa.order.queue_setup import IMPORT_BUFFER, OPEN_AT, RESERVE_BUFFER
from pto.isa.row.attributes import Attribute, Bool, Enum, Int, OfType, Str, Symbol
from pto.isa.row.instr import Instr
from pto.isa.row.order import Order
from pto.isa.row.traits import Control
from pto.isa.row.types import Function, Ptr, TileBuf, Type
from pto.isa.scalar.arith import INDEX_CAST, MULI
from pto.isa.scalar.unit import GET_BLOCK_IDX
from pto.isa.tile.elementwise_scalar import TEXPANDS
from pto.isa.tile.move import TMOV
from pto.target.facts import Profile
from pto.transform.cores import CUBE, OTHER, VECTOR, is_work, on_first_sub_block, sides_of
from pto.transform.fences import barrier
from pto.transform.flat import flat
from pto.transform.halves import WholeTiles, halve, halved_tiles, pass_halves
from pto.transform.pass_result import PassResult
from pto.transform.popped import SLOTS, Popped, free_order, queue_of, slots_needed
from pto.transform.stages import is_marked, run_stages

SLOTS_ARGUMENT = "queue_slots"  # the argument with the slots of queues that lie in global memory
_ENDS = (  # side, its bit in dir_mask, its buffer, the operand that names it
    (VECTOR, 1, "vec", "c2v_consumer_buf"),
    (CUBE, 2, "mat", "v2c_consumer_buf"),
)
_QUEUES = 7  # one way each, two of the 16 flags between the cores a queue
_TOKEN = (32, 16)  # a tile of zeros; its halves are tiles of boxes
_WHOLE = {"split": Int(0, scalar_type(I8))}
_INT = scalar_type(I32)
_LONG = scalar_type(I64)
_HALF = scalar_type(F16)


@dataclass(frozen=True, slots=True)
class SplitProgram:
    """A program with two functions in place of one for both cores.

    They have the argument `SLOTS_ARGUMENT` if queues lie in global memory.
    """

    module: Module
    slots_nbytes: int  # of the queues of a block, in that argument
    whole: str | None  # the reason why one vector sub-block has to have all rows
    stages: tuple[PassResult, ...] = ()  # of the loops that are marked to run in stages


def split(module: Module, entry: str, profile: Profile) -> SplitProgram:
    """The program with two functions for `entry`."""
    module = copied(module)
    function = next(f for f in module.functions() if f.has_body and f.symbol == entry)
    joined = _Joined(function, profile)
    joined.join()
    stages = joined.run_stages()
    home, parts = function.home, {side: joined.part(side) for side in (CUBE, VECTOR)}
    why = joined.share_rows(parts)
    flat(parts[VECTOR])
    for side, part in parts.items():
        joined.open(part, side)
    home.set_ops([*(op for op in home.ops if op is not function), *parts.values()])
    return SplitProgram(module, joined.slots_nbytes, why, stages)


def half_name(symbol: str, side: str) -> str:
    """The name of the function of one core."""
    return f"{symbol}_{side}"


# ---- what an instruction uses


def _arrays(op: Operation) -> dict[Value, bool]:
    """The arrays of the launch that an instruction uses; True if it writes one."""
    arrays: dict[Value, bool] = {}
    for operand in op.row.operands if is_work(op) else ():
        for value in op.group(operand.name):
            root = value.origin(lambda op: op.traits.names_only)
            if isinstance(root.type, Ptr):
                arrays[root] = arrays.get(root, False) or operand.role in ("out", "inout")
    return arrays


def _acts(op: Operation) -> bool:
    """True if it has an effect outside its core: it writes global memory, prints or stops."""
    if not is_work(op) or op.results or op.row.scope in OTHER:
        return False
    return any(_arrays(op).values()) or not sides_of(op)


def _belongs(op: Operation, side: str) -> bool:
    if op.row in (FULL_FENCE, PIPE_BARRIER):
        return side == CUBE
    return side in (sides_of(op) or ({VECTOR} if _acts(op) else OTHER))


# ---- the queues


@dataclass(slots=True)
class _Queue:
    """A queue of the function, one way or both ways."""

    number: int
    ways: int = 0  # dir_mask
    slot: int = 0  # bytes of the largest tile
    slots: int = 0  # of each way
    local_slots: int = 0  # in the buffer of its consumer

    @property
    def nbytes(self) -> int:
        """The bytes of all slots."""
        return self.ways.bit_count() * self.slots * self.slot

    @property
    def attrs(self) -> dict[str, Attribute]:
        """The attributes by which an instruction names it."""
        return {"id": Int(self.number, _INT)} if self.number else {}

    def add_slots(self, count: int, *, in_memory: bool) -> None:
        """Let it have as many slots at least; a copy out of global memory frees its slot."""
        self.slots = max(self.slots, count)
        self.local_slots = self.local_slots if in_memory else self.slots


class _Joined:
    """One function with pushes and pops for the moves between cores; its halves are the program."""

    def __init__(self, function: Operation, profile: Profile) -> None:
        self.function = function
        self.profile = profile.name
        self.in_memory = profile.sync.queue_slots == "gm"  # the slots; both sub-blocks read them
        self.builder = Builder(function)
        self.queues: list[_Queue] = []
        self.is_apart = False  # each transfer has its own queue, so that they need no common order
        self.token: Value | None = None
        self.popped: list[Popped] = []  # in program order
        self.halved: dict[
            Value, int
        ] = {}  # tiles of the vector core that each sub-block has half of

    @property
    def slots_nbytes(self) -> int:
        """The bytes of queue slots in global memory that a block needs."""
        return sum(queue.nbytes for queue in self.queues) if self.in_memory else 0

    def join(self) -> None:
        ops = list(self.function.walk())[1:]
        shared = _shared(ops)
        transfers = sum(len(sides_of(op)) == len(OTHER) for op in ops)
        self.is_apart = is_marked(self.function) and transfers <= _QUEUES and not shared
        for op in ops:
            sides, used = sides_of(op), shared & _arrays(op).keys()
            if op.control is Control.CALL or isinstance(op.order, Order):
                raise _refused(op, "calls or orders in a function that uses both cores")
            if len(sides) == 2:
                self._transfer(op, fenced=bool(shared))
            elif used and CUBE in sides:
                self._wait_for_vector(op)
            elif used:
                self._check_ordered(op, used)
        for to in OTHER:
            for queue in self.queues:
                mine = [p for p in self.popped if p.to == to and queue_of(p.pop) == queue.number]
                self._bind(queue, mine)

    def _put(
        self, before: Operation, row: Instr, operands: Operands = None, **parts: Unpack[Parts]
    ) -> Operation:
        created = self.builder.make(row, operands, **parts)
        created.where = before.where
        before.home.insert(before.home.ops.index(before), created)
        return created

    def _pass(
        self, before: Operation, to: str, tile: Value, popped: Type, sizes: Operands = None
    ) -> Popped:
        """Push a tile and pop it at the other core."""
        assert isinstance(tile.type, TileBuf)
        if self.is_apart or not self.queues:
            self.queues.append(_Queue(len(self.queues)))
        queue = self.queues[-1]
        queue.ways |= next(bit for side, bit, *_ in _ENDS if side == to)
        queue.slot = max(queue.slot, tile.type.tile.nbytes)
        named = {**_WHOLE, **queue.attrs}
        self._put(before, PUSH_FROM[OTHER[to]], {"tile": tile}, attrs=named)
        pop = self._put(before, POP_AT[to], sizes, attrs=named, results=[popped])
        self.popped.append(Popped(to, pop))
        return self.popped[-1]

    def _transfer(self, op: Operation, *, fenced: bool) -> None:
        """Move a tile to the other core through the queue."""
        src, dst = op.operand("src"), op.operand("dst")
        if op.row is not TMOV or len(op.operands) != 2 or op.attrs or src is None or dst is None:
            raise _refused(op, "uses tiles of both cores, and is no plain move")
        assert isinstance(src.type, TileBuf)
        assert isinstance(dst.type, TileBuf)
        source_tile, wanted = src.type.tile, dst.type.tile
        to = self._receiver(source_tile, wanted)
        if to is None:
            raise _refused(op, f"moves {source_tile} to {wanted}, which a queue does not convert")
        if fenced and to == VECTOR:  # the cube has read what the vector core may write again
            self._put(op, FULL_FENCE, attrs={"scope": Enum("fence_scope", "gm")})
        kind: TileBuf = dst.type
        sizes: dict[str, Value] = {}
        if None in wanted.valid:
            region = self._put(op, GET_VALIDSHAPE, {"source": dst}, results=[INDEX, INDEX])
            sizes["valid_row"], sizes["valid_col"] = region.results
            kind = TileBuf(dst.type.elem, replace(wanted, valid=(None, None)))
        popped = self._pass(op, to, src, kind, sizes)
        popped.move = popped.end = self._put(op, TMOV, {"src": popped.tile, "dst": dst})
        op.erase()

    def _receiver(self, source_tile: TileType, wanted: TileType) -> str | None:
        """The core that pops a tile of one type as another; None if no queue passes it so."""
        if source_tile.dtype is not wanted.dtype:
            return None
        if source_tile.role is Role.ACC:
            return VECTOR if wanted.layout == ND else None
        pushed = ND if self.in_memory else NZ  # rows in global memory, which a load makes boxes of
        return CUBE if (source_tile.layout, wanted.layout) == (pushed, NZ) else None

    def _bind(self, queue: _Queue, popped: list[Popped]) -> None:
        """Let the popped tiles of one core stand for those they are moved to, and free slots."""
        for pop in popped:
            if not pop.bind() and pop.to == CUBE:
                assert pop.move is not None
                raise _refused(pop.move, "passes a tile that L1 keeps while others follow")
        order = free_order(popped)
        slots = slots_needed(order)
        if slots is None:
            raise _refused(popped[0].pop, "is one of more tiles than a queue holds at a time")
        slots = 1 if self.is_apart and slots == SLOTS[0] else slots
        queue.slots = max(queue.slots, slots)
        # A pop out of global memory copies: one tile at a time needs one slot in the own buffer.
        local = 1 if self.in_memory and slots == SLOTS[0] else slots
        queue.local_slots = max(queue.local_slots, local)
        for pop, end in reversed(order):
            free = self.builder.make(FREE_AT[pop.to], attrs={**_WHOLE, **queue.attrs})
            free.where = pop.pop.where
            end.home.insert(end.home.ops.index(end) + 1, free)

    def run_stages(self) -> tuple[PassResult, ...]:
        """Run the loops in stages that are marked so."""
        results: list[PassResult] = []
        for done, slots in run_stages(self.function, self.builder):
            results.append(done)
            for number, count in slots.items():
                queue = self.queues[number]
                queue.add_slots(count, in_memory=self.in_memory)
        return tuple(results)

    def _wait_for_vector(self, op: Operation) -> None:
        """Let the cube core wait until the stores of the vector core are in memory."""
        if self.token is None:
            layout = ND if self.in_memory else NZ
            type = TileBuf(_HALF, TileType.of(Role.VEC, F16, *_TOKEN, layout))
            first = self.function.regions[0].block.ops[0]
            self.token = self._put(first, ALLOC_TILE, results=[type], names=["token"]).results[0]
            zero = self.builder.constant(0.0, _HALF)
            self._put(first, TEXPANDS, {"scalar": zero, "dst": self.token})
        popped = TileBuf(_HALF, TileType.of(Role.MAT, F16, *_TOKEN, NZ))
        self._pass(op, CUBE, self.token, popped)
        if not self.in_memory:  # a pop out of L1 holds MTE1, and the load is of MTE2
            all_pipes = barrier("ALL")
            all_pipes.where = op.where
            op.home.insert(op.home.ops.index(op), all_pipes)

    def _check_ordered(self, op: Operation, used: set[Value]) -> None:
        """Refuse an access that no tile of the cube core comes before, since it used the array."""

        def uses(inside: Operation) -> bool:
            return any(CUBE in sides_of(o) and used & _arrays(o).keys() for o in inside.walk())

        at = op
        while at is not self.function and at.parent_op is not None:
            for other in reversed(at.home.ops[: at.home.ops.index(at)]):
                if other.row is PUSH_FROM[CUBE]:
                    return
                if uses(other):
                    raise _refused(op, "uses an array after the cube core, which passes no tile")
            at = at.parent_op
            if at.is_loop and uses(at):
                raise _refused(op, "uses an array that the cube core uses in the iteration before")

    # ---- one side

    def part(self, side: str) -> Operation:
        """The function of one core."""
        twin = copied_operation(self.function, {})
        twin.attrs.pop("pto.entry", None)
        twin.attrs["sym_name"] = Str(half_name(self.function.symbol, side))
        twin.attrs["pto.kernel_kind"] = Enum("kernel_kind", side)
        for op in reversed(list(twin.walk())[1:]):
            if op.parent is not None and not _belongs(op, side) and not _erased(op):
                raise _refused(op, f"gives the {side} core a number of the other one")
        _drop_idle(twin)
        return twin

    def share_rows(self, parts: Mapping[str, Operation]) -> str | None:
        """Give each vector sub-block half of the rows; else the reason why one has them all."""
        vector = parts[VECTOR]
        try:
            halved = halved_tiles(vector, self.profile)
            _require_own_arrays(vector)
        except WholeTiles as reason:
            return str(reason)
        halve(vector, halved)
        for part in parts.values():
            pass_halves(part)
        self.halved = halved
        return None

    def open(self, part: Operation, side: str) -> None:
        """Open the end of the queue of a core, and guard what one vector sub-block does alone."""
        builder, body = Builder(part), part.regions[0].block
        acting = [
            op for op in part.walk() if _acts(op) and self.halved.keys().isdisjoint(op.operands)
        ]
        opened = self._opened(part, builder, side)
        head = [op for op in body.ops if op.traits.constant]
        rest = [*opened, *(op for op in body.ops if not op.traits.constant)]
        body.set_ops([*head, *rest])
        if side == VECTOR and (self.in_memory or self.halved):
            for op in acting:
                on_first_sub_block([op], builder)

    def _opened(self, twin: Operation, builder: Builder, side: str) -> list[Operation]:
        """The operations that open an end of the queue: its buffers, its slots, and itself."""
        created: list[Operation] = []

        def put(row: Instr, operands: Operands = None, **parts: Unpack[Parts]) -> Value:
            created.append(builder.make(row, operands, **parts))
            return created[-1].results[0]

        slots: Value | None = None
        if self.in_memory:
            block, type = twin.regions[0].block, Ptr(scalar_type(F32))
            block.args.append(Value(type, SLOTS_ARGUMENT, block))
            signature = twin.signature
            twin.attrs["function_type"] = OfType(
                Function((*signature.inputs, type), signature.results)
            )
            number = put(INDEX_CAST, {"in": put(GET_BLOCK_IDX, results=[_LONG])}, results=[INDEX])
            words = builder.constant(self.slots_nbytes // 4, INDEX)
            offset = put(MULI, {"lhs": number, "rhs": words}, results=[INDEX])
            start = {"ptr": block.args[-1], "offset": offset}
            slots = put(ADDPTR, start, results=[type])
        for queue in self.queues:
            named = f"{queue.number}" if self.is_apart else ""
            buffers = self._buffers(queue, side, named, put)
            if slots is not None:
                before = sum(each.nbytes for each in self.queues[: queue.number]) // 4
                start = {"ptr": slots, "offset": builder.constant(before, INDEX)}
                own_slots = put(ADDPTR, start, results=[slots.type]) if before else slots
                buffers["gm_slot_buffer"] = own_slots
            numbers = {"dir_mask": (queue.ways, I8), "slot_size": (queue.slot, I32)}
            numbers["slot_num"] = (queue.slots, I32)
            if queue.local_slots != queue.slots:
                numbers["local_slot_num"] = (queue.local_slots, I32)
            attrs: dict[str, Attribute] = {
                name: Int(n, scalar_type(kind)) for name, (n, kind) in numbers.items()
            }
            if not self.in_memory and not self.halved:
                attrs["nosplit"] = Bool(True)
            created.append(builder.make(OPEN_AT[side], buffers, attrs={**queue.attrs, **attrs}))
        return created

    def _buffers(
        self, queue: _Queue, side: str, named: str, put: Callable[..., Value]
    ) -> dict[str, Value]:
        """The buffers of a queue, by the operands of its end that name them."""
        buffers: dict[str, Value] = {}
        for end, bit, space, operand in _ENDS:
            attrs: dict[str, Attribute] = {"name": Str(f"to_{end}{named}")}
            if end == side:
                unused = queue.slot // 2 if end == VECTOR and self.halved else 0  # of the last slot
                attrs["size"] = Int(queue.local_slots * queue.slot - unused, _INT)
                attrs["autoAlloc"] = Bool(True)
                attrs["location"] = Enum("address_space", space)
            else:
                attrs["peer_func"] = Symbol(half_name(self.function.symbol, end))
            row = RESERVE_BUFFER if end == side else IMPORT_BUFFER
            if queue.ways & bit:
                buffers[operand] = put(row, attrs=attrs, results=[_INT])
        return buffers


def _require_own_arrays(vector: Operation) -> None:
    """Raise if a vector sub-block reads an array that the other one may write."""
    read, written = set[Value](), dict[Value, Operation]()
    for op in vector.walk():
        for array, writes in _arrays(op).items():
            read |= set() if writes else {array}
            written |= {array: op} if writes else {}
    for array, op in written.items():
        if array in read:
            raise WholeTiles(op, "writes an array that the vector core also reads")


def _shared(ops: Iterable[Operation]) -> set[Value]:
    """Arrays that both cores use and one of them writes."""
    users: dict[Value, set[str]] = {}
    written: set[Value] = set()
    for op in ops:
        for array, writes in _arrays(op).items():
            users.setdefault(array, set()).update(sides_of(op) or OTHER)
            written |= {array} if writes else set()
    return {array for array, sides in users.items() if len(sides) == 2} & written


def _drop_idle(function: Operation) -> None:
    """Erase names and numbers that nothing uses, and control without work."""
    for op in reversed(list(function.walk())[1:]):
        if op.parent is None:
            continue
        branches = op.control in (Control.IF, Control.FOR) and not op.results
        if op.results and not is_work(op) and op.control is None:
            _erased(op)
        elif branches and all(len(block.ops) == 1 for block in op.blocks()):
            op.erase()


def _erased(op: Operation) -> bool:
    """Erase an operation if its results are unused except for settings of their regions."""
    users = dict.fromkeys(user for value in op.results for user in value.uses)
    if any(u.row is not SET_VALIDSHAPE or u.operands[0] not in op.results for u in users):
        return False
    for user in users:
        user.erase()
    op.erase()
    return True


def _refused(op: Operation, why: str) -> PtoError:
    help = "give each side a function, with a queue: pto.pair"
    return fail("PTO-U249", f"'{op.name}' {why}", loc=op.loc, help=help)
