"""Conversion of element types with `pto.core.convert`; this file has the defaults of each pair."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from pto.core.convert import Round, round_integral
from pto.core.dtypes import F32, HIFLOAT8, I16, I32, DType
from pto.core.errors import fail
from pto.core.tile import Tile
from pto.isa.meaning import lanes
from pto.isa.meaning.kinds import Do, Move
from pto.isa.meaning.lanes import Lanes, raw
from pto.isa.meaning.machine import Machine
from pto.isa.meaning.tile.mover import Mover
from pto.isa.meaning.tile.regions import element, put, region
from pto.isa.rules.rule import Case

# profile -> source type -> the types to which it is truncated
Cuts = Mapping[str, Mapping[str, str]]


Pair = tuple[DType, DType, Round, bool]  # from, to, rounding, saturation


@dataclass(frozen=True, slots=True)
class Conversion(Do):
    """A Do that converts every element of `src` to `dst`, by the steps of `choose(case)`."""

    choose: Callable[[Case], Sequence[Pair]] = field(kw_only=True)


def tile_conversion(cuts: Cuts, forced: str, rounds: Callable[[Case], Round]) -> Do:
    """A conversion of tiles.

    `cuts`: the pairs that drop high bits if satmode is absent; a profile without an entry truncates
    all. `forced`: profiles that saturate all other pairs without tmp, whatever satmode is, and that
    convert f32 to i16 in tmp, through an i32 that saturates (a2a3/TCvt.hpp). `rounds`: the mode.
    Into hifloat8 no satmode has an effect: decisions_isa.md, Saturation into HiFloat8.
    """

    def saturates(case: Case, src: DType, dst: DType) -> bool:
        name, word = case.profile.name, case.word("satmode")
        cut = name not in cuts or dst.name in cuts[name].get(src.name, "").split()
        if dst is HIFLOAT8 and name in cuts:
            return False
        if name in forced.split() and not cut and case.type("tmp") is None:
            return True
        return not cut if word is None else word == "ON"

    def choose(case: Case) -> Sequence[Pair]:
        src = element(case, "src")
        dst = element(case, "dst")
        mode = rounds(case)
        saturate = saturates(case, src, dst)
        in_tmp = case.profile.name in forced.split() and case.type("tmp") is not None
        if in_tmp and not saturate and (src, dst) == (F32, I16):
            return (F32, I32, mode, True), (I32, I16, Round.RINT, False)
        return ((src, dst, mode, saturate),)

    def make(case: Case) -> Callable[..., None]:
        steps = choose(case)

        def change(values: Lanes) -> Lanes:
            for step in steps:
                values = conversion(*step)(values)
            return values

        return _over_values(element(case, "src"), element(case, "dst"), change)

    return Conversion(make, choose=choose)


def conversion(src: DType, dst: DType, mode: Round, saturate: bool) -> Callable[[Lanes], Lanes]:
    """Items of src as items of dst; f32 to f32 rounds to an integral value."""
    if src is F32 and dst is F32:
        return lambda values: round_integral(values, mode)
    return lambda values: lanes.convert(values, src, dst, mode, saturate)


def _over_values(src: DType, dst: DType, change: Callable[[Lanes], Lanes]) -> Callable[..., None]:
    """Convert over dst's valid region; a column of a packed type is an item of two values."""

    def step(core: Machine, source: Tile, target: Tile, tmp: Tile | None = None) -> None:
        rows, cols = target.get_valid()
        if rows == 0 or cols == 0:
            return
        items = -(-cols * dst.values_per_item // src.values_per_item)
        put(target, rows, cols, change(region(source, rows, items))[:, :cols])

    return step


def _pack(case: Case) -> Callable[..., None]:
    src, dst = element(case, "src"), element(case, "dst")
    if src.is_float or dst.is_float or src.is_packed or dst.is_packed:
        raise fail(
            "PTO-T152",
            f"'{case.op.name}' op from {src.name} to {dst.name}: packing is defined for integers"
            " only",
            help="convert with pto.tcvt",
        )
    stored = dst.storage

    def pack(x: Mover, source: Tile, target: Tile) -> None:
        rows, cols = target.get_valid()
        x.within(source, rows, cols)
        x.each(rows, cols, lambda i, j: raw(x.read(source, i, j)).astype(stored), target)

    return pack


PACK = Move(_pack)
