"""Sizes of C++ calls with different tensor, tile and valid sizes, as the C++ headers use them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import prod
from typing import Final

from pto.core.compact import Compact
from pto.core.constants import MX_COL_LEN, MX_ROW_LEN
from pto.core.global_layout import GLOBAL_LAYOUTS, matrix_view
from pto.core.layout import FRACTAL_MX, BLayout
from pto.core.layout import layout as find_layout
from pto.core.pad import pad
from pto.core.tile import Role, TileType
from pto.cxx.packed import values_in
from pto.cxx.records import GLOBAL, Passed, element
from pto.isa.meaning.tile.extract import INSERT, INSERT_SCALED
from pto.isa.row.attributes import Attribute, Bool
from pto.isa.row.instr import Attr, Family, Instr
from pto.isa.row.types import TileBuf, View
from pto.isa.rules.windows import boxes_written
from pto.isa.tile.compare import SELECT
from pto.isa.tile.convert import CONVERT
from pto.isa.tile.expand import BY_ROW
from pto.isa.tile.extract import SCALED_WINDOW, WINDOW
from pto.isa.tile.matmul import GEMV, MATMUL
from pto.isa.tile.move import LOAD, MOVE, STORE
from pto.isa.tile.rearrange import FILLPAD

_BOXES = {"ND": "NZ", "DN": "ZN"}  # layouts of a tensor, and of boxes that it is loaded into
_SCALES = ("MX_A_ND", "MX_A_DN", "MX_B_ND", "MX_B_DN")  # of MX elements, in lines


class Late(Attribute):
    """An attribute with its number among the values of the record, hence part of the site key."""

    def __init__(self, attr: Attr, at: int) -> None:
        self.attr, self.at = attr, at


@dataclass(slots=True)
class BoundCall:
    """A call bound to an instruction: its row, the arguments by operand, and the attributes."""

    row: Instr
    operands: dict[str, list[Passed]]
    attrs: dict[str, Attribute]

    @property
    def late(self) -> tuple[int, ...]:
        """Indices of attribute numbers among the values; they are part of the site key."""
        return tuple(a.at for a in self.attrs.values() if isinstance(a, Late))

    def passed(self, name: str) -> Passed | None:
        """The first argument for an operand, if there is one."""
        return next(iter(self.operands.get(name, ())), None)

    def set(self, name: str, passed: Passed) -> None:
        self.operands[name] = [passed]

    def tile(self, name: str) -> TileType | None:
        """The type of the tile that is passed for an operand."""
        return tile_of(self.passed(name))

    def tiles(self) -> dict[str, TileType]:
        return {name: tile for name in self.operands if (tile := self.tile(name)) is not None}

    def set_tile(self, name: str, tile: TileType) -> None:
        """Let the tile that is passed for an operand have another type."""
        passed = self.passed(name)
        assert passed is not None
        self.set(name, with_tile(passed, tile))


def tile_of(passed: Passed | None) -> TileType | None:
    type = None if passed is None else passed.type
    return type.tile if isinstance(type, TileBuf) else None


def with_tile(passed: Passed, tile: TileType) -> Passed:
    assert isinstance(passed.type, TileBuf)
    return replace(passed, type=replace(passed.type, tile=tile))


def counted(bound: BoundCall, profile: str) -> BoundCall:
    """A call with the sizes that the C++ headers use."""
    if bound.row.family.section == "comm":
        _staged(bound)
    for families, fit in _WAYS:
        if bound.row.family in families:
            fit(bound, profile)
    return bound


def _transferred(bound: BoundCall, profile: str) -> None:
    """Transfers with different sizes of tensor and valid region.

    Headers assert equal sizes only in debug builds. Otherwise the tensor gives the number of lines
    and the valid region their length; on a2a3 the gap between lines is kept, elsewhere their
    distance: decisions_isa.md.
    """
    _paired(bound, profile)
    moved = ((name, bound.passed(name)) for name in bound.operands if name != "fp")
    names = {type(operand.type): name for name, operand in moved if operand is not None}
    tile, view = (bound.passed(names.get(kind, "")) for kind in (TileBuf, View))
    fitted = None if tile is None or view is None else _fitted(tile, view, profile)
    if fitted is not None:
        bound.set(names[TileBuf], fitted[0])
        bound.set(names[View], fitted[1])


def packed(operand: Passed, scaled: str = "") -> Passed:
    """A matmul operand as the matrix unit reads it: the boxes of its valid region are contiguous.

    Along k boxes are contiguous anyway; there an operand with scales (`a` or `b`) is unchanged,
    because it has scales for its whole size.
    """
    tile = tile_of(operand)
    if tile is None or tile.compact is not Compact.NULL or not tile.layout.is_boxed:
        return operand
    rows, cols = tile.valid
    if not rows or not cols:
        return operand
    high, wide = (max(side, 16) for side in tile.layout.box(tile.itemsize))  # k of f32: two boxes
    shape = -(-rows // high) * high, -(-cols // wide) * wide
    if scaled:
        shape = (shape[0], tile.cols) if scaled == "a" else (tile.rows, shape[1])
    if shape == tile.shape:
        return operand
    return with_tile(operand, replace(tile, rows=shape[0], cols=shape[1]))


def _scratched(bound: BoundCall, profile: str) -> None:
    """Scratch tiles as bytes: these headers accept any element type for them."""
    like = bound.passed("src" if "src" in bound.operands else "src0")
    kind = None if like is None else like.type
    if not isinstance(kind, TileBuf):
        return
    for operand in bound.row.operands:
        scratch = bound.passed(operand.name)
        tile_type = bound.tile(operand.name)
        wanted = kind.tile
        if operand.role != "tmp" or scratch is None or tile_type is None:
            continue
        if tile_type.dtype is wanted.dtype or tile_type.layout.name != "ND":
            continue
        lines = [
            n * tile_type.itemsize // wanted.itemsize
            for n in (tile_type.cols, tile_type.valid[1] or 0)
        ]
        tile = replace(
            tile_type, dtype=wanted.dtype, cols=lines[0], valid=(tile_type.valid[0], lines[1])
        )
        bound.set(operand.name, replace(scratch, type=TileBuf(kind.elem, tile)))


def _multiplied(bound: BoundCall, profile: str) -> None:
    """A matmul takes its size from its operands; the valid region of the result is ignored."""
    for name in ("lhs", "rhs", "a", "b") if bound.row.family is MATMUL else ():
        factor = bound.passed(name)
        if factor is not None:
            scaled = name if f"{name}_scale" in bound.operands else ""
            bound.set(name, packed(factor, scaled))
            _scales_of(bound, name, tile_of(factor))
    tiles = bound.tiles()
    left = next((tiles[n] for n in ("lhs", "a") if n in tiles), None)
    right = next((tiles[n] for n in ("rhs", "b") if n in tiles), None)
    if left is None or right is None:
        return
    size = (left.valid[0] or 0, right.valid[1] or 0)
    for name in ("dst", "acc_in", "c_in"):
        tile = tiles.get(name)
        if tile is not None and size[0] <= tile.rows and size[1] <= tile.cols:
            bound.set_tile(name, replace(tile, valid=size))


def _scales_of(bound: BoundCall, name: str, was: TileType | None) -> None:
    """Reduce the scales of an operand to the rows or columns that remain of it."""
    scale, now = bound.tile(f"{name}_scale"), bound.tile(name)
    axis = "rows" if name == "a" else "cols"
    if scale is None or was is None or now is None or getattr(scale, axis) != getattr(was, axis):
        return
    size = getattr(now, axis)
    valid = (size, scale.valid[1]) if name == "a" else (scale.valid[0], size)
    bound.set_tile(f"{name}_scale", replace(scale, valid=valid, **{axis: size}))


def _exchanged(bound: BoundCall, profile: str) -> None:
    """A move into L0 that exchanges rows and columns of one-byte elements: the headers write the
    boxes of the valid region side by side, also without CompactMode (TMovToRight, TExtractToB)."""
    src = bound.passed("src")
    dst = bound.passed("dst")
    tile = bound.tile("dst")
    if profile == "cpu" or src is None or dst is None or tile is None:
        return
    is_operand = tile.role in (Role.LEFT, Role.RIGHT) and tile.itemsize == 1
    if is_operand and src.facts.slayout != dst.facts.slayout:
        bound.set_tile("dst", replace(tile, compact=Compact.NORMAL))


def _exponents(bound: BoundCall, profile: str) -> None:
    """On a5 exponents in one line become a boxed matrix of scales with rows as long as those of
    dst."""
    _turned(bound)
    _exchanged(bound, profile)
    if profile != "a5":
        return
    line, boxes = bound.tile("src"), bound.tile("dst")
    if line is None or boxes is None:
        return
    rows, cols = _valid(boxes)
    flat = line.role is Role.VEC and line.rows == 1 and line.layout.name == "ND"
    if not flat or boxes.layout.name != "ZZ" or boxes.layout.fractal != FRACTAL_MX or rows < 2:
        return
    full_rows = min(
        -(-rows // MX_ROW_LEN) * MX_ROW_LEN, boxes.rows
    )  # the rest of the last box is zero
    bound.set_tile("src", replace(line, rows=full_rows, cols=cols, valid=(full_rows, cols)))
    bound.set_tile("dst", replace(boxes, valid=(full_rows, cols)))


def _paired(bound: BoundCall, profile: str) -> None:
    """Tensors and plain tiles of packed values count single values in C++, bytes here."""
    for name in bound.operands:
        operand, tile = bound.passed(name), bound.tile(name)
        kind = None if operand is None else element(operand.element)
        if operand is None or kind is None or not kind.is_packed:
            continue
        if isinstance(operand.type, View):
            axis = _pairs_along(bound, operand)
            shape = list(operand.type.shape)
            shape[axis] = -(-(shape[axis] or 0) // 2)
            paired = replace(operand.type, shape=tuple(shape))
            bound.set(name, replace(operand, type=paired, paired=axis))
        elif tile is not None and not operand.facts.slayout:
            rows, cols = _valid(tile)
            tall, wide = values_in(kind, tile.layout)
            valid = (-(-rows // tall), -(-cols // wide))
            paired = replace(tile, rows=tile.rows // tall, cols=tile.cols // wide, valid=valid)
            bound.set_tile(name, paired)


def _turned(bound: BoundCall) -> None:
    """Boxes of packed values: two values of a row share a byte in row-major boxes, else two of a
    column. C++ indices count values, here bytes; for one element in UB they are bytes already
    (a5/TExtract.hpp, TExtractVecToVecNZScalarImpl)."""
    src = bound.passed("src")
    dst = bound.passed("dst")
    tile = bound.tile("dst")
    if src is None or dst is None or src.facts is None or dst.facts is None:
        return
    kind = element(src.element)
    if kind is None or not kind.is_packed or not src.facts.slayout or not dst.facts.slayout:
        return
    if tile is not None and tile.role is Role.VEC and tile.valid == (1, 1):
        return
    across = "indexCol" if src.facts.slayout == 1 else "indexRow"
    for name in (across, f"{across}1"):
        operand = bound.passed(name)
        if operand is not None:
            bound.set(name, replace(operand, share=2))
    if src.facts.slayout != dst.facts.slayout and bound.row.attr("turnPairs") is not None:
        bound.attrs["turnPairs"] = Bool(True)


def _pairs_along(bound: BoundCall, view: Passed) -> int:
    """The dimension along which two values share a byte: as in a plain tile, else by layout."""
    for operand, *_ in bound.operands.values():
        if isinstance(operand.type, TileBuf) and not operand.facts.slayout:
            return 3 if operand.facts.blayout else 4
    return 3 if GLOBAL[view.facts.layout] == "DN" else 4


def _padded(bound: BoundCall, profile: str) -> None:
    """A tile without a pad value is padded with zeros."""
    tiles = bound.tiles()
    if "dst" in tiles and tiles["dst"].pad.name == "null":
        for name, tile in tiles.items():
            bound.set_tile(name, replace(tile, pad=pad("zero")))


def _staged(bound: BoundCall) -> None:
    """A staging tile with a dynamic valid region may be smaller at the end of the transfer."""
    for name, tile in bound.tiles().items():
        operand = bound.passed(name)
        if operand is not None and any(operand.facts.more[:2]):
            sizes = zip(_valid(tile), operand.facts.more[:2], strict=True)
            rows, cols = (1 if dynamic and size else size for size, dynamic in sizes)
            bound.set_tile(name, replace(tile, valid=(rows, cols)))


def _valid(tile: TileType) -> tuple[int, int]:
    rows, cols = tile.valid
    return rows or 0, cols or 0


def _fitted(tile: Passed, view: Passed, profile: str) -> tuple[Passed, Passed] | None:
    of, layout = tile_of(tile), GLOBAL[view.facts.layout]
    if of is None or not isinstance(view.type, View):
        return None
    (rows, cols), shape = of.valid, [n or 0 for n in view.type.shape]
    blocks = (Role.ACC, "NC1HWC0"), (Role.VEC, "NZ")
    if (of.role, layout) in blocks and rows and rows < shape[2] * shape[3]:
        shape[2:4] = 1, rows  # as many lines of a block are written as there are valid rows
        return tile, replace(view, type=replace(view.type, shape=tuple(shape)))
    if layout in _SCALES and rows and cols and shape[4] != MX_COL_LEN:
        # the shape is ignored: valid scales are loaded line by line along the strides
        shape, _ = matrix_view(GLOBAL_LAYOUTS[layout], rows, cols, 1)
        return tile, replace(view, type=replace(view.type, shape=shape))
    along, across = (4, 3) if layout == "ND" else (3, 4)  # within a line, between lines
    if layout not in ("ND", "DN") or rows is None or cols is None:
        return None
    lines, length = prod(shape) // max(shape[along], 1), shape[along]
    across_size, width = (rows, cols) if layout == "ND" else (cols, rows)
    if (lines, length) == (across_size, width):
        return None
    if profile != "cpu" and of.role is Role.MAT and _BOXES.get(layout) == of.layout.name:
        return _boxed(tile, of, view, shape, profile)
    if profile == "cpu" and (lines == across_size or across_size <= shape[across]):
        if lines != across_size:
            shape[:3], shape[across] = (1, 1, 1), across_size
        shape[along] = width  # the simulator uses the strides, whatever the line length
        return tile, replace(view, type=replace(view.type, shape=tuple(shape)))
    takes_all = of.role is Role.ACC and layout == "ND" and lines == shape[across]
    if takes_all:  # the fixpipe uses only the valid region
        shape[across], shape[along] = across_size, width
        wider = 0
    elif of.role in (Role.VEC, Role.MAT) and of.layout.name == layout:
        # a2a3 counts gaps between lines, other profiles distances from line to line
        shape[along] = width
        across_size = lines
        wider = width - length if profile == "a2a3" else 0
    else:
        return None
    valid = (across_size, width) if layout == "ND" else (width, across_size)
    resized = replace(of, valid=valid, rows=max(of.rows, valid[0]), cols=max(of.cols, valid[1]))
    if (resized.cols if layout == "ND" else resized.rows) != (
        of.cols if layout == "ND" else of.rows
    ):
        return None  # longer lines than the tile has
    new_view = replace(view, type=replace(view.type, shape=tuple(shape)), widen=(across, wider))
    return with_tile(tile, resized), new_view


def _inserted(bound: BoundCall, profile: str) -> None:
    """A vector tile of boxes into a mat tile that is declared row-major.

    The header of a5 copies strips of src as they are, and takes dst's columns for the rows between
    two strips: dst is written as boxes by columns, whatever its type is (a5/TInsert.hpp,
    TInsertVecToMatImpl).
    """
    _turned(bound)
    _exchanged(bound, profile)
    src, dst = bound.tile("src"), bound.tile("dst")
    if profile != "a5" or bound.row.body is not INSERT or src is None or dst is None:
        return
    by_rows = dst.layout.blayout is BLayout.ROW_MAJOR
    if src.role is Role.VEC and dst.role is Role.MAT and src.layout.name == "NZ" and by_rows:
        layout, size = find_layout("NZ", src.layout.fractal), (dst.cols, dst.rows)
        bound.set_tile("dst", replace(dst, layout=layout, rows=size[0], cols=size[1], valid=size))


def _inserted_whole(bound: BoundCall, profile: str) -> None:
    """An insertion writes whole boxes, also what of them is not valid in src (TInsert.hpp)."""
    src, dst = bound.tile("src"), bound.tile("dst")
    inserts = bound.row.body in (INSERT, INSERT_SCALED)
    if profile == "cpu" or not inserts or src is None or dst is None:
        return
    boxes = boxes_written(src, dst, profile, "mode" in bound.attrs or "tinsertMode" in bound.attrs)
    if 0 not in _valid(src):
        rows, cols = (-(-n // box) * box for n, box in zip(_valid(src), boxes, strict=True))
        bound.set_tile("src", replace(src, valid=(min(rows, src.rows), min(cols, src.cols))))


def _boxed(
    tile: Passed, of: TileType, view: Passed, shape: list[int], profile: str
) -> tuple[Passed, Passed] | None:
    """A load into boxes of L1: the tensor gives the number of lines; their length comes from the
    tensor on a2a3, from the valid region on a5 (tload_common.hpp of memory and register)."""
    along = 4 if GLOBAL[view.facts.layout] == "ND" else 3
    rows, cols = of.valid
    if profile == "a5":
        shape[along] = (cols if along == 4 else rows) or 0
    if shape[3] > of.rows or shape[4] > of.cols or prod(shape[:3]) != 1:
        return None
    if not isinstance(view.type, View):
        return None
    resized = with_tile(tile, replace(of, valid=(shape[3], shape[4])))
    return resized, replace(view, type=replace(view.type, shape=tuple(shape)))


_WAYS: Final[tuple[tuple[tuple[Family, ...], Callable[[BoundCall, str], None]], ...]] = (
    ((LOAD, STORE), _transferred),
    ((SELECT, BY_ROW), _scratched),
    ((MATMUL, GEMV), _multiplied),
    ((FILLPAD,), _padded),
    ((CONVERT,), _paired),
    ((MOVE,), _exponents),
    ((WINDOW,), _inserted),
    ((WINDOW, SCALED_WINDOW), _inserted_whole),
)
