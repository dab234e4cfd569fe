"""Converts the records of a build's agents to operands and feeds them to the simulator."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from typing import TYPE_CHECKING, Any

from pto.core.dtypes import DType, dtype
from pto.core.errors import Diagnostic, PtoError, fail
from pto.core.memory import Memory, Space
from pto.core.pointer import Pointer
from pto.core.tile import Tile, TileType
from pto.cxx import binding as b
from pto.cxx import native as n
from pto.cxx import operands as o
from pto.cxx import records as r
from pto.cxx import vector_calls as v
from pto.cxx.counted import code
from pto.cxx.forms import by_name
from pto.cxx.memory import ProgramMemory
from pto.cxx.program_calls import called
from pto.ir.builder import INDEX, scalar_type
from pto.isa.meaning.kinds import Do
from pto.isa.meaning.memory import registers
from pto.isa.order.queue_setup import GLOBAL_QUEUE, LOCAL_QUEUE
from pto.isa.row.attributes import Bool, Int
from pto.isa.row.types import PipeHandle, Ptr, TileBuf
from pto.isa.tile.debug import GET_ELEMENT
from pto.isa.tile.img2col import CONVOLUTION_STATE
from pto.run import sites as s
from pto.run.machine.core import Core
from pto.run.machine.device import Device
from pto.run.reference.code import located
from pto.target.facts import Profile

if TYPE_CHECKING:
    from pto.run.watch.events import Hook

_NAME = 1 << 40  # tile.hpp: tiles without an address have negative names from this
_SIMULATED = (
    "PTO-X001",
    "PTO-X002",
    "PTO-X003",
    "PTO-S040",
    "PTO-S063",  # scales beyond those of a product
    "PTO-S065",  # several rows times a matrix
    "PTO-T050",  # indices wider than values
)  # not in the table of cpu, but in the C++ simulator library
# Layouts and scratch that PTOAS rejects; the C++ library has its own asserts.
_ASSERTED = ("PTO-L022", "PTO-S040")
_KEPT = 1 << 15  # cached records of an agent


# Of a call site: indices of the values that its plans depend on, and what makes a plan.
_Decoded = tuple[tuple[int, ...], Callable[[Sequence[int], "AgentState"], o.Plan]]


@cache
def _reads_geometry(name: str) -> bool:
    """True for calls that load registers with the geometry of a tile and touch no byte of it."""
    found = by_name().get(name, ())
    return bool(found) and all(form.row.family is CONVOLUTION_STATE for form in found)


class BuildSide:
    """One build: decodes the records of its agents and feeds them to the simulator."""

    def __init__(self, build: n.NativeBuild, name: str, profile: Profile) -> None:
        self.build = build
        self.name = name
        self.profile = profile
        self._tiles: dict[tuple[int, ...], tuple[bool, list[tuple[TileType, int]]]] = {}
        self.observed = self.polls = False
        self._prepare(None)

    def _prepare(self, tap: Hook | None) -> None:
        self._is_watched = tap is not None
        tolerated = _SIMULATED if self.profile.name == "cpu" else _ASSERTED
        self.sites = s.CallSites(self.profile, self.name, tap, tolerated)
        self._calls: dict[tuple[int, ...], _Decoded] = {}
        self._plans: dict[tuple[int, ...], o.Plan] = {}
        self._elements: dict[tuple[TileBuf, int], s.Site] = {}

    def begin(self, device: Device, observed: bool = True) -> None:
        """Prepare a launch. Prepared instructions are kept unless this or the last launch has an
        observer, because an instruction is prepared for one observer or for none.

        `observed`: with an observer, reads of elements are instructions too.
        """
        self.polls = False  # until an agent reads memory as others see it (ld_dev)
        self.observed = observed and device.tap is not None
        if device.tap is not None or self._is_watched:
            self._prepare(device.tap)

    @property
    def warnings(self) -> list[Diagnostic]:
        """Warnings of the rules, each location once."""
        return list(self.sites.findings.values())

    def feed(
        self, agent: n.NativeAgent, core: Core, memory: ProgramMemory
    ) -> Iterator[s.Fed | s.Looks]:
        """The instructions of an agent, in order."""
        state = AgentState(self, core, memory)
        while True:
            status = agent.resume()
            words = agent.words()
            yield from state.records(words, status != n.DONE, agent.amounts())
            if status == n.DONE:
                agent.end()
                return
            if status == n.FAILED:
                message = agent.error()
                agent.end()
                raise fail("PTO-U244", f"the kernel threw: {message}")
            if status == n.LOOK:
                yield from state.answer(agent)
            elif not words or status in (n.FLUSH, n.LOADS):  # others may write what it reads
                self.polls |= status == n.LOADS
                yield s.Looks()

    def tiles(self, key: tuple[int, ...]) -> tuple[bool, list[tuple[TileType, int]]]:
        """True if a site pops its tiles; its tiles, each with the index of its address."""
        entry = self._tiles.get(key)
        if entry is None:
            try:
                call = r.read(key, self.build)
            except PtoError:  # reported when the record is executed
                return False, []
            placed = () if _reads_geometry(call.name) else call.operands
            tiles = [(o.type.tile, o.at) for o in placed if isinstance(o.type, TileBuf)]
            entry = self._tiles[key] = (call.name == "TPOP", tiles)
        return entry

    def element(self, tile: TileBuf, path: int, offset: int) -> s.Site:
        """The site that reads an element of a tile."""
        element_site = self._elements.get((tile, path))
        if element_site is None:
            operands = {"src": s.Given(tile), "offset": s.Given(INDEX, offset)}
            kind, where = scalar_type(tile.tile.dtype), self.build.where(path)
            attrs = {s.ANSWERED: Bool(True)}
            element_site = self.sites.make(GET_ELEMENT, operands, attrs, where, [kind])
            self._elements[tile, path] = element_site
        return element_site

    def plan(self, key: tuple[int, ...], values: Sequence[int], state: AgentState) -> o.Plan:
        """The plan of a record's call site, created on first use."""
        try:
            decoded = self._calls.get(key)
            if decoded is None:
                decoded = self._calls[key] = self._decoded(key)
            late, make = decoded
            plan_key = (*key, *(values[n] for n in late)) if late else key
            plan = self._plans.get(plan_key)
            if plan is None:
                plan = self._plans[plan_key] = make(values, state)
            return plan
        except PtoError as error:
            where = self.build.where(key[1])
            raise PtoError(*(d.at(where.loc) for d in error.diagnostics)) from None

    def _decoded(self, key: tuple[int, ...]) -> _Decoded:
        call = r.read(key, self.build)
        if call.name == r.PROGRAM:
            return (0,), lambda values, _: self._program(call, values)
        if v.is_vector(call.name):
            return (), v.decoded(self.sites, self.build.where(call.path), call)
        if call.name == "TPIPE":
            return (0,), lambda values, _: _queue(self, call, values)
        bound = b.bind(call, self.profile.name)
        return bound.late, partial(self._instruction, bound, call.path)

    def _program(self, call: r.RecordedCall, values: Sequence[int]) -> o.Plan:
        site = called(self.sites, self.build, call, values)
        pairs = zip(site.parameters, call.operands[3:], strict=True)
        return o.Plan(site, [o.argument(site, *pair) for pair in pairs])

    def _instruction(
        self, bound: b.BoundCall, path: int, values: Sequence[int], state: AgentState
    ) -> o.Plan:
        attrs = b.settled(bound.attrs, values)
        operands: dict[str, s.Given | list[s.Given]] = {}
        makers: list[o.Maker] = []
        variadic = {o.name for o in bound.row.operands if o.variadic}
        for name, passed_group in bound.operands.items():
            operand_plans = [
                o.operand(bound, name, passed, values, state) for passed in passed_group
            ]
            makers += [m for _, m in operand_plans]
            types = [g for g, _ in operand_plans]
            operands[name] = types if name in variadic else types[0]
        site = self.sites.make(bound.row, operands, attrs, self.build.where(path))
        body = bound.row.body
        popped = bound.passed(body.defines if isinstance(body, Do) else "")
        binds = None if popped is None else popped.at
        moves = any(
            passed.tag in o.MOVING
            for passed_group in bound.operands.values()
            for passed in passed_group
        )
        return o.Plan(site, makers, binds, moves=moves)


def _queue(side: BuildSide, call: r.RecordedCall, values: Sequence[int]) -> o.Plan:
    """A TPipe: one end of a queue, its slots in global memory where the target keeps them there."""
    pipe, gm, to_vector, to_cube = call.operands
    facts = pipe.facts
    i32, i8 = scalar_type(dtype("i32")), scalar_type(dtype("i8"))
    mask = facts.loc & 3 or 2  # 4 is the way of control words, to the cube
    attrs = {
        "dir_mask": Int(mask, i8),
        "slot_size": Int(facts.rows, i32),
        "slot_num": Int(facts.cols, i32),
        "flag_base": Int(facts.slayout, i32),
        "nosplit": Bool(bool(facts.fractal)),
    }
    i64 = scalar_type(dtype("i64"))
    buffers = {1: [to_vector], 2: [to_cube], 3: [to_vector, to_cube]}[mask]
    names = ("local_addr", "peer_local_addr")
    operands: dict[str, s.Given | list[s.Given]] = {}
    makers: list[o.Maker] = []
    through_global = side.profile.sync.queue_slots == "gm" or facts.loc > 4
    if through_global and values[gm.at]:
        attrs["local_slot_num"] = Int(facts.blayout, i32)
        operands["gm_addr"] = s.Given(Ptr(i8))
        makers.append(o.pointer(gm, Space.GM, o.BYTE))
    for name, operand in zip(names, buffers, strict=False):
        operands[name] = s.Given(i64, values[operand.at])
        makers.append(o.number(operand, i64))
    row = GLOBAL_QUEUE if "gm_addr" in operands else LOCAL_QUEUE
    where = side.build.where(call.path)
    site = side.sites.make(row, operands, attrs, where, [PipeHandle()])
    return o.Plan(site, makers, makes=pipe.at)


class AgentState:
    """The state of one agent: tiles, views, queues, and addresses of named tiles."""

    def __init__(self, side: BuildSide, core: Core, memory: ProgramMemory) -> None:
        self.side = side
        self.core = core
        self.memory = memory
        self.places = s.TileSlots(core)
        self.queues: dict[int, tuple[Any, Any]] = {}
        self.made: dict[Any, Any] = {}  # tiles and tensors
        self.registers = v.RegisterFile(side.sites.tap is not None)
        self._scopes = v.VectorScopes(side.sites)
        self._ready: dict[tuple[int, ...], Any] = {}  # cached records

    def records(
        self, words: list[int], pauses: bool, amounts: Sequence[int] = ()
    ) -> Iterator[s.Fed]:
        """The instructions of a sequence of words, each created after the previous one is done.

        `pauses`: the agent only pauses and may use all its tiles again. `amounts`: C++ operations
        before each instruction.
        """
        left, scopes = iter(amounts), self._scopes
        at, named = 0, self._named(words) if words and min(words) < 0 else None
        if named:
            self.places.plan(named, pauses)
        while at < len(words):
            end = at + words[at]
            record = tuple(words[at:end])
            fed = self._ready.get(record)
            amount = next(left, 0)
            if amount:
                self.core.code = code(amount, self.core.code)
            if fed is None:
                fed = self._fed(record)
            if scopes.is_open or isinstance(fed[0], v.VectorPart):
                yield from scopes.take(fed)
            else:
                yield fed
            at = end
        yield from scopes.flush()

    def _fed(self, record: tuple[int, ...]) -> Any:
        """One record as an instruction; cached unless an address in it may change."""
        middle = 2 + record[1]
        key, values = record[2:middle], record[middle:]
        plan = self.side.plan(key, values, self)
        if isinstance(plan.site, v.VectorSite):
            fed = plan.site.call(values, self.registers, self.pointer), (), None
        else:
            fed = plan.site, self._values(plan, values), self._then(plan, values)
        if fed[2] is None and not plan.moves:
            if len(self._ready) >= _KEPT:
                self._ready.clear()
            self._ready[record] = fed
        return fed

    def _values(self, plan: o.Plan, values: Sequence[int]) -> list[Any]:
        try:
            return [maker(self, values) for maker in plan.makers]
        except PtoError as error:
            raise located(error, plan.site.op) from None

    def _then(self, plan: o.Plan, values: Sequence[int]) -> Any:
        """A callback for the result of an instruction: a new queue or the address of a popped
        tile."""
        if plan.makes is not None:
            name = values[plan.makes]
            return lambda found: self.queues.update({name: (found, plan.site.made)})
        if plan.binds is not None:
            slot = values[plan.binds]
            return lambda found: self._bind(slot, found)
        return None

    def _bind(self, slot: int, value: Any) -> None:
        if isinstance(value, Tile):
            self.places.starts[slot // _NAME] = value.address
            self.forget("tile")

    def forget(self, kind: str = "") -> None:
        """Discard tiles that a queue has moved, or all cached values if memory has changed."""
        self.made = {k: v for k, v in self.made.items() if kind and k[0] != kind}
        self._ready.clear()

    def pointer(self, space: Space, kind: DType, slot: int) -> Pointer:
        location = self.memory.find(slot) if space is Space.GM else self._place(space, slot)
        return Pointer(*location, kind)

    def tile(self, type: TileType, slot: int) -> Tile:
        key = ("tile", type, slot)
        cached = self.made.get(key)
        if cached is None:
            cached = self.made[key] = Tile(type, *self._place(type.space, slot))
        return cached

    def _place(self, space: Space, slot: int) -> tuple[Memory, int]:
        """The memory and address of a buffer address, a tile name with an offset, or a pointer."""
        memory = self.core.memory(space)
        if slot < 0:
            name, offset = divmod(slot, _NAME)
            return memory, self.places.starts.get(name, 0) + offset
        if not n.is_pointer(slot):
            return memory, slot
        offset = slot - memory.data.ctypes.data
        if 0 <= offset < memory.size:
            return memory, offset
        return n.host_memory(slot, space), 0  # host bytes as a tile

    def _named(self, words: list[int]) -> dict[int, tuple[Space, int, int, int]]:
        """Tiles without an address in a sequence of records: their buffer, size and lifetime."""
        spans: dict[int, tuple[Space, int, int, int]] = {}
        at = 0
        number = 0
        bound = set[int]()
        placed = set[Space]()
        users: dict[int, tuple[int, ...]] = {}  # name -> the first record that uses it
        while at < len(words):
            length, middle = words[at], at + 2 + words[at + 1]
            pops, tiles = self.side.tiles(tuple(words[at + 2 : middle]))
            for type, offset in tiles:
                name, inside = divmod(words[middle + offset], _NAME)
                if name >= 0:
                    placed.add(type.space)
                    continue
                if pops:
                    bound.add(name)
                users.setdefault(name, tuple(words[at : at + length]))
                space, size, first, _ = spans.get(name, (type.space, 0, number, 0))
                spans[name] = (space, max(size, inside + type.nbytes), first, number)
            at, number = at + length, number + 1
        left = {k: v for k, v in spans.items() if k not in bound}
        for name, (space, nbytes, _, _) in left.items():
            if space in placed and name not in self.places.starts:
                raise self._unplaced(users[name], space, nbytes)
        return left

    def _unplaced(self, record: tuple[int, ...], space: Space, nbytes: int) -> PtoError:
        """The finding about a tile without an address beside tiles that have one."""
        middle = 2 + record[1]
        error = fail(
            "PTO-U253",
            f"a tile of {nbytes:,} bytes has no address, and other tiles in {space.value} have one:"
            " on the chip it lies anywhere",
            help="give it an address: TASSIGN(t, 0x...)",
        )
        return located(error, self.side.plan(record[2:middle], record[middle:], self).site.op)

    def answer(self, agent: n.NativeAgent) -> Iterator[s.Fed]:
        """Answer the request of an agent for an element of a tile, an address or a register.

        An observer sees the element read by an instruction of the scalar unit.
        """
        type, slot, offset, pointer, path = agent.state.question
        if type == n.CONTROL:
            core: Any = self.core
            agent.state.answer = registers.get(core, registers.CTRL)
            return
        facts = self.side.build.facts(type)
        looked_tile = r.looked_at(facts, self.side.build.string(facts.element))
        tile, space = looked_tile.tile, looked_tile.tile.space
        name = slot // _NAME
        if name < 0:  # it may be read before it is written
            self.places.plan({name: (space, tile.nbytes, 0, 0)})
        memory, address = self._place(space, slot)
        if pointer:
            agent.state.answer = memory.data.ctypes.data + address
            return
        first, size = address + offset * tile.itemsize, tile.itemsize
        if path >= 0 and self.side.observed and 0 <= offset < tile.rows * tile.cols:
            where = self.side.element(looked_tile, path, offset)
            yield where, (Tile(tile, memory, address), offset), None
            raw = n.bytes_at(memory.data.ctypes.data + first, size)
        else:
            raw = memory.read(first, size)
        agent.state.answer = int.from_bytes(raw.tobytes(), "little")
