"""A memory plan: the address of every buffer, the bytes it needs, and findings about a shortage."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

from pto.core.errors import Diagnostic, Note, fail
from pto.core.memory import Space, space
from pto.ir.graph import Operation, Value
from pto.ir.liveness import Lifetime, Timeline
from pto.isa.meaning.cube.factors import SCALES
from pto.isa.meaning.handle.config import ASSIGN, SCALE_ADDRESS
from pto.isa.meaning.handle.memref import DECLARE
from pto.isa.meaning.handle.view import CAST_POINTER
from pto.isa.meaning.order.queue import POP
from pto.isa.order.queue_setup import RESERVE_BUFFER
from pto.isa.row import types as t
from pto.isa.row.attributes import Bool, integer, word
from pto.target.devices import DeviceSpec
from pto.target.facts import Profile
from pto.target.profile import device, smallest
from pto.verify.functions import first_order


@dataclass(frozen=True, slots=True, eq=False)
class LocalBuffer:
    """Bytes of a local buffer that belong to one operation.

    `root` is the value that refers to them; without one they are reserved for the whole function.
    `alive` is None for a buffer that is never used, which may have any address.
    """

    op: Operation
    name: str
    type: str
    space: Space
    nbytes: int
    root: Value | None = None
    fixed: int | None = None
    alive: Lifetime | None = None

    def living(self, times: Timeline) -> LocalBuffer:
        """The same buffer with its lifetime."""
        return replace(self, alive=times.whole if self.root is None else times.of(self.root))


def buffers(function: Operation) -> Iterator[LocalBuffer]:
    """Every buffer the operations of a function make, in program order."""
    filled = {v for op in function.walk() for v in _filled_by(op)}
    for op in function.walk():
        for buffer in _made(op) if op.results else ():
            is_elsewhere = buffer.root in filled
            yield replace(buffer, nbytes=0, fixed=0) if is_elsewhere else buffer


def scaled(function: Operation) -> dict[Value, Value]:
    """Scales of MX products -> their operands. The matrix unit finds scales by the address of the
    operand (pto-isa TMatmul.hpp: mad_mx takes no other)."""
    scaled_by: dict[Value, Value] = {}
    for op in function.walk():
        tiles = {v.type.tile.space: v for v in op.operands if isinstance(v.type, t.TileBuf)}
        for operand, scale in SCALES.items():
            if operand in tiles and scale in tiles:
                scaled_by[tiles[scale]] = tiles[operand]
    return scaled_by


def unplaced(function: Operation, times: Timeline) -> Iterator[Operation]:
    """Operations that use local memory with an address or size that is no constant."""
    for op in function.walk():
        if any(v.number is None for v in _addresses(op)):
            yield op
        if _is_raw_pointer(op) and op.operands[0] not in times.names:
            yield op


def _is_raw_pointer(op: Operation) -> bool:
    """A local pointer made from a number."""
    if op.body is not CAST_POINTER or not op.operands or not op.results:
        return False
    source, result = op.operands[0].type, op.results[0].type
    return isinstance(source, t.Scalar) and isinstance(result, t.Ptr) and result.space.is_local


def _filled_by(op: Operation) -> list[Value]:
    """Tiles that get their address from this operation: their own declaration reserves nothing."""
    if op.body is SCALE_ADDRESS:
        return op.group("dst")
    values = op.group("tile") if op.body in (POP, ASSIGN) else []
    return [v for v in values if v.maker and v.maker.body is DECLARE]


def _addresses(op: Operation) -> list[Value]:
    return op.group(op.traits.allocates)


def _made(op: Operation) -> Iterator[LocalBuffer]:
    """The buffers of an operation; several for a multiple buffer."""
    if op.row is RESERVE_BUFFER:
        yield _reserved(op)
    elif op.traits.allocates:
        for address in _addresses(op) or (None,):
            yield from _handle(op, address)


def _handle(op: Operation, address: Value | None) -> Iterator[LocalBuffer]:
    value = op.results[0]
    at = None if address is None else address.number
    if address is not None and at is None:
        return
    name, type = f"%{value.name}", value.type
    if isinstance(type, t.TileBuf):
        tile = type.tile
        yield LocalBuffer(op, name, str(tile), tile.space, tile.nbytes, value, at)
    elif isinstance(type, t.MultiTile):
        tile, size = type.slot.tile, type.count * type.slot.tile.nbytes
        yield LocalBuffer(op, name, f"{type.count} of {tile}", tile.space, size, value, at)
    elif isinstance(type, t.MemRef) and type.space.is_local:
        shape = "x".join("?" if n is None else str(n) for n in type.shape)
        words = f"{type.space.value} {shape}x{type.elem.name}"
        yield LocalBuffer(op, name, words, type.space, _memref_bytes(op, type), value, at)


def _memref_bytes(op: Operation, type: t.MemRef) -> int:
    sizes = iter(op.group("sizes"))
    size = 1 if type.elem.dtype is None else type.elem.dtype.itemsize
    for extent in type.shape:
        number = extent
        if number is None:
            value = next(sizes, None)
            number = None if value is None else value.number
        if number is None or number < 0:
            raise fail(
                "PTO-M123",
                f"'{op.name}' op allocates a buffer with a size known only at run time",
                loc=op.loc,
                help="local buffers need constant sizes; narrow the valid region instead",
            )
        size *= number
    return size


def _reserved(op: Operation) -> LocalBuffer:
    name, where = word(op.attrs, "name") or "", word(op.attrs, "location")
    buffer = space(where) if where is not None else Space.UB
    placed = op.attrs.get("autoAlloc") == Bool(False)
    fixed = integer(op.attrs, "base") if placed else None
    return LocalBuffer(op, name, "queue", buffer, integer(op.attrs, "size") or 0, fixed=fixed)


@dataclass(frozen=True, slots=True, eq=False)
class Placed:
    """A buffer and its start."""

    buffer: LocalBuffer
    start: int

    @property
    def end(self) -> int:
        return self.start + self.buffer.nbytes

    @property
    def kind(self) -> str:
        """The origin of the address: the planner, the program, a called function, a later step."""
        if self.buffer.type == "call":
            return "call"
        if self.buffer.fixed is None:
            return "planned"
        return "fixed" if self.buffer.nbytes else "elsewhere"


@dataclass(frozen=True, slots=True)
class BufferUse:
    """The use of one local buffer by a function."""

    space: Space
    high: int  # one past the highest byte
    alive: int  # live bytes at the fullest position
    fullest: int  # that position
    capacity: int


@dataclass(frozen=True, slots=True, eq=False)
class FunctionPlan:
    """The placed buffers of one function in program order, and their memory use."""

    function: Operation
    placed: tuple[Placed, ...]
    taken: tuple[Placed, ...]  # by called functions, during the calls
    returned: tuple[Placed, ...]  # buffers that it returns
    uses: tuple[BufferUse, ...]
    times: Timeline

    @property
    def name(self) -> str:
        return self.function.symbol

    def lines(self, alive: Lifetime | None) -> tuple[int, int] | None:
        """The source lines of a lifetime; None if there are none."""
        if alive is None:
            return None
        inside = range(alive.first, alive.last + 1)
        first, last = self._line(inside), self._line(reversed(inside))
        return None if first is None or last is None else (min(first, last), max(first, last))

    def line(self, position: int) -> int | None:
        """The source line of a position."""
        return self._line((position,))

    def _line(self, positions: Iterable[int]) -> int | None:
        """The line of the first position that has one; implicit terminators have none."""
        locations = (self.times.order[n].loc for n in positions)
        return next((loc.line for loc in locations if loc is not None), None)


@dataclass(frozen=True, slots=True, eq=False)
class Placement:
    """The address of every planned allocation of a program."""

    profile: Profile
    functions: tuple[FunctionPlan, ...]
    warnings: tuple[Diagnostic, ...]
    addresses: Mapping[Operation, int] = field(repr=False)

    @classmethod
    def nothing(cls, profile: Profile) -> Placement:
        """The plan of a program without allocations."""
        return cls(profile, (), (), {})

    def address(self, op: Operation) -> int:
        """The byte address of an allocation in its buffer."""
        address = self.addresses.get(op)
        if address is None:
            raise fail("PTO-M126", f"'{op.name}' op has no planned address", loc=op.loc)
        return address


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


def warnings(
    plan: FunctionPlan, profile: Profile, functions: Sequence[Operation]
) -> Iterator[Diagnostic]:
    """Warnings about the plan of one of the functions; none if it sets all addresses itself."""
    if all(p.buffer.fixed is not None for p in plan.placed):
        return
    for op in unplaced(plan.function, plan.times):
        message = (
            f"'{op.name}' op uses local memory the planner cannot see: it may lie on planned tiles"
        )
        yield Diagnostic("PTO-M124", message, op.loc, "warning", help=_PLACE_ALL)
    for use in plan.uses:
        yield from _narrower(plan, use, profile)
        yield from _shared(plan, use, profile, functions)


def _shared(
    plan: FunctionPlan, use: BufferUse, profile: Profile, functions: Sequence[Operation]
) -> Iterator[Diagnostic]:
    """A warning if tiles have to share bytes although the functions set flags by hand."""
    here = [p for p in plan.placed if p.buffer.space is use.space and p.buffer.alive is not None]
    here.sort(key=lambda p: p.start)
    pairs = [(a, b) for a, b in pairwise(here) if b.start < a.end and None in _fixed(a, b)]
    if not pairs or first_order(functions) is None:
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
    subject = f"@{plan.name} takes {use.high:,} bytes of {use.space.value}"
    chip = _tight(use.space, profile)
    if chip is not None and use.high > chip.buffers[use.space.value]:
        message = (
            f"{subject}: {profile} has them, {chip.name} only {chip.buffers[use.space.value]:,}"
        )
        help = f"`--device {chip.name}` plans for it"
        yield Diagnostic("PTO-M125", message, plan.function.loc, "warning", help=help)
    usable = _usable(use.space, profile)
    if usable < use.high <= use.capacity:
        message = f"{subject}: from byte {usable:,} on, {profile.device} uses them itself"
        yield Diagnostic("PTO-M128", message, plan.function.loc, "warning")
