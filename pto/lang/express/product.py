"""Matmul, conversion and transposition of tiles."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

from pto import isa
from pto.core.dtypes import F32, I32, DType, dtype
from pto.core.tile import Role
from pto.ir.graph import Operation
from pto.isa.handle.tile import SET_VALIDSHAPE
from pto.isa.tile.convert import CONVERSIONS
from pto.lang.call.place import mistake
from pto.lang.call.session import current
from pto.lang.express.algebra import everywhere
from pto.lang.express.memory import layout_in_l1, room_for
from pto.lang.express.shapes import flat, is_column, is_row, like, set_region, upright, vector
from pto.lang.values.elements import element
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
    made = tile(left.rows, right.cols, F32 if left.dtype.is_float else I32, role="acc")
    made.asked = a.asked[0], b.asked[1]
    for number, pair in enumerate(_pairs(left, right)):
        if number:
            isa.tmatmul_acc(made, made, *pair)
        else:
            isa.tmatmul(made, *pair)
        made.products = number + 1
    made.factors = left, right
    return made


def _operands(a: Tile, b: Tile) -> tuple[Tile, Tile]:
    """Both operands in L0, or both in L1 if one is larger than its buffer in L0."""
    tiles = isinstance(a, Tile) and isinstance(b, Tile)  # pyright: ignore[reportUnnecessaryIsInstance]
    if tiles and a.role != "left" and b.role != "right" and _slice_of_k(a, b):
        return _in_l1(a), _in_l1(b)
    return _factor(a, "left"), _factor(b, "right")


def _slice_of_k(a: Tile, b: Tile) -> int:
    """The length of the slices of a product whose operands are larger than L0; 0 if both fit.

    A slice takes at most half of each buffer, so that the next one is extracted meanwhile.
    """
    (m, k), n, size = a.shape, b.cols, a.dtype.itemsize
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
    made, uses = product.value.maker, list(product.value.uses)
    work = list(dict.fromkeys(op for op in uses if op.row is not SET_VALIDSHAPE))
    if made is None or len(work) != product.products or not set(_since(work[-1])) <= set(uses):
        return False
    traced = [made, *uses] if left.role != "mat" else _since(made)
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
    made = tile(source.rows, source.cols, t.dtype, role=side)
    isa.tmov(made, source)
    return made


def _in_l1(t: Tile) -> Tile:
    """The tile in L1: loaded there directly if possible, else moved."""
    if t.role == "mat":
        return t
    session = current()
    rows, cols = (t.origin and t.origin.most) or t.shape
    shape = room_for(rows, cols, t.dtype, "mat")
    if t.origin is not None:
        type = tile_type(*shape, t.dtype, layout_in_l1(t.origin), "mat")
        found = session.in_l1(t, type)
        if found is not None:
            return found
    if session.profile == "a2a3" and t.role != "acc":
        raise mistake(
            "PTO-U084",
            f"%{t.value.name} was computed by the vector unit, and a2a3 has no path from there to"
            " the matrix unit",
            help="use global memory: pto.store(w[...], t), then pto.load(w[...], role='mat')",
        )
    made = tile(*shape, t.dtype, role="mat")
    isa.tmov(made, _boxed(t) if t.role == "vec" else t)
    return made


def _boxed(t: Tile) -> Tile:
    """The tile in the layout of the matrix unit, converted by the vector unit."""
    made = tile(*t.shape, t.dtype, "NZ")
    isa.tmov(made, t)
    return made


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

        told = "pto.dot: the columns of the left tile are not the rows of the right one"
        assert_(inner == other, told, "columns =", inner, "rows =", other)
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


def convert(t: Tile, to: object, mode: str | None = None, saturate: bool | None = None) -> Tile:
    """The tile in another element type: one tcvt."""
    kind = element(to)
    t = vector(t)
    if kind is t.dtype and mode is None:
        return t
    clamped = None if saturate is None else "ON" if saturate else "OFF"
    _require_conversion(t.dtype, kind)
    made = like(t, kind)
    with everywhere(made, t):
        source, into = t, made
        if is_column(t):
            set_region(made, *current().region(t))
            source, into = flat(t), flat(made)
        # Headers of a2a3 read satmode only with a working tile; integers get theirs by the plan.
        needs_work = saturate is False and kind.is_float and current().profile == "a2a3"
        work = tile(1, 32, F32) if needs_work else None
        isa.tcvt(into, source, work, rmode=mode, satmode=clamped)
    return made


def _require_conversion(own: DType, kind: DType) -> None:
    """Raise if the profile has no such conversion; the help names one in several steps."""
    table = CONVERSIONS.get(current().profile)
    if table is None or kind.name in table.get(own.name, "").split():
        return
    reached = table.get(own.name, "").split()
    raise mistake(
        "PTO-U085",
        f".to(pto.{kind}) of {own}: {current().profile} converts {own} to"
        f" {', '.join(reached) or 'nothing'}",
        help=_steps(own, kind, table),
    )


def _steps(own: DType, kind: DType, table: Mapping[str, str]) -> str | None:
    """A shortest sequence of conversions through types with the range of both ends; of several the
    one that rounds least."""
    low, high = max(own.min, kind.min), min(own.max, kind.max)
    ways, seen = [(own,)], {own.name}
    while ways:
        longer = [(*way, dtype(n)) for way in ways for n in table.get(way[-1].name, "").split()]
        if found := [way for way in longer if way[-1] is kind]:
            best = min(found, key=_roundings)
            told = ("exact", "rounds once", "rounds more than once")[min(_roundings(best), 2)]
            return f"in steps: {''.join(f'.to(pto.{each})' for each in best[1:])} ({told})"
        fitting = [way for way in longer if way[-1].min <= low and high <= way[-1].max]
        ways = [way for way in fitting if way[-1].name not in seen]
        seen |= {way[-1].name for way in ways}
    return None


def _roundings(way: Sequence[DType]) -> int:
    """How many conversions of a sequence cannot keep every value."""
    return sum(not _holds(b, a) for a, b in pairwise(way))


def _holds(kind: DType, own: DType) -> bool:
    """True if a type has every value of another one."""
    if own.is_integer and kind.is_integer:
        return kind.min <= own.min and own.max <= kind.max
    if own.form is not None and kind.form is not None:
        return kind.max >= own.max and kind.form.mantissa >= own.form.mantissa
    digits = own.bits - own.is_signed
    return own.is_integer and kind.form is not None and kind.form.mantissa + 1 >= digits


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
    made = tile(*room_for(cols, rows, t.dtype, "vec"), t.dtype)
    isa.ttrans(made, t)
    made.asked = cols, rows
    return made
