"""Arithmetic operators on tiles: selects the instruction of an operator by the rows' traits.

`a + b` of tiles of one shape, of a tile and a number, of a tile and a column (one number per row)
or a row (one per column): each has an instruction. If one is missing, the smaller operand is
broadcast first.
"""

from __future__ import annotations

from collections.abc import Collection, Generator
from contextlib import contextmanager
from typing import Any

from pto import isa
from pto.core.dtypes import DType, dtype
from pto.isa.row.instr import Instr
from pto.isa.tile.convert import CONVERSIONS
from pto.lang.call.invoke import invoke
from pto.lang.call.place import mistake
from pto.lang.call.session import current
from pto.lang.express.broadcast import broadcast, shown, size_text, trimmed
from pto.lang.express.elements import beside
from pto.lang.express.shapes import (
    apart,
    flat,
    is_column,
    is_single,
    like,
    set_region,
    vector,
)
from pto.lang.values.operators import COMMUTES, Comparison, operations
from pto.lang.values.scalars import Scalar, is_number, select
from pto.lang.values.tiles import Extent, Extents, Tile, region_text, same_extent, same_region, tile

_ALIKE = COMMUTES | {"max", "min"}


def unary(word: str, t: object) -> Tile:
    """One instruction on one tile. |t| of integers that tabs does not take is max(t, -t)."""
    t = as_tile(word, t)
    if word == "abs" and t.dtype.is_integer and not _has(word, t):
        return binary("max", t, binary("*", t, -1))
    row = _served(word, t)
    dst = like(t)
    _fill(row, dst, t)
    return dst


def binary(sign: str, a: Any, b: Any, into: Tile | None = None) -> Tile:
    """`a sign b`, of which one is a tile, in a tile of its own or in `into`."""
    a, b = (_operand(sign, operand) for operand in (a, b))
    if isinstance(a, Tile) and isinstance(b, Tile):
        require_one_type(sign, a, b)
        a, b = beside(a, b), beside(b, a)
    if not isinstance(a, Tile):
        return _number_first(sign, a, b, into)
    if not isinstance(b, Tile):
        _require_number(sign, a, b)
        row = _served(sign, a, number=True)
        dst = into or like(a)
        _fill(row, dst, a, b)
        return dst
    a, b = a if into is a else trimmed(a, b), trimmed(b, a)
    wide, spread = broadcast(sign, a, b)
    if wide is None:  # a column and a row
        a, b = crossed(a, b) if is_column(a) else a, crossed(b, a) if is_column(b) else b
        return binary(sign, a, b, into)
    if spread and wide is b and sign in _ALIKE:
        a, b = b, a
    row = _find(sign, a, b, spread=spread)
    lacks = row is not None and not _takes(row, a.dtype)
    if spread and (row is None or lacks or (spread == "column" and wide is b)):
        a, b = (operand if operand is wide else spread_like(operand, wide) for operand in (a, b))
        spread = None
    row = _served(sign, a, b, spread=spread)
    dst = into or like(wide)
    with adapted(a, b, spread):
        if spread is None:
            _require_one_region(sign, a, b)
        _fill(row, dst, a, b)
    return dst


def accumulate(sign: str, t: Tile, other: object) -> Tile:
    """`t += other` and the like, in place: if `other` has a smaller valid region, the rest of `t`
    is unchanged (tpartadd, tpartmul)."""
    session = current()
    if t.role == "acc":
        from pto.lang.express.product import added  # built on operators

        if sign == "+" and added(t, other):
            return t
        raise mistake(
            "PTO-U084",
            f"`{sign}=`: %{t.value.name} is an accumulator, and only the matrix unit adds to it",
            help=f"pto.dot(a, b, acc={t.value.name}) adds a product to it",
        )
    if isinstance(other, Tile):
        other = trimmed(vector(apart(other, t)), t)
        window = trimmed(t, other)
        if window is not t and window.shape == other.shape:
            accumulate(sign, window, other)
            return t
    if isinstance(other, Tile) and other.shape == t.shape:
        require_one_type(sign, t, other)
        row = None if t.is_filled else _find(f"part {sign}", t, other)
        if row is not None and not same_region(session.region(t), session.region(other)):
            region = session.region(t)
            invoke(row, [flat(t), flat(t), flat(other)], {})
            session.set_region(t, *region)
            return t
    if isinstance(other, Tile) and not is_single(other):
        _require_room(sign, t, other)
    return binary(sign, t, other, into=t)


def _require_room(sign: str, t: Tile, other: Tile) -> None:
    """The result of `t += other` has the shape of `t`."""
    if not is_single(t) and broadcast(sign, t, other)[0] is t:
        return
    raise mistake(
        "PTO-U083",
        f"`{sign}=`: {_asked(other)} elements do not fit into a tile of {_asked(t)}",
        help=f"the result is larger: bind a new tile, t = t {sign} u",
    )


def assign(t: Tile, value: Any) -> None:
    """Copy a tile or a number into a tile, within the valid region of the value."""
    if not isinstance(value, Tile):
        if not is_number(value) and not isinstance(value, Scalar):
            raise mistake("PTO-T209", f"a tile is assigned a tile or a number, got {_kind(value)}")
        isa.texpands(flat(t), value)
        return
    value = trimmed(vector(apart(value, t)), t)
    t = trimmed(t, value)
    require_one_type("=", t, value)
    if t.shape != value.shape:
        raise mistake(
            "PTO-U083",
            f"`=` of tiles of {size_text(t)} and {size_text(value)}: the shapes must be equal",
            help="arithmetic broadcasts a row or column: t[:] = t * 0.0 + row",
        )
    session = current()
    before = session.region(t)
    with adapted(t, value, None):
        isa.tmov(flat(t), flat(value))
    if t.is_filled:
        session.set_region(t, *before)


def spread_like(narrow: Tile, wide: Tile) -> Tile:
    """A row or a column repeated over a tile of the shape of `wide` (trowexpand, tcolexpand)."""
    dst = like(wide, narrow.dtype)
    current().set_region(dst, *current().region(wide))
    spread = "row" if is_column(narrow) else "column"
    _fill(_served("spread", narrow, spread=spread), dst, narrow)
    return dst


# ---- regions


@contextmanager
def adapted(a: Tile, b: Tile, spread: str | None) -> Generator[None]:
    """Temporarily limit a constant tile (`pto.full`) to the valid region of the other operand,
    which may be smaller at the end of an array."""
    session = current()
    axes = {None: (0, 1), "row": (0,), "column": (1,)}[spread]
    before: list[tuple[Tile, Extents]] = []
    for one, other in ((a, b), (b, a)):
        if not (one.is_filled or one.filled_if) or one.fixed or (one is a and other.is_filled):
            continue
        filled = True if one.is_filled or one.filled_if is None else one.filled_if()
        for axis in axes:
            _require_onesize_text(one, other, axis)
        region = session.region(one)
        wanted = [
            _selected(filled, session.region(other)[n], region[n]) if n in axes else region[n]
            for n in (0, 1)
        ]
        if not same_region((wanted[0], wanted[1]), region):
            before.append((one, region))
            set_region(one, wanted[0], wanted[1])
    yield
    for one, region in before:
        set_region(one, *region)


def _selected(condition: object, a: Extent, b: Extent) -> Extent:
    """`a` where the condition holds, else `b`: one extent if both are known to be equal."""
    return b if same_extent(a, b) else select(condition, a, b)


def _require_onesize_text(filled: Tile, other: Tile, axis: int) -> None:
    """Raise if a constant tile has another size than the requested size of `other`, which may be
    unknown if its lines were rounded up."""
    filled_size = filled.asked[axis]
    size = other.asked[axis]
    valid = current().region(other)[axis]
    is_exact = size != other.shape[axis] or (axis == 0) != is_column(other)
    larger = (size > filled_size and is_exact) or (is_number(valid) and valid > filled_size)
    if size < filled_size or larger:
        unit = ("rows", "columns")[axis]
        has = size if size < filled_size or not is_number(valid) else valid
        raise mistake(
            "PTO-U087",
            f"a filled tile has {filled_size} {unit}, the other tile {has}",
            help=f"fill as many {unit}: pto.zeros_like(t), or pto.full with the sizes of t",
        )


@contextmanager
def everywhere(dst: Tile, *sources: Tile) -> Generator[None]:
    """Compute the whole destination if all sources are constant tiles; the result is one too."""
    session = current()
    if not all(source.is_filled and not source.fixed for source in sources):
        yield
        return
    before = [(source, session.region(source)) for source in sources]
    alike = [region for source, region in before if source.shape == dst.shape]
    wide_region = alike[0] if alike else session.region(dst)
    for source in sources:
        set_region(
            source, min(source.rows, dst.rows) if is_column(source) else source.rows, source.cols
        )
    set_region(dst, *dst.shape)
    yield
    dst.is_filled = True
    for source, region in (*before, (dst, wide_region)):
        set_region(source, *region)


def _asked(t: Tile) -> str:
    return "x".join(map(str, t.asked))


def crossed(tall: Tile, wide: Tile) -> Tile:
    """A column repeated to the width of a row."""
    session = current()
    dst = tile(tall.asked[0], wide.cols, tall.dtype)
    dst.asked = tall.asked[0], wide.asked[1]
    session.set_region(dst, session.region(tall)[0], session.region(wide)[1])
    _fill(_served("spread", tall, spread="row"), dst, tall)
    return dst


# ---- operands


def as_tile(word: str, t: object) -> Tile:
    if isinstance(t, Tile):
        return vector(t)
    raise mistake(
        "PTO-T209",
        f"pto.{word} takes a tile, got {type(t).__name__}",
        help="numbers of Python are computed by Python: math.exp(x)"
        if is_number(t)
        else "load one first: t = pto.load(x[i:, :], 16, 128)",
    )


def _operand(sign: str, value: object) -> Any:
    if isinstance(value, Tile):
        return vector(value)
    if is_number(value) or isinstance(value, Scalar):
        return value
    if isinstance(value, Comparison):
        raise mistake(
            "PTO-U089",
            f"`{shown(sign)}` of a comparison: it is a mask of bits, not numbers",
            help="select with it, pto.where(t > 0.0, a, 0.0), or count with (t > 0.0).to(pto.f32)",
        )
    raise mistake(
        "PTO-T209",
        f"`{shown(sign)}` of a tile and {_kind(value)}",
        help="load it first: pto.load(x[i:, :], 16, 128); numbers are Python's or pto.Scalar",
    )


def is_of_floats(*operands: object) -> bool:
    """True if every tile among the operands holds floats."""
    return all(operand.dtype.is_float for operand in operands if isinstance(operand, Tile))


def _kind(value: object) -> str:
    name = type(value).__name__
    return {"Global": "an array in global memory", "View": "a window on global memory"}.get(
        name, f"{name}"
    )


def require_one_type(sign: str, a: Tile, b: Tile) -> None:
    if a.dtype is b.dtype:
        return
    wide = max((a.dtype, b.dtype), key=lambda kind: (kind.is_float, kind.itemsize))
    raise mistake(
        "PTO-U082",
        f"`{shown(sign)}` of tiles of {a.dtype} and {b.dtype}: there is no implicit conversion",
        help=f"convert the other one with .to(pto.{wide})",
    )


def _require_number(sign: str, t: Tile, number: object) -> None:
    if isinstance(number, float) and not t.dtype.is_float:
        raise mistake(
            "PTO-U082",
            f"`{shown(sign)}` of a tile of {t.dtype} and the float {number!r}",
            help="compute in floats: t.to(pto.f32), or write a whole number",
        )


def _require_one_region(sign: str, a: Tile, b: Tile) -> None:
    session = current()
    regions = [session.region(tile) for tile in (a, b)]
    for one, other in zip(*regions, strict=True):
        if is_number(one) and is_number(other) and one != other:
            left, right = map(region_text, regions)
            raise mistake(
                "PTO-U087",
                f"`{shown(sign)}`: {left} elements of the left tile are valid, and {right}"
                " of the right one",
                help="load both from windows of one size; a += b keeps what b does not reach",
            )


def _number_first(sign: str, a: Any, b: Tile, into: Tile | None) -> Tile:
    if sign in _ALIKE:
        return binary(sign, b, a, into)
    _require_number(sign, b, a)
    row = _find(sign, None, b)
    if row is not None:  # as tdivs, which takes either order
        dst = into or like(b)
        _fill(row, dst, a, b)
        return dst
    if sign == "-":  # a - t is -t + a, bit by bit
        turned = unary("neg", b)
        return binary("+", turned, a, turned)
    spread = like(b)
    current().set_region(spread, *current().region(b))
    isa.texpands(flat(spread), a)
    return binary(sign, spread, b, into)


# ---- rows


def _find(sign: str, *operands: Tile | None, spread: str | None = None) -> Instr | None:
    """The row of an operator on tiles; None as an operand is a number."""
    for row in operations(
        sign, *(None if operand is None else operand.type for operand in operands)
    ):
        if getattr(row.body, "spread", None) == spread:
            return row
    return None


def _served(
    sign: str, a: Tile, b: Tile | None = None, *, number: bool = False, spread: str | None = None
) -> Instr:
    """The row of an operator; raises if the profile lacks it for this element type."""
    row = _find(sign, *((a,) if b is None and not number else (a, b)), spread=spread)
    if row is None:
        raise mistake(
            "PTO-U081",
            f"tiles have no `{shown(sign)}`: no instruction does that",
            help=_missing_help(sign),
        )
    if not _takes(row, a.dtype):
        profile = current().profile
        types = row.types[profile]
        raise mistake(
            "PTO-U085",
            f"`{shown(sign)}` of {a.dtype}: {row.mnemonic} takes {' '.join(sorted(types))} on"
            f" {profile}",
            help=type_help(a.dtype, types),
        )
    return row


def _takes(row: Instr, kind: DType) -> bool:
    """True if the profile has the instruction for an element type."""
    types = row.types.get(current().profile)
    return types is None or kind.name in types


def _has(word: str, t: Tile) -> bool:
    """True if the profile has the instruction of a word for tiles like t."""
    row = _find(word, t)
    return row is not None and _takes(row, t.dtype)


def type_help(current_type: DType, types: Collection[str]) -> str | None:
    """A help line with the nearest supported element type, if the profile converts both ways."""
    table = CONVERSIONS.get(current().profile)

    def converts(a: str, b: str) -> bool:
        return table is None or b in table.get(a, "").split()

    kinds = [
        dtype(n) for n in types if converts(current_type.name, n) and converts(n, current_type.name)
    ]
    if not kinds:
        return None
    best = max(
        kinds, key=lambda kind: (kind.is_float == current_type.is_float, kind.itemsize, kind.name)
    )
    return f"compute in {best}: t.to(pto.{best}), and .to(pto.{current_type}) of the result"


def _missing_help(sign: str) -> str:
    if sign == "//":
        return "convert integers first, t.to(pto.f32) // 3.0, or shift them right: t >> 2"
    if sign == "@":
        return "pto.dot(a, b) multiplies tiles"
    return "`pto isa` lists the instructions; all are functions: isa.tadd(dst, a, b)"


def _fill(row: Instr, dst: Tile, *sources: object) -> None:
    """Emit the instruction, with columns seen as rows if it needs row-major tiles."""
    tiles = [source for source in sources if isinstance(source, Tile)]
    with everywhere(dst, *tiles):
        if is_column(dst):
            set_region(dst, *current().region(tiles[0]))
            dst = flat(dst)
            sources = tuple(
                flat(source) if isinstance(source, Tile) else source for source in sources
            )
        invoke(row, [dst, *sources], {})
