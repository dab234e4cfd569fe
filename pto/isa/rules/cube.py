"""Rules of the matrix unit and the fixpipe: where accumulators, scales and tables of them lie.

The units take the address of one operand and find the others by it, or count addresses in units of
a table. A violation is a warning (PTO-L066): text compilers accept these programs, and
a run executes them as they are written.
"""

from __future__ import annotations

from pto.core.compact import Compact
from pto.core.layout import FRACTAL_MX
from pto.core.tile import TileType
from pto.isa.meaning.cube.factors import SCALE_SHIFT
from pto.isa.rules.rule import LIBRARY, Case, dims, rule, rule_of
from pto.isa.rules.tile import place_of

TABLE_UNIT = 128  # bytes: SetFPC passes the address of a table of scales without its last 7 bits


@rule_of(
    LIBRARY,
    "expects {name} to be dst: the unit adds to dst alone",
    id="added-in-place",
    severity="warning",
)
def added_in_place(case: Case, name: str) -> str | None:
    """TMATMUL_ACC, TGEMV_ACC and TMATMUL_MX pass the address of dst and never that of acc_in."""
    before, after = place_of(case, name), place_of(case, "dst")
    if before is None or after is None or before == after:
        return None
    return f"{name} is {_shown(before)}, dst is {_shown(after)}"


def _shown(position: tuple[str, int]) -> str:
    return (
        f"at {position[1]}"
        if not position[0]
        else f"%{position[0]}" + f" + {position[1]}" * (position[1] > 0)
    )


@rule_of(LIBRARY, "expects {lhs} to have boxes of 16 rows", id="rows-in-boxes", severity="warning")
def rows_in_boxes(case: Case, lhs: str) -> str | None:
    """TMATMUL reads boxes, also of one valid row; a tile of one row is filled without boxes."""
    tile = case.tile(lhs)
    return "it has one row, which tgemv multiplies" if tile is not None and tile.rows == 1 else None


@rule_of(
    "PTO-L067",
    "expects {names} with compact=normal where whole boxes are not valid",
    id="boxes-adjoin",
    severity="warning",
)
def boxes_adjoin(case: Case, *names: str) -> str | None:
    """The unit gets the valid sizes alone: it takes boxes that follow each other without the rest
    of the tile, and only moves of compact tiles place them so."""
    for name, tile in case.tiles(names):
        axis = _pitch_axis(case, tile)
        box, valid = tile.box[axis], tile.valid[axis]
        if tile.compact is not Compact.NULL or not valid or tile.rows == 1:
            continue
        if -(-valid // box) < tile.shape[axis] // box:
            return f"{name} is {dims(*tile.shape)}, of which {dims(*tile.valid)} are valid"
    return None


def _pitch_axis(case: Case, tile: TileType) -> int:
    """The axis along which boxes follow each other: of left tiles rows on a5, columns on a2a3."""
    by_columns = tile.role.value == "left" and case.profile.name == "a2a3"
    return 1 if tile.role.value == "right" or by_columns else 0


@rule_of(LIBRARY, "expects {lhs} to have one row", id="row-without-boxes", severity="warning")
def row_without_boxes(case: Case, lhs: str) -> str | None:
    """TGEMV reads k elements that follow each other, which boxes of 16 rows do not hold."""
    tile = case.tile(lhs)
    if tile is None or tile.rows == 1 or tile.valid[0] not in (None, 1):  # more: another finding
        return None
    return f"it is {dims(*tile.shape)}, of which tmatmul takes one"


@rule_of(
    LIBRARY,
    "expects {scale} at 1/16 of the address of {operand}, where the unit takes it",
    id="scales-at-{operand}",
    severity="warning",
)
def scales_found(case: Case, scale: str, operand: str) -> str | None:
    """mad_mx gets no address of scales."""
    scales, factor = place_of(case, scale), place_of(case, operand)
    if scales is None or factor is None or scales[0] or factor[0]:
        return None
    wanted = factor[1] >> SCALE_SHIFT
    return None if scales[1] == wanted else f"{scale} is at {scales[1]}, {operand} at {factor[1]}"


@rule_of(
    LIBRARY,
    "expects {name} at a multiple of {unit} bytes",
    id="table-at-{unit}",
    severity="warning",
)
def table_at(case: Case, name: str, unit: int = TABLE_UNIT) -> str | None:
    """The unit reads a table from the multiple below: other scales."""
    position = place_of(case, name)
    if position is None or position[0] or position[1] % unit == 0 or case.role(name) != "scaling":
        return None
    return f"it is at {position[1]}"


@rule("PTO-S065", "expects a scaling dst to be one row of a multiple of 128 bytes")
def table_row(dst: TileType) -> str | None:
    """A table of scales has one row of whole units of 128 bytes: pto-isa TMov.hpp."""
    if dst.layout.is_boxed or dst.itemsize != 8:  # scales of MX products; forms of PTOAS for a5
        return None
    fits = dst.rows == 1 and dst.cols * dst.itemsize % TABLE_UNIT == 0
    return None if fits else f"it is {dims(*dst.shape)} of {dst.dtype.name}"


@rule(
    LIBRARY,
    "expects no conversion and no DN on the way to both vector sub-blocks",
    severity="warning",
)
def unchanged_for_both(case: Case, accToVecMode: str, src: TileType, dst: TileType) -> str | None:
    """GetDualDstCtl of a5/common.hpp asserts NoQuant, and a layout other than DN."""
    if not accToVecMode.startswith("dual"):
        return None
    scaled = case.op.group("fp") or case.op.group("preQuantScalar")  # another finding
    if src.dtype is not dst.dtype and not scaled:
        return f"src is {src.dtype.name}, dst is {dst.dtype.name}"
    return "dst is DN" if dst.layout.name == "DN" else None


@rule(
    LIBRARY,
    "expects an even number of groups, which are loaded in pairs",
    id="pairs-of-groups",
    severity="warning",
)
def pairs_of_groups(dst: TileType) -> str | None:
    """TLOAD of a5 loads half as many pairs as there are valid groups, and asserts shape 2."""
    if not dst.layout.is_boxed or dst.layout.fractal != FRACTAL_MX:
        return None
    groups = dst.valid[1 if dst.layout.name == "ZZ" else 0]
    return None if groups is None or groups % 2 == 0 else f"dst has {groups}"


@rule(LIBRARY, "expects k in a multiple of 64 values", id="mx-depth", severity="warning")
def whole_pairs_of_groups(a: TileType) -> str | None:
    """TMatmulMX asserts it of the columns of the left tile, which count values."""
    values = a.cols * a.dtype.values_per_item
    return None if values % 64 == 0 else f"a has {values} columns"
