"""Matmul and transposition of tiles."""

from __future__ import annotations

from collections.abc import Iterator

from pto import isa
from pto.core.constants import BLOCK_BYTE_SIZE
from pto.core.dtypes import F32, I32
from pto.core.tile import Role
from pto.ir.graph import Operation
from pto.isa.handle.tile import SET_VALIDSHAPE
from pto.lang.call.place import mistake
from pto.lang.call.session import current
from pto.lang.express.memory import layout_in_l1, room_for
from pto.lang.express.shapes import flat, is_column, is_row, upright, vector
from pto.lang.values.scalars import arith
from pto.lang.values.tiles import Tile, region_text, tile, tile_type
from pto.target.profile import profile

_BOX = 16  # elements: the least side of the boxes of the matrix unit


def dot(a: Tile, b: Tile, *, acc: Tile | None = None) -> Tile:
    """The matmul of two tiles, added to `acc` if given; the result is an accumulator (f32, i32).

    Operands are moved to the matrix unit: tmov, tmov, tmatmul. Operands that are larger than its
    buffers stay in L1; slices along k are moved and multiplied in order, each product added to
    those before it. If the sizes along k are known only at run time, their equality is asserted
    (`pto.assert_`). The first product into `pto.zeros(m, n, pto.f32, role="acc")` sets it, so in a
    loop there is a branch on its counter.
    """
    left, right = _operands(a, b)
    _require_factors(a, b)
    if acc is not None:
        _require_accumulator(acc, left, right)
        return _multiplied(acc, left, right)
    product = tile(left.rows, right.cols, F32 if left.dtype.is_float else I32, role="acc")
    product.asked = a.asked[0], b.asked[1]
    for number, pair in enumerate(_pairs(left, right)):
        if number:
            isa.tmatmul_acc(product, product, *pair)
        else:
            isa.tmatmul(product, *pair)
        product.products = number + 1
    product.factors = left, right
    return product


def _operands(a: Tile, b: Tile) -> tuple[Tile, Tile]:
    """Both operands in L0, or both in L1 if one is larger than its buffer in L0."""
    tiles = isinstance(a, Tile) and isinstance(b, Tile)  # pyright: ignore[reportUnnecessaryIsInstance]
    if tiles and a.role != "left" and b.role != "right" and _slice_of_k(a, b):
        return _in_l1(a), _in_l1(b)
    return _factor(a, "left"), _factor(b, "right")


def _slice_of_k(a: Tile, b: Tile) -> int:
    """The length of the slices of a product with operands larger than L0; 0 if both fit.

    A slice takes at most half of each buffer, so that the next one is extracted meanwhile.
    """
    (m, k) = a.shape
    n = b.cols
    size = a.dtype.itemsize
    buffers = profile(current().profile).buffers
    spaces = (m, buffers.l0a), (n, buffers.l0b)
    if all(extent * k * size <= space for extent, space in spaces):
        return 0
    unit = length = max(_BOX, 32 // size)
    while all(extent * 2 * length * size <= space // 2 for extent, space in spaces):
        length *= 2
    fits = all(extent * unit * size <= space for extent, space in spaces)
    return length if fits and length < k else 0


def _pairs(left: Tile, right: Tile) -> Iterator[tuple[Tile, Tile]]:
    """The operands of a product in L0: as they are, or slices along k of operands in L1."""
    if left.role != "mat":
        yield left, right
        return
    length = _slice_of_k(left, right)
    for start in range(0, left.cols, length):
        k = min(length, left.cols - start)
        pair = (
            tile(left.rows, k, left.dtype, role="left"),
            tile(k, right.cols, right.dtype, role="right"),
        )
        isa.textract(pair[0], left, 0, start)
        isa.textract(pair[1], right, start, 0)
        yield pair


def _multiplied(acc: Tile, left: Tile, right: Tile) -> Tile:
    """Add a product to an accumulator, slice by slice if its operands are in L1."""
    for pair in _pairs(left, right):
        _accumulated(acc, *pair)
    return acc


def _accumulated(acc: Tile, left: Tile, right: Tile) -> Tile:
    """Add a product of operands in L0 to an accumulator; the first one sets it."""
    acc.factors = None
    if not acc.is_empty:
        isa.tmatmul_acc(acc, acc, left, right)
        return acc
    acc.is_empty = False
    first = current().first_time(acc)
    if first is None:
        isa.tmatmul(acc, left, right)
        return acc
    from pto.lang.control import branch  # control is built on values

    branch(
        first,
        lambda: isa.tmatmul(acc, left, right),
        lambda: isa.tmatmul_acc(acc, acc, left, right),
    )
    return acc


def added(acc: Tile, product: object) -> bool:
    """True for `acc += a @ b`, which becomes the product added by the matrix unit: the one that was
    just traced is taken back. A product with other uses is left as it is."""
    session = current()
    if not isinstance(product, Tile) or product.factors is None:
        return False
    left, right = product.factors
    _require_accumulator(acc, left, right)
    if session.eager:  # the product is computed twice, the sum once
        _multiplied(acc, left, right)
        return True
    maker, uses = product.value.maker, list(product.value.uses)
    work = list(dict.fromkeys(op for op in uses if op.row is not SET_VALIDSHAPE))
    if maker is None or len(work) != product.products or not set(_since(work[-1])) <= set(uses):
        return False
    traced = [maker, *uses] if left.role != "mat" else _since(maker)
    for op in reversed(list(dict.fromkeys(traced))):
        for value in op.results:
            session.forget(value)
        op.erase()
    product.factors, product.is_empty = None, True  # a later use is a mistake
    _multiplied(acc, left, right)
    return True


def _since(op: Operation) -> list[Operation]:
    """The operations of a block from `op` on."""
    ops = op.home.ops
    return ops[ops.index(op) :]


def _factor(t: object, side: str) -> Tile:
    """The operand in the buffer of its side of the matrix unit."""
    if not isinstance(t, Tile):
        raise mistake(
            "PTO-T209",
            f"pto.dot multiplies tiles, got {type(t).__name__}",
            help="load them first: pto.dot(pto.load(x[i:, :], 64, 64), pto.load(w, 64, 64))",
        )
    if t.role == side:
        return t
    source = _in_l1(t)
    operand = tile(source.rows, source.cols, t.dtype, role=side)
    isa.tmov(operand, source)
    return operand


def _in_l1(t: Tile) -> Tile:
    """The tile in L1: loaded there directly if possible, else moved."""
    if t.role == "mat":
        return t
    session = current()
    rows, cols = (t.origin and t.origin.most) or t.shape
    shape = room_for(rows, cols, t.dtype, "mat")
    if t.origin is not None:
        type = tile_type(*shape, t.dtype, layout_in_l1(t.origin), "mat")
        loaded = session.in_l1(t, type)
        if loaded is not None:
            return loaded
    if t.role == "vec" and t.origin is None:  # whole boxes of the requested size, and no more
        shape = room_for(*t.asked, t.dtype, "mat")
        t = t if shape[1] >= t.cols else t[:, 0 : shape[1]]
        shape = max(shape[0], t.rows), t.cols
    moved = tile(*shape, t.dtype, role="mat")
    by_rows = session.profile == "a2a3"  # its queues go through global memory, row by row
    isa.tmov(moved, t if by_rows or t.role != "vec" else _boxed(t))
    return moved


def _boxed(t: Tile) -> Tile:
    """The tile in the layout of the matrix unit, converted by the vector unit."""
    boxed = tile(*t.shape, t.dtype, "NZ")
    isa.tmov(boxed, t)
    return boxed


def _require_factors(a: Tile, b: Tile) -> None:
    session = current()
    (_, inner), (other, _) = session.region(a), session.region(b)
    if isinstance(inner, int) and isinstance(other, int) and inner != other:
        turned = isinstance(session.region(b)[1], int) and session.region(b)[1] == inner
        raise mistake(
            "PTO-U083",
            f"pto.dot of {_size(a)} and {_size(b)}: the columns of the left tile are the rows of"
            " the right one",
            help="load it turned: x.T[...] of the array" if turned else "load equal sizes along k",
        )
    if getattr(inner, "value", inner) is not getattr(other, "value", other):
        from pto.lang.debug import assert_  # debugging is built on expressions

        complaint = "pto.dot: the columns of the left tile are not the rows of the right one"
        assert_(inner == other, complaint, "columns =", inner, "rows =", other)
    if a.dtype.itemsize != b.dtype.itemsize:
        raise mistake(
            "PTO-U082",
            f"pto.dot of {a.dtype} and {b.dtype}: both operands need the same type",
            help="convert one of them with .to()",
        )


def _size(t: Tile) -> str:
    return region_text(current().region(t))


def _require_accumulator(acc: Tile, left: Tile, right: Tile) -> None:
    if getattr(acc, "role", "") != Role.ACC.value:
        raise mistake(
            "PTO-U084",
            f"pto.dot: acc is {getattr(acc, 'role', type(acc).__name__)!r}, and the matrix unit"
            " adds in an accumulator",
            help='make it with pto.zeros(m, n, pto.f32, role="acc") before the loop',
        )
    if acc.shape != (left.rows, right.cols):
        raise mistake(
            "PTO-U083",
            f"pto.dot: the product is {left.rows}x{right.cols}, acc is {acc.rows}x{acc.cols}",
            help=f'pto.zeros({left.rows}, {right.cols}, pto.{acc.dtype}, role="acc")',
        )


def transpose(t: Tile) -> Tile:
    """The transposed tile: one ttrans; a single row or column is a view without instruction."""
    t = vector(t)
    if is_column(t):
        return flat(t)
    if is_row(t):
        return upright(t)
    return turned(t)


def turned(t: Tile) -> Tile:
    """The transposed tile in row-major order, also for one row or column (ttrans)."""
    rows, cols = t.asked
    if t.window_of is not None and not _in_blocks(t):
        parent, (row, col) = t.window_of
        lines = parent if t.rows == parent.rows else parent[row : row + t.rows, :]
        return turned(lines)[col : arith("+", col, t.cols), :]
    transposed = tile(*room_for(cols, rows, t.dtype, "vec"), t.dtype)
    isa.ttrans(transposed, t)
    transposed.asked = cols, rows
    return transposed


def _in_blocks(window: Tile) -> bool:
    """True if the columns of a window begin and end at whole 32-byte blocks of its tile."""
    start, size = window.window_of[1][1], window.dtype.itemsize  # pyright: ignore[reportOptionalSubscript]
    ends = (start, window.cols)
    return all(isinstance(n, int) and n * size % BLOCK_BYTE_SIZE == 0 for n in ends)
