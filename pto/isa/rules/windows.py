"""Rules of windows of tiles: where a window may start, and what is written beside it.

The units of the chips copy boxes and blocks of 32 bytes. The headers divide the start of a window
by the size of a box; they drop the remainder (a shift), or add it to the address, so that the
window wraps inside a box.
"""

from __future__ import annotations

from collections.abc import Sequence

from pto.core.compact import Compact
from pto.core.constants import C0_SIZE_BYTE, CUBE_BLOCK_SIZE, FRACTAL_NZ_ROW
from pto.core.errors import PtoError, fail
from pto.core.layout import FRACTAL_ACC, SLayout
from pto.core.tile import TileType
from pto.isa.rules.rule import LIBRARY, Case, dims, rule, rule_of

_FACTORS = ("left", "right")
_INDICES = ("indexRow", "indexCol")
_ANYWHERE = (1, 1)
Step = tuple[int, int]  # rows and columns: a window starts at multiples of them


@rule_of("PTO-S060", "expects {window} to lie inside {whole}")
def window_inside(
    case: Case,
    window: str,
    whole: str,
    *,
    valid: bool = False,
    at: tuple[str, str] = ("indexRow", "indexCol"),
) -> str | None:
    """`window` must lie inside `whole`: inside the valid region for vec tiles and insertions, else
    inside the whole tile."""
    small, large = case.tile(window), case.tile(whole)
    if small is None or large is None:
        return None
    by_valid = valid or small.role.value == "vec" or case.profile.name == "cpu"
    sizes = small.valid if by_valid or small.compact is not Compact.NULL else small.shape
    for name, size, limit in zip(at, in_source(case, sizes), large.shape, strict=True):
        start = case.number(name)
        if start is None or size is None or 0 <= start <= limit - size:
            continue
        return f"{name} is {start}, {window} takes {size} of the {limit} in {whole}"
    return None


def in_source(case: Case, sizes: tuple[int | None, int | None]) -> tuple[int | None, int | None]:
    """Items of src for `sizes` items of dst: twice as many along the axis of dst's pairs."""
    src, dst = case.tile("src"), case.tile("dst")
    if src is None or dst is None or case.word("turnPairs") != "true" or None in sizes:
        return sizes
    if src.layout.slayout is dst.layout.slayout:
        return sizes
    rows, cols = (n or 0 for n in sizes)
    if dst.layout.slayout is SLayout.COL_MAJOR:
        return 2 * rows, -(-cols // 2)
    return -(-rows // 2), 2 * cols


def window_step(case: Case, whole: str) -> Step:
    """The rows and columns that divide the start of a window of `whole` on this profile."""
    src = case.tile("src")
    dst = case.tile("dst")
    tile = case.tile(whole)
    if src is None or dst is None or tile is None or case.profile.name == "cpu":
        return _ANYWHERE
    path, on_a5 = (src.role.value, dst.role.value), case.profile.name == "a5"
    if path == ("vec", "vec"):
        return _between_vectors(case, tile, on_a5)
    if path[0] == "acc":
        return _of_accumulator(tile)
    if path[0] == "mat":
        return _of_factor(src, dst, on_a5) if path[1] in _FACTORS else _box(tile)
    return _along_boxes(tile) if path == ("vec", "mat") else _ANYWHERE


def _box(tile: TileType) -> Step:
    """A box, or a block of 32 bytes of a tile without boxes."""
    return tile.box if tile.layout.is_boxed else (1, _block(tile))


def _block(tile: TileType) -> int:
    """Elements of a block of 32 bytes."""
    return max(1, C0_SIZE_BYTE // tile.itemsize)


def _of_factor(src: TileType, dst: TileType, on_a5: bool) -> Step:
    """Boxes; of a row without boxes runs of 512 bytes; on a2a3 the squares that are transposed."""
    if not src.layout.is_boxed:
        return 1, max(1, CUBE_BLOCK_SIZE // src.itemsize)
    turned, side = src.layout.slayout is not dst.layout.slayout, _square(src)
    return (side, side) if turned and not on_a5 else src.box


def _square(tile: TileType) -> int:
    """The side of the squares that are transposed: 16 elements, 32 of one byte."""
    return C0_SIZE_BYTE if tile.itemsize == 1 else FRACTAL_NZ_ROW


def _of_accumulator(tile: TileType) -> Step:
    """Any row, since the rows of a column of boxes are contiguous; the first column of a box."""
    if not tile.layout.is_boxed:
        return _ANYWHERE
    return 1, FRACTAL_NZ_ROW if tile.role.value == "acc" else _box_width(tile)


def _box_width(tile: TileType) -> int:
    """Columns of a box that the fixpipe writes: 32 bytes, 64 in boxes of 1024."""
    return _block(tile) * (2 if tile.layout.fractal == FRACTAL_ACC else 1)


def _between_vectors(case: Case, tile: TileType, on_a5: bool) -> Step:
    """a2a3 copies blocks, a5 rows at any column but of boxes and packed elements; a single element
    and a window that becomes boxes are copied by elements."""
    if case.op.operand("dst1") is not None or _by_scalar_unit(case):
        return _ANYWHERE
    if not on_a5:
        return _box(tile)
    in_boxes = tile.layout.name == "NZ" and "mode" not in case.op.attrs
    return (1, _block(tile)) if in_boxes or tile.dtype.is_packed else _ANYWHERE


def _by_scalar_unit(case: Case) -> bool:
    """True if the window is one element, which the scalar unit copies.

    TINSERT of a5 (TInsertVecToVecImpl) has no such way for boxes.
    """
    extracts = case.op.name == "pto.textract"
    window = case.tile("dst" if extracts else "src")
    boxed = window is not None and window.layout.is_boxed
    fits = extracts or case.profile.name != "a5" or not boxed
    return fits and window is not None and window.valid == (1, 1)


def _along_boxes(tile: TileType) -> Step:
    """Blocks of 32 bytes, which lie along the rows (NZ) or the columns (ZN) of the tile."""
    turned = tile.layout.slayout is SLayout.COL_MAJOR
    return (_block(tile), 1) if turned else (1, _block(tile))


@rule_of("PTO-S061", "expects the window to start at a box or block of {whole}")
def window_aligned(case: Case, whole: str) -> str | None:
    """A window starts at a box, or at a 32-byte block of a tile without boxes."""
    tile, at = case.tile(whole), [case.number(name) for name in _INDICES]
    if _cuts_rows(case):
        at[0] = None
    return None if tile is None else _unaligned(at, window_step(case, whole), tile)


@rule(
    LIBRARY,
    "expects the window to start at a row of boxes, to which the library cuts indexRow",
    id="rows-of-boxes",
    severity="warning",
)
def starts_at_boxes(case: Case, src: TileType) -> str | None:
    """PTOAS accepts such programs for a5; a run refuses them (decisions_isa.md, Windows inside a
    box)."""
    at = (case.number("indexRow"), None)
    return _unaligned(at, window_step(case, "src"), src) if _cuts_rows(case) else None


def _cuts_rows(case: Case) -> bool:
    """True for factors of a5: two programs of PTOAS start at row 4 of a box of 16."""
    is_factor = case.role("src") == "mat" and case.role("dst") in _FACTORS
    return is_factor and case.profile.name == "a5"


def _unaligned(at: Sequence[int | None], step: Step, tile: TileType) -> str | None:
    """A text that names the index which is not a multiple of its step."""
    for name, start, multiple in zip(_INDICES, at, step, strict=True):
        if start is not None and start % multiple:
            return f"{name} is {start}, not a multiple of {multiple} ({tile})"
    return None


def inside_a_box(name: str, at: Sequence[int], step: Step, tile: TileType) -> PtoError:
    """The error for a window with a start computed at run time."""
    sentence = f"'{name}' op expects the window to start at a box or block"
    return fail("PTO-S061", f"{sentence}: {_unaligned(at, step, tile)}")


@rule("PTO-S061", "expects tiles of whole squares where their boxes are turned", id="turned")
def turned_squares(case: Case, src: TileType, dst: TileType) -> str | None:
    """The units transpose squares of 16, of 32 for bytes.

    A compact dst has the size of its valid region in whole boxes, on a5 src as well.
    """
    if (src.role.value, dst.role.value) not in [("mat", name) for name in _FACTORS]:
        return None
    if not src.layout.is_boxed or src.layout.slayout is dst.layout.slayout:
        return None
    on_a5, is_compact = case.profile.name == "a5", dst.compact is not Compact.NULL
    if on_a5 and is_compact:
        return None
    side = _square(src)
    for name, tile in (("src", src), ("dst", dst))[: 1 if is_compact else 2]:
        if any(extent % side for extent in tile.shape):
            return f"{name} is {dims(*tile.shape)}, not of squares of {side}"
    return None


@rule("PTO-S061", "expects a row without boxes of whole 512 bytes on the way to left", id="row")
def whole_fractals(src: TileType, dst: TileType) -> str | None:
    """A row for tgemv is copied in runs of 512 bytes."""
    if src.role.value != "mat" or dst.role.value != "left" or src.layout.is_boxed:
        return None
    for name, tile in (("src", src), ("dst", dst)):
        if tile.cols * tile.itemsize % CUBE_BLOCK_SIZE:
            return f"{name} has {tile.cols * tile.itemsize} bytes"
    return None


_KEEPS = "expects to write nothing of dst beside the window"


@rule("PTO-S085", _KEEPS)
def window_alone(case: Case, src: TileType, dst: TileType) -> str | None:
    """The units write boxes and blocks of 32 bytes, also what of them is not valid in src."""
    at = tuple(case.number(name) for name in _INDICES)
    return _beside(at, src.valid, written_boxes(case), dst.valid)


Extents = Sequence[int | None]


def _beside(at: Extents, size: Extents, boxes: Step, region: Extents) -> str | None:
    """A text that names the rows or columns of dst's valid region that are written beside the
    window."""
    for unit, start, extent, box, limit in zip(
        ("rows", "columns"), at, size, boxes, region, strict=True
    ):
        if start is None or extent is None or limit is None or extent % box == 0:
            continue
        last = min(limit, start + extent + -extent % box)
        if start + extent < last:
            return (
                f"{unit} {start + extent} to {last - 1} of dst, since {box} are written at a time"
            )
    return None


def beside_the_window(name: str, at: Step, size: Step, boxes: Step, region: Step) -> PtoError:
    """The error for a window with a start or size computed at run time."""
    return fail("PTO-S085", f"'{name}' op {_KEEPS}: {_beside(at, size, boxes, region)}")


_SPLIT = ("SPLIT2", "SPLIT4")


def written_boxes(case: Case) -> Step:
    """The rows and columns that TINSERT writes at a time."""
    src, dst = case.tile("src"), case.tile("dst")
    if src is None or dst is None or case.profile.name == "cpu":
        return _ANYWHERE
    in_bursts = case.word("mode") in _SPLIT or case.word("tinsertMode") is not None
    return boxes_written(src, dst, case.profile.name, in_bursts)


def boxes_written(src: TileType, dst: TileType, profile: str, in_bursts: bool) -> Step:
    """The rows and columns of `dst` that TINSERT of a2a3 or a5 writes at a time."""
    if not dst.layout.is_boxed:
        return _ANYWHERE
    if src.role.value == "acc":  # the headers take Rows of src for its valid rows
        return src.rows, _box_width(dst)
    if src.role.value != "vec" or src.layout.slayout is not dst.layout.slayout or profile != "a5":
        return _ANYWHERE
    rows, cols = _along_boxes(dst)
    return (FRACTAL_NZ_ROW, cols) if in_bursts else (rows, cols)
