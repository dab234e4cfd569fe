"""Conversion of tiles to another element type, and rounding to whole numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Final

from pto import isa
from pto.core.dtypes import F32, DType, dtype
from pto.isa.tile.convert import CONVERSIONS
from pto.lang.call.place import mistake
from pto.lang.call.session import current
from pto.lang.express.algebra import as_tile, everywhere
from pto.lang.express.shapes import flat, is_column, like, set_region, vector
from pto.lang.values.elements import element
from pto.lang.values.tiles import Tile, tile

# The values of `rounding=`, and the modes of tcvt that they stand for.
ROUNDING: Final = {
    "even": "RINT",
    "away": "ROUND",
    "floor": "FLOOR",
    "ceil": "CEIL",
    "trunc": "TRUNC",
    "odd": "ODD",
}


def convert(t: Tile, to: object, rounding: str | None = None, saturate: bool | None = None) -> Tile:
    """The tile in another element type: one tcvt, or several where the profile has no such
    conversion and every one but the last is exact: i8 becomes f32 by way of f16.

    A float that becomes an integer loses its fraction, as in NumPy and torch; any other conversion
    rounds to the nearest value, to even between two.
    """
    kind = element(to)
    t = vector(t)
    if kind is t.dtype and rounding is None:
        return t
    for middle in _through(t.dtype, kind):
        t = convert(t, middle)
    mode = _mode(rounding)
    if mode is None and t.dtype.is_float and kind.is_integer:
        mode = "TRUNC"
    clamped = None if saturate is None else "ON" if saturate else "OFF"
    _require_conversion(t.dtype, kind)
    converted = like(t, kind)
    with everywhere(converted, t):
        source, into = t, converted
        if is_column(t):
            set_region(converted, *current().region(t))
            source, into = flat(t), flat(converted)
        # Headers of a2a3 read satmode only with a working tile; integers get theirs by the plan.
        needs_work = saturate is False and kind.is_float and current().profile == "a2a3"
        work = tile(1, 32, F32) if needs_work else None
        isa.tcvt(into, source, work, rmode=mode, satmode=clamped)
    return converted


def floor(t: Tile) -> Tile:
    """The greatest whole number that is not above t: a `tcvt` of f32 to f32."""
    return _whole("floor", t, "floor")


def ceil(t: Tile) -> Tile:
    """The least whole number that is not below t: a `tcvt` of f32 to f32."""
    return _whole("ceil", t, "ceil")


def round_(t: Tile) -> Tile:
    """The nearest whole number, the even one of two: a `tcvt` of f32 to f32."""
    return _whole("round", t, "even")


def _whole(word: str, t: Tile, rounding: str) -> Tile:
    """A tile of whole numbers in its own type; narrower floats are rounded in f32."""
    t = as_tile(word, t)
    return convert(convert(t, F32), F32, rounding).to(t.dtype) if t.dtype.is_float else t


def _mode(rounding: str | None) -> str | None:
    """The mode of tcvt for a value of `rounding=`."""
    if rounding is None or rounding in ROUNDING:
        return rounding and ROUNDING[rounding]
    raise mistake(
        "PTO-U205",
        f"t.to has no rounding {rounding!r}",
        help=f"it is one of {', '.join(ROUNDING)}; without it integers lose the fraction, and"
        " floats become the nearest value, to even between two",
    )


def _through(source: DType, kind: DType) -> Sequence[DType]:
    """The types between two that the profile does not convert directly, if that rounds no more
    than a direct conversion: every step but the last is exact."""
    table = CONVERSIONS.get(current().profile)
    if table is None or kind.name in table.get(source.name, "").split():
        return ()
    ways = [way for way in _ways(source, kind, table) if not _roundings(way[:-1])]
    return min(ways, key=_roundings)[1:-1] if ways else ()


def _require_conversion(source: DType, kind: DType) -> None:
    """Raise if the profile has no such conversion; the help names one in several steps."""
    table = CONVERSIONS.get(current().profile)
    if table is None or kind.name in table.get(source.name, "").split():
        return
    reached = table.get(source.name, "").split()
    raise mistake(
        "PTO-U085",
        f".to(pto.{kind}) of {source}: {current().profile} converts {source} to"
        f" {', '.join(reached) or 'nothing'}",
        help=_steps(source, kind, table),
    )


def _steps(source: DType, kind: DType, table: Mapping[str, str]) -> str | None:
    """The steps of the conversion that rounds least, for a help text."""
    ways = _ways(source, kind, table)
    if not ways:
        return None
    best = min(ways, key=_roundings)
    times = ("exact", "rounds once", "rounds more than once")[min(_roundings(best), 2)]
    return f"in steps: {''.join(f'.to(pto.{step})' for step in best[1:])} ({times})"


def _ways(source: DType, kind: DType, table: Mapping[str, str]) -> list[tuple[DType, ...]]:
    """The shortest sequences of conversions through types with the range of both ends."""
    low, high = max(source.min, kind.min), min(source.max, kind.max)
    ways, visited = [(source,)], {source.name}
    while ways:
        longer = [(*way, dtype(n)) for way in ways for n in table.get(way[-1].name, "").split()]
        if complete := [way for way in longer if way[-1] is kind]:
            return complete
        fitting = [way for way in longer if way[-1].min <= low and high <= way[-1].max]
        ways = [way for way in fitting if way[-1].name not in visited]
        visited |= {way[-1].name for way in ways}
    return []


def _roundings(way: Sequence[DType]) -> int:
    """How many conversions of a sequence cannot keep every value."""
    return sum(not _holds(b, a) for a, b in pairwise(way))


def _holds(kind: DType, source: DType) -> bool:
    """True if a type has every value of another one."""
    if source.is_integer and kind.is_integer:
        return kind.min <= source.min and source.max <= kind.max
    if source.form is not None and kind.form is not None:
        return kind.max >= source.max and kind.form.mantissa >= source.form.mantissa
    digits = source.bits - source.is_signed
    return source.is_integer and kind.form is not None and kind.form.mantissa + 1 >= digits
