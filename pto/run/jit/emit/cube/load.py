"""Into L1, L0A and L0B by pointer in compiled code: bursts, and matrices that become fractals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pto.core.constants import (
    BLOCK_BYTE_SIZE,
    C0_SIZE_BYTE,
    CUBE_BLOCK_SIZE,
    FRACTAL_NZ_ROW,
    MX_BLOCK_SIZE,
    MX_COL_LEN,
    MX_ROW_LEN,
)
from pto.core.dtypes import BF16, F16, F32, U32, DType
from pto.core.memory import Space
from pto.isa.meaning import lanes
from pto.isa.meaning.cube import factors as operands
from pto.isa.meaning.cube import load as cube
from pto.isa.meaning.memory import burst, registers
from pto.isa.meaning.memory.dma import element
from pto.run.jit.border import context
from pto.run.jit.border.state import register_offset
from pto.run.jit.border.values import SPACE_NUMBERS, Native, Place, Word
from pto.run.jit.emit.memory.burst import (
    SMALL,
    Loop,
    Transfer,
    aligned,
    alignment,
    distinct,
    is_own,
    loops_of,
    move_bursts,
    multiple,
    noted,
    reach_of,
    register_loops,
    words,
)
from pto.run.jit.emit.table import Spot, emits
from pto.run.jit.emit.tile import boxes, copies, planes
from pto.run.jit.emit.tile import move as tile_moves
from pto.run.jit.emit.tile.boxes import REST, Digit, Field
from pto.run.jit.emit.tile.move import Arguments, Side
from pto.run.jit.llvm import text
from pto.run.jit.llvm.text import NotNative, Val


def _places(s: Spot) -> tuple[Place, Place]:
    if not is_own(s, "source") or not is_own(s, "destination"):
        raise NotNative("a buffer of another agent")
    return s.need(Place, "source"), s.need(Place, "destination")


# ---- bytes as they are


@emits(cube.MTE_GM_L1)
def _mte_gm_l1(s: Spot) -> Sequence[Native]:
    source, target = _places(s)
    (width,) = words(s, "len_burst")
    fine = aligned(s, target.address, alignment(s))
    move_bursts(s, Transfer(source, target, width, loops_of(s)), fine)
    return []


@emits(cube.COPY_GM_TO_CBUF)
def _copy_gm_to_cbuf(s: Spot) -> Sequence[Native]:
    source, target = _places(s)
    count, width, *strides = words(s, "n_burst", "len_burst", "src_stride", "dst_stride")
    loops = [Loop(count, *strides), *register_loops(s, "outtol1")]
    fine = aligned(s, target.address, alignment(s))
    move_bursts(s, Transfer(source, target, width, loops), fine)
    return []


# ---- matrices of global memory become fractals


@emits(cube.MTE_GM_L1_FRAC)
def _mte_gm_l1_frac(s: Spot) -> Sequence[Native]:
    """`cube.to_fractals`: rows of C0 columns, what is missing in the last ones zero."""
    n, d, inner, groups = words(s, "n_value", "d_value", "src_inner_stride", "group_count")
    steps = words(s, *(f"dst_loop{k}_stride" for k in (2, 3, 4)))
    outer: Val = 0
    if s.op.operand("src_outer_stride") is not None:
        (outer,) = words(s, "src_outer_stride")
    return _to_fractals(s, (n, d, groups), (inner, outer), steps, s.case.word("mode") == "dn2nz")


def _multi(s: Spot, *, transposed: bool) -> Sequence[Native]:
    """The same with its destination pattern in a register."""
    x, place = s.x, s.e.word(context.REGISTERS)
    word = x.load("i64", x.at(place, register_offset(registers.NZ_PARA)), 8)
    groups, *steps = (
        x.new(f"and i64 {x.new(f'lshr i64 {word}, {16 * n}')}, 65535") for n in range(4)
    )
    n, d, inner, outer = words(s, *_MULTI)
    return _to_fractals(s, (n, d, groups), (inner, outer), list(steps), transposed)


_MULTI = ("n_value", "d_value", "loop1_src_stride", "loop4_src_stride")
emits(cube.MULTI_ND2NZ)(lambda s: _multi(s, transposed=False))
emits(cube.MULTI_DN2NZ)(lambda s: _multi(s, transposed=True))


def _to_fractals(
    s: Spot,
    sizes: tuple[Val, Val, Val],
    lines_apart: tuple[Val, Val],
    steps: list[Val],
    transposed: bool,
) -> Sequence[Native]:
    x, kind = s.x, element(s.case, "source")
    (n, d, groups), (inner, outer) = sizes, lines_apart
    source, target = _places(s)
    small = s.need(Word, "smallc0_en")
    if kind.is_packed or small.name == "true":
        raise NotNative("packed channels")
    size, wide = kind.itemsize, C0_SIZE_BYTE // kind.itemsize
    fine = aligned(s, target.address, alignment(s))
    if small.name != "false":
        fine = x.both(fine, x.new(f"xor i1 {small.name}, true"))
    for each in (n, d, groups, inner, outer, *steps):
        fine = x.both(fine, x.compare("ult", each, SMALL >> 6))
    for each in (n, d, groups):
        fine = x.both(fine, x.compare("ne", each, 0))
    fine = x.both(fine, multiple(s, inner, size))
    fine = x.both(fine, _not_too_many(s, groups, n, d))
    lines, line = (d, x.mul(n, size)) if transposed else (n, x.mul(d, size))
    strips = s.x.up(d, wide)
    down, across, apart = (x.mul(step, C0_SIZE_BYTE) for step in steps)
    read = reach_of(s, line, (lines, groups), (inner, outer))
    counts, strides = (n, strips, groups), (down, across, apart)
    written = reach_of(s, C0_SIZE_BYTE, counts, strides)
    fine = x.both(fine, distinct(s, C0_SIZE_BYTE, counts, strides))
    fine = x.both(fine, s.e.inside(source.memory, source.address, read))
    fine = x.both(fine, s.e.inside(target.memory, target.address, written))

    def run() -> None:
        given = Arguments()
        pitch = given.name(s.x.over(inner, size))
        rows, cols = boxes.line(pitch), boxes.line(1)
        matrix = Field(kind, cols, rows) if transposed else Field(kind, rows, cols)
        strip = given.name(x.mul(steps[1], wide))
        fractal = Field(
            kind,
            boxes.line(given.name(x.mul(steps[0], wide))),
            (Digit(wide, 1), Digit(REST, strip)),
        )
        names = tuple(given.names)
        whole = x.mul(strips, wide)
        first = noted(s, source, line, (lines, groups), (inner, outer), read, writes=False)
        begin = s.pointer(target.memory, target.address)

        def group(g: Val) -> None:
            to, from_ = x.at(begin, x.mul(g, apart)), x.at(first, x.mul(g, outer))
            tile_moves.transfer(s, n, d, Side(fractal, to), Side(matrix, from_, names))
            _zeros(s, kind, steps, wide, to, n, (d, whole))

        planes.loop(x, groups, 1, group)

    planes.either_way(s, fine, run, "packed channels, overlapping fractals or too many bytes")
    return []


def _not_too_many(s: Spot, groups: Val, n: Val, d: Val) -> str:
    """`cube.Fractals.check`, more strictly."""
    x = s.x
    some = x.mul(groups, n)
    fine = x.compare("ult", some, SMALL)
    moved = x.mul(some, x.add(d, C0_SIZE_BYTE))
    return x.both(fine, x.compare("ule", moved, burst.MOST_BYTES))


def _zeros(
    s: Spot, kind: DType, steps: Sequence[Val], wide: int, to: str, n: Val, cols: tuple[Val, Val]
) -> None:
    """What the last fractals have beside the matrix."""
    x, given = s.x, Arguments(6)
    if isinstance(cols[0], int) and int(cols[0]) % wide == 0:
        return
    strip = given.name(x.mul(steps[1], wide))
    field = Field(
        kind,
        boxes.line(given.name(x.mul(steps[0], wide))),
        (Digit(wide, 1), Digit(REST, strip)),
    )
    zero = tile_moves.bits_item(0, text.element(kind))
    tile_moves.fill(s, Side(field, to, tuple(given.names)), zero, (0, n), cols)


# ---- L1 to the operand buffers


def _fractals(s: Spot, source: Place, target: Place, at: Sequence[Val], fine: str) -> None:
    """`operands.load` without a transpose: row, col, rows, cols, src_stride, dst_stride."""
    x = s.x
    row, col, rows, cols, src_stride, dst_stride = at
    for each in at:
        fine = x.both(fine, x.compare("ult", each, SMALL >> 12))
    start = x.mul(x.add(x.mul(col, src_stride), row), CUBE_BLOCK_SIZE)
    moved = Place((source.memory, x.add(source.address, start)), source.elem)
    loop = Loop(cols, *(x.mul(step, CUBE_BLOCK_SIZE) for step in (src_stride, dst_stride)))
    width = x.mul(rows, CUBE_BLOCK_SIZE)
    move_bursts(s, Transfer(moved, target, width, [loop]), fine)


def _load(s: Spot, rows: Val, depth: Val) -> Sequence[Native]:
    source, target = _places(s)
    x, kind = s.x, element(s.case, "source")
    row, col = (
        0 if s.op.operand(name) is None else words(s, name)[0]
        for name in ("start_row", "start_col")
    )
    fine = "true"
    for each in (rows, depth):
        fine = x.both(fine, x.compare("sge", each, 1))
        fine = x.both(fine, x.compare("ult", each, SMALL >> 8))
    block = C0_SIZE_BYTE * kind.values_per_item // kind.itemsize
    if s.case.word("transpose") != "true":
        strip = s.x.up(rows, FRACTAL_NZ_ROW)
        at = (row, col, strip, s.x.up(depth, block), strip, strip)
        _fractals(s, source, target, at, fine)
        return []
    if kind.is_packed:
        raise NotNative("packed elements")
    _turned(s, source, target, kind, (row, col), (rows, depth), fine)
    return []


def _turned(
    s: Spot,
    source: Place,
    target: Place,
    kind: DType,
    start: tuple[Val, Val],
    shape: tuple[Val, Val],
    fine: str,
) -> None:
    """`operands.load` with a transpose: strips of C0 columns both in the source and transposed."""
    x, wide = s.x, C0_SIZE_BYTE // kind.itemsize
    step = max(FRACTAL_NZ_ROW, wide)
    rows, cols = (x.mul(s.x.up(n, step), step) for n in reversed(shape))
    pitch = x.mul(rows, C0_SIZE_BYTE)
    for each in start:
        fine = x.both(fine, x.compare("ult", each, SMALL >> 10))
    row, col = start
    skipped = x.add(x.mul(col, pitch), x.mul(row, CUBE_BLOCK_SIZE))
    first = x.add(source.address, skipped)
    nbytes = x.mul(x.mul(rows, cols), kind.itemsize)
    fine = x.both(fine, s.e.inside(source.memory, first, nbytes))
    fine = x.both(fine, s.e.inside(target.memory, target.address, nbytes))

    def run() -> None:
        given = Arguments()
        across = given.name(x.mul(rows, wide)), given.name(x.mul(cols, wide))
        matrix, other = (
            Field(kind, boxes.line(wide), (Digit(wide, 1), Digit(REST, apart))) for apart in across
        )
        from_ = s.pointer(source.memory, first)
        to = Side(other, s.pointer(target.memory, target.address))
        tile_moves.transfer(s, cols, rows, to, Side(matrix.swapped, from_, tuple(given.names)))

    planes.either_way(s, fine, run, "a number is out of range")


@emits(operands.MTE_L1_L0A)
def _mte_l1_l0a(s: Spot) -> Sequence[Native]:
    rows, depth = words(s, *_size(s))
    return _load(s, rows, depth)


@emits(operands.MTE_L1_L0B)
def _mte_l1_l0b(s: Spot) -> Sequence[Native]:
    depth, rows = words(s, *_size(s))
    return _load(s, rows, depth)


def _size(s: Spot) -> list[str]:
    """The operands that give the size, which each instruction names in its own way."""
    return [o.name for o in s.case.row.operands[2:4]]


@emits(operands.LOAD_CBUF)
def _load_cbuf(s: Spot) -> Sequence[Native]:
    if s.case.word("transpose") == "true":
        raise NotNative("a transpose by steps")
    source, target = _places(s)
    names = ("m_start", "k_start", "m_step", "k_step", "src_stride", "dst_stride")
    _fractals(s, source, target, words(s, *names), "true")
    return []


@emits(operands.LOAD_CBUF_S4)
def _load_cbuf_s4(s: Spot) -> Sequence[Native]:
    """Bytes as they are; what is transposed is the reference's."""
    source, target = _places(s)
    *steps, transpose = words(s, *(o.name for o in s.case.row.operands[2:]))
    _fractals(s, source, target, steps, s.x.compare("eq", transpose, 0))
    return []


# ---- MX scales and parameters: bytes as they are


def scales_beside(s: Spot, name: str, target: Place) -> Place:
    """`operands.scales_at`: beside the operand buffer that a pointer names."""
    space = getattr(s.case.type(name), "space", None)
    if space not in operands.SCALES:
        raise NotNative("scales beside a buffer that is known only when it runs")
    address = s.x.new(f"lshr i64 {target.address}, {operands.SCALE_SHIFT}")
    return Place((SPACE_NUMBERS[operands.SCALES[space]], address), None)


def _mte_scales(s: Spot, rows: Val, depth: Val) -> Sequence[Native]:
    source, target = _places(s)
    x, fine = s.x, "true"
    for name in s.case.row.operand_names[4:]:  # where it begins: the reference says what is wrong
        if s.op.operand(name) is not None:
            s.fault_unless(x.compare("eq", words(s, name)[0], 0))
    for each in (rows, depth):
        fine = x.both(fine, x.compare("sge", each, 1))
        fine = x.both(fine, x.compare("ult", each, SMALL >> 8))
    along, across = x.up(rows, MX_ROW_LEN), x.up(depth, MX_BLOCK_SIZE * MX_COL_LEN)
    width = x.mul(x.mul(along, across), operands.FRAGMENT)
    move_bursts(
        s, Transfer(source, scales_beside(s, "destination", target), width, [Loop(1, 0, 0)]), fine
    )
    return []


@emits(operands.MTE_L1_L0A_MX)
def _mte_l1_l0a_mx(s: Spot) -> Sequence[Native]:
    rows, depth = words(s, *_size(s))
    return _mte_scales(s, rows, depth)


@emits(operands.MTE_L1_L0B_MX)
def _mte_l1_l0b_mx(s: Spot) -> Sequence[Native]:
    depth, rows = words(s, *_size(s))
    return _mte_scales(s, rows, depth)


@emits(operands.LOAD_CBUF_TO_CB_MX)
def _load_cbuf_mx(s: Spot) -> Sequence[Native]:
    source, target = _places(s)
    x, at, fine = s.x, words(s, *(o.name for o in s.case.row.operands[2:8])), "true"
    for each in at:
        fine = x.both(fine, x.compare("ult", each, SMALL >> 12))
    row, col, rows, cols, *strides = at
    start = x.mul(x.add(x.mul(row, strides[0]), col), operands.FRAGMENT)
    first = Place((source.memory, x.add(source.address, start)), source.elem)
    loop = Loop(rows, *(x.mul(each, operands.FRAGMENT) for each in strides))
    width = x.mul(cols, operands.FRAGMENT)
    move_bursts(s, Transfer(first, scales_beside(s, "destination", target), width, [loop]), fine)
    return []


def segment(s: Spot, place: Place) -> tuple[Place, str]:
    """`cube.parameters`: where a fixpipe address lies, and what must hold for that. Slopes at an
    address that is known only when it runs are the reference's, and those that it watches."""
    address = place.address
    if not isinstance(address, int) or not address & cube.SEGMENT or s.e.watch is not None:
        return place, s.x.compare("ult", address, cube.SEGMENT)
    needs, size = s.e.unit.needs, s.case.profile.buffers[Space.FIXPIPE.value]
    needs.unsure.add(context.SLOPES)
    needs.spans.add((context.SLOPES, 0, size))
    return Place((context.SLOPES, address & (cube.SEGMENT - 1)), place.elem), "true"


def _parameters(s: Spot, *names: str) -> Sequence[Native]:
    """`cube._to_parameters`."""
    source, target = _places(s)
    x, gaps = s.x, words(s, *names)
    target, fine = segment(s, target)
    for each in gaps:
        fine = x.both(fine, x.compare("ult", each, SMALL >> 6))
    count, length, *between = gaps
    strides = [x.mul(x.add(length, gap), cube.PARAMETER_UNIT) for gap in between]
    width = x.mul(length, cube.PARAMETER_UNIT)
    move_bursts(s, Transfer(source, target, width, [Loop(count, *strides)]), fine)
    return []


@emits(cube.MTE_L1_FB)
def _mte_l1_fb(s: Spot) -> Sequence[Native]:
    length, count, *gaps = (o.name for o in s.case.row.operands[2:6])
    return _parameters(s, count, length, *gaps)


@emits(cube.COPY_CBUF_TO_FBUF)
def _copy_cbuf_to_fbuf(s: Spot) -> Sequence[Native]:
    return _parameters(s, *(o.name for o in s.case.row.operands[2:6]))


# ---- L1 to the bias table


def _bias(s: Spot, names: Sequence[str], widen: bool) -> Sequence[Native]:
    """`cube._bias`: 16-bit values take 32-bit slots, as f32 or as they are."""
    source, target = _places(s)
    x, kind, gaps, fine = s.x, element(s.case, "source"), words(s, *names), "true"
    for each in gaps:
        fine = x.both(fine, x.compare("ult", each, SMALL >> 6))
    count, length, src_gap, dst_gap = gaps
    width = x.mul(length, BLOCK_BYTE_SIZE)
    wider: Val = width if kind.itemsize == 2 else 0
    step = x.add(x.add(width, wider), x.mul(dst_gap, BLOCK_BYTE_SIZE))
    loop = Loop(count, x.mul(x.add(length, src_gap), BLOCK_BYTE_SIZE), step)
    slot = F32 if widen else U32

    def widened(dst: Side, src: Side, inner: Loop) -> None:
        given = Arguments()
        from_, to = (
            Field(dtype, boxes.line(given.name(x.over(step, dtype.itemsize))), boxes.line(1))
            for dtype, step in ((kind, inner.source), (slot, inner.destination))
        )
        values = Side(from_, src.pointer, tuple(given.names))
        work = copies.Work(lambda v: _slots(v, kind, widen))
        cols = x.over(width, kind.itemsize)
        tile_moves.transfer(
            s, inner.count, cols, Side(to, dst.pointer), values, work, f"bias {widen}"
        )

    pads = widened if kind.itemsize == 2 else None
    move_bursts(s, Transfer(source, target, width, [loop], wider), fine, pads=pads)
    return []


def _slots(values: Any, kind: DType, widen: bool) -> Any:
    return lanes.convert(values, kind, F32) if widen else values.view("u2").astype("u4")


@emits(cube.MTE_L1_BT)
def _mte_l1_bt(s: Spot) -> Sequence[Native]:
    length, count, *gaps = (o.name for o in s.case.row.operands[2:6])
    return _bias(s, (count, length, *gaps), element(s.case, "source") in (F16, BF16))


@emits(cube.COPY_CBUF_TO_BT)
def _copy_cbuf_to_bt(s: Spot) -> Sequence[Native]:
    conv = s.need(Word, "conv_control").name
    if conv not in ("true", "false"):
        raise NotNative("a conversion that is known only when it runs")
    widen = conv == "true" or element(s.case, "source") is BF16
    return _bias(s, [o.name for o in s.case.row.operands[3:7]], widen)
