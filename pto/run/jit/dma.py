"""Bursts between memories in compiled code: everything checked first, then rows of bytes copied.

What is unusual (padding of odd widths, bursts that write over each other, combined writes, what is
wrong) is the reference's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from pto.core.constants import BLOCK_BYTE_SIZE
from pto.core.dtypes import U8, DType
from pto.core.memory import Space
from pto.isa.meaning import burst, dma, registers
from pto.run.jit import boxes, context, copies, planes, tile_moves
from pto.run.jit.boxes import Field
from pto.run.jit.emit import Emit, Spot, emits
from pto.run.jit.places import number
from pto.run.jit.state import register_offset
from pto.run.jit.text import NotNative
from pto.run.jit.tile_moves import Arguments, Side
from pto.run.jit.values import Native, Place, Word

_SMALL = 1 << 30  # products of two such numbers, and a few of those added, fit 64 bits


@dataclass(frozen=True, slots=True)
class Loop:
    """`burst.Loop` with names for numbers."""

    count: str
    source: str
    destination: str


def _words(s: Spot, *names: str) -> list[str]:
    return [number(s.need(Word, name)) for name in names]


def _loops(s: Spot) -> list[Loop]:
    """nburst and the loops around it, from inner to outer."""
    first = _words(s, "n_burst", "nburst_src_stride", "nburst_dst_stride")
    groups = [[number(v) for v in s.operands(f"loop_{n}")] for n in _GROUPS]
    return [Loop(*first), *map(Loop, *groups)]


_GROUPS = ("counts", "src_strides", "dst_strides")


# ---- what must hold


def _in_range(s: Spot, width: str, loops: Sequence[Loop]) -> str:
    """`burst.sides`: no number is negative, something moves, and not too much."""
    x, fine = s.x, "true"
    for each in (width, *(n for p in loops for n in (p.count, p.source, p.destination))):
        fine = x.both(fine, x.compare("ult", each, str(_SMALL)))
    total = width
    for each in ("1", *(p.count for p in loops)):
        total = x.mul(total, each)
        fine = x.both(fine, x.compare("ule", total, str(burst.MOST_BYTES)))
    return x.both(fine, x.compare("ne", total, "0"))


def _reach(s: Spot, width: str, counts: Sequence[str], strides: Sequence[str]) -> str:
    """Bytes from the first to the end of the last burst."""
    x, found = s.x, width
    for count, stride in zip(counts, strides, strict=True):
        found = x.add(found, x.mul(x.sub(count, "1"), stride))
    return found


def _distinct(s: Spot, width: str, counts: Sequence[str], strides: Sequence[str]) -> str:
    """Each loop steps over what the loops inside it write."""
    x, fine, extent = s.x, "true", width
    for count, stride in zip(counts, strides, strict=True):
        over = x.compare("uge", stride, extent)
        fine = x.both(fine, x.either(x.compare("eq", count, "1"), over))
        extent = x.add(extent, x.mul(x.sub(count, "1"), stride))
    return fine


def _aligned(s: Spot, address: str, step: int, loops: Sequence[tuple[str, str]] = ()) -> str:
    """`burst.aligned`: (count, stride) of each loop in the local buffer."""
    x, fine = s.x, _multiple(s, address, step)
    for count, stride in loops:
        single = x.compare("sle", count, "1")
        fine = x.both(fine, x.either(single, _multiple(s, stride, step)))
    return fine


def _multiple(s: Spot, value: str, step: int) -> str:
    if step == 1:
        return "true"
    if value.isdigit():
        return "true" if int(value) % step == 0 else "false"
    return s.x.compare("eq", s.x.new(f"urem i64 {value}, {step}"), "0")


def _plain_writes(s: Spot) -> str:
    """CTRL selects no type that writes are combined in."""
    x = s.x
    ctrl = x.load("i64", x.at(s.e.word(context.REGISTERS), register_offset(registers.CTRL)), 8)
    kind = x.new(f"and i64 {ctrl}, {7 << registers.ATOMIC_TYPE}")
    return x.compare("eq", kind, "0")


# ---- moves


@dataclass(frozen=True, slots=True)
class Transfer:
    """Bursts from one place to another; those written are `wider` bytes longer."""

    source: Place
    target: Place
    width: str
    loops: Sequence[Loop]
    wider: str = "0"

    @property
    def counts(self) -> list[str]:
        return [p.count for p in self.loops]

    @property
    def steps(self) -> tuple[list[str], list[str]]:
        return [p.source for p in self.loops], [p.destination for p in self.loops]


def _move(s: Spot, move: Transfer, fine: str, *, pads: Callable[..., None] | None = None) -> None:
    """Where everything holds, rows of bytes; else the reference step."""
    x, (reads, writes) = s.x, move.steps
    long = x.add(move.width, move.wider)
    fine = x.both(fine, _in_range(s, long, move.loops))
    ends = []
    for place, width, steps in ((move.source, move.width, reads), (move.target, long, writes)):
        reach = _reach(s, width, move.counts, steps)
        fine = x.both(fine, s.e.inside(place.memory, place.address, reach))
        ends.append(reach)
    fine = x.both(fine, _distinct(s, long, move.counts, writes))
    fine = x.both(fine, _apart(s, move.source, move.target, *ends))

    def run() -> None:
        pointers = [
            _noted(s, move.source, move.width, move.counts, reads, ends[0], writes=False),
            _noted(s, move.target, long, move.counts, writes, ends[1], writes=True),
        ]
        _around(s, move.loops, pointers, partial(_rows, s, move, pads))

    planes.either_way(s, fine, run)


def _apart(s: Spot, a: Place, b: Place, a_reach: str, b_reach: str) -> str:
    x = s.x
    if a.memory != b.memory and a.memory.isdigit() and b.memory.isdigit():
        return "true"
    elsewhere = x.compare("ne", a.memory, b.memory)
    before = x.compare("sle", x.add(a.address, a_reach), b.address)
    after = x.compare("sle", x.add(b.address, b_reach), a.address)
    return x.either(elsewhere, x.either(before, after))


def _noted(
    s: Spot,
    place: Place,
    width: str,
    counts: Sequence[str],
    steps: Sequence[str],
    reach: str,
    *,
    writes: bool,
) -> str:
    """The machine address of the first burst; uses of global memory are written down."""
    single = all(count == "1" for count in counts[1:])
    rows, nbytes, pitch = (counts[0], width, steps[0]) if single else ("1", reach, "0")
    s.e.touched(place.memory, place.address, rows, nbytes, pitch, writes=writes)
    return s.pointer(place.memory, place.address, noted=True)


def _around(
    s: Spot, loops: Sequence[Loop], pointers: Sequence[str], body: Callable[[str, str], None]
) -> None:
    """The outer loops, then the body with the addresses of each round."""
    x, (source, target) = s.x, pointers
    if len(loops) == 1:
        body(source, target)
        return
    outer = loops[-1]
    if outer.count == "1":
        _around(s, loops[:-1], pointers, body)
        return

    def turn(i: str) -> None:
        moved = [
            x.at(source, x.mul(i, outer.source)),
            x.at(target, x.mul(i, outer.destination)),
        ]
        _around(s, loops[:-1], moved, body)

    planes.loop(x, outer.count, "1", turn)


def _rows(
    s: Spot, move: Transfer, pads: Callable[..., None] | None, source: str, target: str
) -> None:
    """The innermost bursts."""
    inner, given = move.loops[0], Arguments()
    to_step, from_step = given.name(inner.destination), given.name(inner.source)
    names = tuple(given.names)
    dst = Side(Field(U8, boxes.line(to_step), boxes.line(1)), target)
    src = Side(Field(U8, boxes.line(from_step), boxes.line(1)), source, names)
    if pads is None:
        tile_moves.transfer(s, inner.count, move.width, dst, src)
    else:
        pads(dst, src, inner)


# ---- global memory and UB


def _step(s: Spot) -> int:
    return s.case.profile.alignment.dma


@emits(dma.MTE_GM_UB)
def _mte_gm_ub(s: Spot) -> Sequence[Native]:
    source, target = s.need(Place, "source"), s.need(Place, "destination")
    loops, (width,) = _loops(s), _words(s, "len_burst")
    fine = _aligned(s, target.address, _step(s), [(p.count, p.destination) for p in loops])
    if s.op.operand("pad_value") is None:
        _move(s, Transfer(source, target, width, loops), fine)
    else:
        _padded(s, Transfer(source, target, width, loops), fine)
    return []


def _padded(s: Spot, move: Transfer, fine: str) -> None:
    """Rows of pad elements, payload, pad elements, and pad to the next block."""
    value, kind, x = s.need(Word, "pad_value"), dma.element(s.case, "destination"), s.x
    if value.type.dtype is None or value.type.dtype.itemsize != kind.itemsize:
        raise NotNative("a pad of another width")
    size = kind.itemsize
    left, right = (
        "0" if s.op.operand(name) is None else _words(s, name)[0]
        for name in ("left_padding_count", "right_padding_count")
    )
    for each in (left, right):
        fine = x.both(fine, x.compare("ult", each, str(_SMALL)))
    fine = x.both(fine, _multiple(s, move.width, size))
    before = x.mul(left, str(size))
    used = x.add(x.add(before, move.width), x.mul(right, str(size)))
    row = x.add(used, str(BLOCK_BYTE_SIZE - 1))
    row = (
        str(int(row) // BLOCK_BYTE_SIZE * BLOCK_BYTE_SIZE)
        if row.isdigit()
        else x.new(f"and i64 {row}, {-BLOCK_BYTE_SIZE}")
    )
    item = _item(s, value, kind)

    def pads(dst: Side, src: Side, inner: Loop) -> None:
        first, last, end = (
            left,
            _elements(s, x.add(before, move.width), size),
            _elements(s, row, size),
        )
        given = Arguments(6)
        step = given.name(_elements(s, inner.destination, size))
        field = Field(kind, boxes.line(step), boxes.line(1))
        side = Side(field, dst.pointer, tuple(given.names))
        if first != "0":
            tile_moves.fill(s, side, item, ("0", inner.count), ("0", first))
        tile_moves.fill(s, side, item, ("0", inner.count), (last, end))
        payload = Side(dst.field, x.at(dst.pointer, before))
        tile_moves.transfer(s, inner.count, move.width, payload, src)

    _move(
        s,
        Transfer(move.source, move.target, move.width, move.loops, x.sub(row, move.width)),
        fine,
        pads=pads,
    )


def _elements(s: Spot, nbytes: str, size: int) -> str:
    """Bytes as elements; the rest, if there is one, does not matter."""
    if nbytes.isdigit():
        return str(int(nbytes) // size)
    return nbytes if size == 1 else s.x.new(f"udiv i64 {nbytes}, {size}")


def _item(s: Spot, value: Word, kind: DType) -> str:
    """The bits of a scalar as an element of a type as wide."""
    want, have = copies.element(kind), value.types[0]
    if want == have:
        return value.name
    return s.x.new(f"bitcast {have} {value.name} to {want}")


@emits(dma.MTE_UB_GM)
def _mte_ub_gm(s: Spot) -> Sequence[Native]:
    source, target = s.need(Place, "source"), s.need(Place, "destination")
    loops, (width,) = _loops(s), _words(s, "len_burst")
    fine = _aligned(s, source.address, _step(s), [(p.count, p.source) for p in loops])
    _move(s, Transfer(source, target, width, loops), s.x.both(fine, _plain_writes(s)))
    return []


def _register_loops(s: Spot, way: str) -> list[Loop]:
    """`dma.register_loops`."""
    x, base = s.x, s.e.word(context.REGISTERS)

    def pair(name: str) -> tuple[str, str]:
        at = register_offset(f"{name} {way}")
        return x.load("i64", x.at(base, at), 8), x.load("i64", x.at(base, at + 8), 8)

    inner, outer = pair(registers.LOOP_SIZE)
    return [Loop(inner, *pair(registers.LOOP1_STRIDE)), Loop(outer, *pair(registers.LOOP2_STRIDE))]


@emits(dma.COPY_GM_TO_UBUF)
def _copy_gm_to_ubuf(s: Spot) -> Sequence[Native]:
    x, select = s.x, s.need(Word, "data_select_bit")
    source, target = s.need(Place, "source"), s.need(Place, "destination")
    names = ("n_burst", "len_burst", "left_padding_count", "right_padding_count")
    count, width, left, right = _words(s, *names)
    loops = [Loop(count, *_words(s, "gm_stride", "ub_stride")), *_register_loops(s, "outtoub")]
    fine = _aligned(s, target.address, _step(s), [(p.count, p.destination) for p in loops])
    plain = {"true": "false", "false": "true"}.get(select.name) or x.new(f"xor i1 {select.name}, 1")
    for each in (left, right):
        plain = x.both(plain, x.compare("eq", each, "0"))
    _move(s, Transfer(source, target, width, loops), x.both(fine, plain))
    return []


@emits(dma.COPY_UBUF_TO_GM)
def _copy_ubuf_to_gm(s: Spot) -> Sequence[Native]:
    source, target = s.need(Place, "source"), s.need(Place, "destination")
    count, width = _words(s, "n_burst", "len_burst")
    strides = _words(s, "burst_src_stride", "burst_dst_stride")
    loops = [Loop(count, *strides), *_register_loops(s, "ubtoout")]
    fine = _aligned(s, source.address, _step(s), [(p.count, p.source) for p in loops])
    _move(s, Transfer(source, target, width, loops), s.x.both(fine, _plain_writes(s)))
    return []


# ---- between local buffers


def _is_own(s: Spot, name: str) -> bool:
    """`burst.owned`: this agent has the buffer that an operand names."""
    value = s.op.operand(name)
    space = getattr(value.type if value else None, "space", None)
    side = s.e.compiler.side
    return (space, side) not in ((Space.UB, "cube"), (Space.L1, "vector"))


def _local(s: Spot, gaps: Sequence[str], loops: Sequence[Loop] = ()) -> None:
    """Blocks of 32 bytes; `gaps` are the count, the length and the two gaps."""
    if not _is_own(s, "source") or not _is_own(s, "destination"):
        raise NotNative("a buffer of another agent")
    x = s.x
    source, target = s.need(Place, "source"), s.need(Place, "destination")
    fine = x.both(*(_aligned(s, p.address, _step(s)) for p in (source, target)))
    for each in gaps:
        fine = x.both(fine, x.compare("ult", each, str(_SMALL >> 6)))
    count, length, *between = gaps
    width = x.mul(length, str(BLOCK_BYTE_SIZE))
    strides = [x.mul(x.add(length, gap), str(BLOCK_BYTE_SIZE)) for gap in between]
    _move(s, Transfer(source, target, width, [Loop(count, *strides), *loops]), fine)


@emits(dma.MTE_LOCAL)
def _mte_local(s: Spot) -> Sequence[Native]:
    _local(s, _words(s, "n_burst", "len_burst", "src_stride", "dst_stride"))
    return []


@emits(dma.COPY_LOCAL)
def _copy_local(s: Spot) -> Sequence[Native]:
    (sub,) = _words(s, "sid")
    if s.e.compiler.side == "both" and sub != "0":
        raise NotNative("a buffer of another agent")
    return _mte_local(s)


@emits(dma.MTE_L1_UB)
def _mte_l1_ub(s: Spot) -> Sequence[Native]:
    first, *loops = _loops(s)
    (length,) = _words(s, "len_burst")
    _local(s, (first.count, length, first.source, first.destination), loops)
    return []


# ---- registers


def _pair(name: str, *, turned: bool) -> Emit:
    def emit(s: Spot) -> Sequence[Native]:
        first, second = _words(s, "first", "second")
        words = (second, first) if turned else (first, second)
        for n, word in enumerate(words):
            place = s.x.at(s.e.word(context.REGISTERS), register_offset(name) + 8 * n)
            s.x.store("i64", word, place, 8)
        return []

    return emit


for _way in ("outtoub", "ubtoout"):
    emits(dma.CONFIG[f"set_loop_size_{_way}"])(_pair(f"{registers.LOOP_SIZE} {_way}", turned=True))
    for _loop, _name in (("loop1", registers.LOOP1_STRIDE), ("loop2", registers.LOOP2_STRIDE)):
        emits(dma.CONFIG[f"set_{_loop}_stride_{_way}"])(_pair(f"{_name} {_way}", turned=False))
