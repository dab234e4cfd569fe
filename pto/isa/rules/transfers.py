"""Rules of TLOAD and TSTORE that only the headers of the chips have: sizes of views and of bursts.

The headers take some sizes from the tile and some from the view, count in blocks of 32 bytes, and
put counts into fields of 12 or 16 bits. They assert what follows from that, in debug builds alone
where sizes are known in a run only. A run follows the sentence of the instruction.
"""

from __future__ import annotations

from math import prod

from pto.core.constants import C0_SIZE_BYTE, FRACTAL_NZ_ROW
from pto.core.layout import FRACTAL_MX
from pto.core.tile import TileType
from pto.isa.row import types as t
from pto.isa.rules.global_memory import layout_of, line_axis, shape_text
from pto.isa.rules.rule import LIBRARY, Case, dims, rule_of

_BURSTS = 4095  # of a transfer of a2a3, in 12 bits
_STRIDE = 65535  # elements between rows that a2a3 loads into boxes, in 16 bits
_NZ_AXES = 5
Sizes = tuple[int | None, ...]


@rule_of(
    LIBRARY,
    "expects {view} to have the rows and columns of the valid region of {tile}",
    id="whole-view",
    severity="warning",
)
def whole_view(case: Case, tile: str, view: str) -> str | None:
    """TLOAD and TSTORE move as many lines as the view has, as long as the tile's valid ones."""
    local, view_type = case.tile(tile), case.type(view)
    if (
        local is None
        or not isinstance(view_type, t.View)
        or None in (*local.valid, *view_type.shape)
    ):
        return None
    if (local.layout.is_boxed and local.layout.fractal == FRACTAL_MX) or 0 in local.valid:
        return None
    shape = tuple(size or 0 for size in view_type.shape)
    valid = prod(n or 0 for n in local.valid)
    if prod(shape) < valid or (view == "dst" and prod(shape) != valid):  # another finding
        return None
    expected = _region(local, shape, layout_of(case, view))
    is_line = 1 in local.shape and prod(expected) == valid
    if is_line or local.valid == expected:
        return None
    return f"{view} is {shape_text(shape)}, the valid region of {tile} {dims(*local.valid)}"


def _region(tile: TileType, shape: tuple[int, ...], layout: str | None) -> tuple[int, int]:
    """The rows and columns that a view has for a tile of this layout."""
    shape = (1, 1, *shape)
    if layout == "nz":
        return prod(shape[-3:-1]), prod(shape[:-3]) * shape[-1]
    if line_axis(tile.layout) == -1:
        return prod(shape[:-1]), shape[-1]
    return shape[-2], prod(shape[:-2]) * shape[-1]


@rule_of(LIBRARY, "expects at most {most} lines in {view}", id="bursts", severity="warning")
def bursts(case: Case, tile: str, view: str, most: int = _BURSTS) -> str | None:
    """Each line is a burst, and 12 bits count them; a load asserts it of the rows of an ND tile."""
    local, view_type = case.tile(tile), case.type(view)
    if local is None or not isinstance(view_type, t.View) or len(view_type.shape) < 2:
        return None
    if local.layout.is_boxed or 1 in local.shape:
        return None
    by_row = line_axis(local.layout) == -1
    lines = view_type.shape[-2 if by_row else -1]
    if lines is not None and lines > most:
        return f"it has {lines}"
    is_load = local.role.value == "vec" and by_row and view == "src"
    return f"{tile} has {local.rows} rows" if is_load and local.rows > most else None


@rule_of(
    LIBRARY,
    "expects rows of {view} at most {most} elements apart",
    id="apart-in-memory",
    severity="warning",
)
def rows_apart(case: Case, tile: str, view: str, most: int = _STRIDE) -> str | None:
    """The distance of lines that are loaded into boxes has 16 bits."""
    local, maker = case.tile(tile), case.maker(view, "pto.partition_view")
    if local is None or local.role.value != "mat" or not local.layout.is_boxed:
        return None
    if maker is None or maker.name != "pto.make_tensor_view" or layout_of(case, view) == "nz":
        return None
    strides = maker.group("strides")
    axis = -3 - line_axis(local.layout)
    stride = case.constant(strides[axis]) if len(strides) > 1 else None
    return f"they are {stride} apart" if stride is not None and stride > most else None


@rule_of(
    LIBRARY,
    "expects lines of {tile} in L1 of whole blocks of 32 bytes",
    id="line-blocks",
    severity="warning",
)
def whole_blocks(case: Case, tile: str) -> str | None:
    """Lengths and gaps of lines to and from L1 are counted in blocks."""
    local = case.tile(tile)
    if local is None or local.role.value != "mat" or local.layout.is_boxed:
        return None
    length = local.valid[line_axis(local.layout)]
    fits = length is None or length * local.itemsize % C0_SIZE_BYTE == 0
    return None if fits else f"they have {length} elements of {local.itemsize} bytes"


@rule_of(
    LIBRARY,
    "expects {view} in boxes where {tile} in UB is",
    id="boxes-in-memory",
    severity="warning",
)
def boxes_in_memory(case: Case, tile: str, view: str) -> str | None:
    """UB and accumulators take boxes from memory as they lie there: [.., 16, 32 bytes]."""
    local, view_type = case.tile(tile), case.type(view)
    if local is None or not isinstance(view_type, t.View):
        return None
    stated = layout_of(case, view)
    in_ub = stated is None and local.role.value == "vec" and local.layout.name == "NZ"
    if (stated != "nz" and not in_ub) or local.layout.fractal == FRACTAL_MX:
        return None
    width = C0_SIZE_BYTE // local.itemsize
    widths = (width, FRACTAL_NZ_ROW) if local.role.value == "acc" else (width,)
    box = view_type.shape[-2:]
    fits = len(view_type.shape) == _NZ_AXES and (
        None in box or (box[0] == FRACTAL_NZ_ROW and box[1] in widths)
    )
    return None if fits else f"{view} is {shape_text(view_type.shape)}"


@rule_of(LIBRARY, "expects no boxes of elements of 8 bytes", id="wide-boxes", severity="warning")
def no_wide_boxes(case: Case, tile: str, roles: str) -> str | None:
    """TLOAD and TSTORE assert ND and DN for them."""
    local = case.tile(tile)
    if local is None or local.role.value not in roles.split() or not local.layout.is_boxed:
        return None
    return f"{tile} is {local.dtype.name}" if local.itemsize == 8 else None
