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
from pto.cxx.records import GLOBAL, Passed, element
from pto.isa.meaning.tile.extract import INSERT
from pto.isa.row.attributes import Attribute, Bool
from pto.isa.row.instr import Attr, Family, Instr
from pto.isa.row.types import TileBuf, View
from pto.isa.tile.compare import SELECT
from pto.isa.tile.convert import CONVERT
from pto.isa.tile.expand import BY_ROW
from pto.isa.tile.extract import WINDOW
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
    operands: dict[str, list[tuple[Passed | None, int]]]  # None: a constant
    attrs: dict[str, Attribute]

    @property
    def late(self) -> tuple[int, ...]:
        """Indices of attribute numbers among the values; they are part of the site key."""
        return tuple(a.at for a in self.attrs.values() if isinstance(a, Late))


def counted(bound: BoundCall, profile: str) -> BoundCall:
    """A call with the sizes that the C++ headers use."""
    if bound.row.family.section == "comm":
        return _staged(bound)
    ways = (way for families, way in _WAYS if bound.row.family in families)
    return next(ways, _as_it_is)(bound, profile)


def _as_it_is(bound: BoundCall, profile: str) -> BoundCall:
    return bound


def _transferred(bound: BoundCall, profile: str) -> BoundCall:
    """Transfers with different sizes of tensor and valid region.

    Headers assert equal sizes only in debug builds. Otherwise the tensor gives the number of lines
    and the valid region their length; on a2a3 the gap between lines is kept, elsewhere their
    distance: decisions_isa.md.
    """
    bound = _paired(bound, profile)
    moved = [(name, v[0][0]) for name, v in bound.operands.items() if name != "fp"]
    names = {type(each.type): name for name, each in moved if each is not None}
    if TileBuf not in names or View not in names:
        return bound
    tile, view = (bound.operands[names[kind]][0][0] for kind in (TileBuf, View))
    fitted = None if tile is None or view is None else _fitted(tile, view, profile)
    if fitted is not None:
        bound.operands[names[TileBuf]] = [(fitted[0], 0)]
        bound.operands[names[View]] = [(fitted[1], 0)]
    return bound


def packed(operand: Passed, scaled: str = "") -> Passed:
    """A matmul operand as the matrix unit reads it: the boxes of its valid region are contiguous.

    Along k boxes are contiguous anyway; there an operand with scales (`a` or `b`) is unchanged,
    because it has scales for its whole size.
    """
    if not isinstance(operand.type, TileBuf) or operand.type.tile.compact is not Compact.NULL:
        return operand
    own, (rows, cols) = operand.type.tile, _valid(operand)
    if not own.layout.is_boxed or not rows or not cols:
        return operand
    high, wide = (max(side, 16) for side in own.layout.box(own.itemsize))  # k of f32: two boxes
    shape = -(-rows // high) * high, -(-cols // wide) * wide
    if scaled:
        shape = (shape[0], own.cols) if scaled == "a" else (own.rows, shape[1])
    if shape == own.shape:
        return operand
    tile = replace(own, rows=shape[0], cols=shape[1])
    return replace(operand, type=replace(operand.type, tile=tile))


def _scratched(bound: BoundCall, profile: str) -> BoundCall:
    """Scratch tiles as bytes: these headers accept any element type for them."""
    like = bound.operands.get("src") or bound.operands.get("src0") or [(None, 0)]
    kind = like[0][0] and like[0][0].type
    for operand in bound.row.operands:
        given = bound.operands.get(operand.name, [(None, 0)])[0][0]
        if operand.role != "tmp" or given is None or not isinstance(given.type, TileBuf):
            continue
        own, wanted = given.type.tile, kind.tile if isinstance(kind, TileBuf) else None
        if wanted is None or own.dtype is wanted.dtype or own.layout.name != "ND":
            continue
        lines = [n * own.itemsize // wanted.itemsize for n in (own.cols, own.valid[1] or 0)]
        tile = replace(own, dtype=wanted.dtype, cols=lines[0], valid=(own.valid[0], lines[1]))
        type = TileBuf(kind.elem, tile) if isinstance(kind, TileBuf) else given.type
        bound.operands[operand.name] = [(replace(given, type=type), 0)]
    return bound


def _multiplied(bound: BoundCall, profile: str) -> BoundCall:
    """A matmul takes its size from its operands; the valid region of the result is ignored."""
    for name in ("lhs", "rhs", "a", "b") if bound.row.family is MATMUL else ():
        factor = bound.operands.get(name, [(None, 0)])[0][0]
        if factor is not None:
            scaled = name if f"{name}_scale" in bound.operands else ""
            bound.operands[name] = [(packed(factor, scaled), 0)]
            _scales_of(bound, name, factor)
    tiles = {
        name: given[0][0]
        for name, given in bound.operands.items()
        if given[0][0] is not None and isinstance(given[0][0].type, TileBuf)
    }
    left = next((tiles[n] for n in ("lhs", "a") if n in tiles), None)
    right = next((tiles[n] for n in ("rhs", "b") if n in tiles), None)
    if left is None or right is None:
        return bound
    size = (_valid(left)[0], _valid(right)[1])
    for name in ("dst", "acc_in", "c_in"):
        each = tiles.get(name)
        if each is not None and _valid(each) != size and isinstance(each.type, TileBuf):
            own = each.type.tile
            if size[0] <= own.rows and size[1] <= own.cols:
                type = replace(each.type, tile=replace(own, valid=size))
                bound.operands[name] = [(replace(each, type=type), 0)]
    return bound


def _scales_of(bound: BoundCall, name: str, factor: Passed) -> None:
    """Reduce the scales of an operand to the rows or columns that remain of it."""
    scales = bound.operands.get(f"{name}_scale", [(None, 0)])[0][0]
    left = bound.operands[name][0][0]
    if scales is None or left is None or not isinstance(scales.type, TileBuf):
        return
    if not isinstance(factor.type, TileBuf) or not isinstance(left.type, TileBuf):
        return
    own, was, now = scales.type.tile, factor.type.tile, left.type.tile
    axis = "rows" if name == "a" else "cols"
    if getattr(own, axis) != getattr(was, axis):
        return
    size = getattr(now, axis)
    valid = (size, own.valid[1]) if name == "a" else (own.valid[0], size)
    tile = replace(own, valid=valid, **{axis: size})
    bound.operands[f"{name}_scale"] = [(replace(scales, type=replace(scales.type, tile=tile)), 0)]


def _exchanged(bound: BoundCall, profile: str) -> None:
    """A move into L0 that exchanges rows and columns of one-byte elements: the headers write the
    boxes of the valid region side by side, also without CompactMode (TMovToRight, TExtractToB)."""
    src, dst = (bound.operands.get(name, [(None, 0)])[0][0] for name in ("src", "dst"))
    if profile == "cpu" or src is None or dst is None or not isinstance(dst.type, TileBuf):
        return
    own = dst.type.tile
    is_operand = own.role in (Role.LEFT, Role.RIGHT) and own.itemsize == 1
    if is_operand and src.facts.slayout != dst.facts.slayout:
        type = replace(dst.type, tile=replace(own, compact=Compact.NORMAL))
        bound.operands["dst"] = [(replace(dst, type=type), 0)]


def _exponents(bound: BoundCall, profile: str) -> BoundCall:
    """On a5 exponents in one line become a boxed matrix of scales with rows as long as those of
    dst."""
    bound = _turned(bound)
    _exchanged(bound, profile)
    if profile != "a5":
        return bound
    src, dst = (bound.operands[name][0][0] for name in ("src", "dst"))
    if src is None or dst is None:
        return bound
    if not isinstance(src.type, TileBuf) or not isinstance(dst.type, TileBuf):
        return bound
    line, boxes, (rows, cols) = src.type.tile, dst.type.tile, _valid(dst)
    flat = line.role is Role.VEC and line.rows == 1 and line.layout.name == "ND"
    if not flat or boxes.layout.name != "ZZ" or boxes.layout.fractal != FRACTAL_MX or rows < 2:
        return bound
    whole = min(-(-rows // MX_ROW_LEN) * MX_ROW_LEN, boxes.rows)  # the rest of the last box is zero
    for name, given, tile in (
        ("src", src, replace(line, rows=whole, cols=cols, valid=(whole, cols))),
        ("dst", dst, replace(boxes, valid=(whole, cols))),
    ):
        assert isinstance(given.type, TileBuf)
        bound.operands[name] = [(replace(given, type=replace(given.type, tile=tile)), 0)]
    return bound


def _paired(bound: BoundCall, profile: str) -> BoundCall:
    """Tensors and plain tiles of packed values count single values in C++, bytes here."""
    for name, ((each, _), *_) in bound.operands.items():
        kind = None if each is None else element(each.element)
        if each is None or kind is None or not kind.is_packed:
            continue
        if isinstance(each.type, View):
            axis = _pairs_along(bound, each)
            shape = list(each.type.shape)
            shape[axis] = -(-(shape[axis] or 0) // 2)
            made = replace(each, type=replace(each.type, shape=tuple(shape)), paired=axis)
            bound.operands[name] = [(made, 0)]
        elif isinstance(each.type, TileBuf) and not each.facts.slayout:
            own, (rows, cols) = each.type.tile, _valid(each)
            if each.facts.blayout:
                tile = replace(own, rows=own.rows // 2, valid=(-(-rows // 2), cols))
            else:
                tile = replace(own, cols=own.cols // 2, valid=(rows, -(-cols // 2)))
            bound.operands[name] = [(replace(each, type=replace(each.type, tile=tile)), 0)]
    return bound


def _turned(bound: BoundCall) -> BoundCall:
    """Boxes of packed values: two values of a row share a byte in row-major boxes, else two of a
    column. C++ indices count values, here bytes; for one element in UB they are bytes already
    (a5/TExtract.hpp, TExtractVecToVecNZScalarImpl)."""
    src, dst = (bound.operands.get(name, [(None, 0)])[0][0] for name in ("src", "dst"))
    if src is None or dst is None or src.facts is None or dst.facts is None:
        return bound
    kind = element(src.element)
    if kind is None or not kind.is_packed or not src.facts.slayout or not dst.facts.slayout:
        return bound
    if isinstance(dst.type, TileBuf) and dst.type.tile.role is Role.VEC and _valid(dst) == (1, 1):
        return bound
    across = "indexCol" if src.facts.slayout == 1 else "indexRow"
    for name in (across, f"{across}1"):
        each, number = bound.operands.get(name, [(None, 0)])[0]
        if each is not None:
            bound.operands[name] = [(replace(each, share=2), number)]
    if src.facts.slayout != dst.facts.slayout and bound.row.attr("turnPairs") is not None:
        bound.attrs["turnPairs"] = Bool(True)
    return bound


def _pairs_along(bound: BoundCall, view: Passed) -> int:
    """The dimension along which two values share a byte: as in a plain tile, else by layout."""
    for (each, _), *_ in bound.operands.values():
        if each is not None and isinstance(each.type, TileBuf) and not each.facts.slayout:
            return 3 if each.facts.blayout else 4
    return 3 if GLOBAL[view.facts.layout] == "DN" else 4


def _padded(bound: BoundCall, profile: str) -> BoundCall:
    """A tile without a pad value is padded with zeros."""
    given = bound.operands["dst"][0][0]
    if given is None or not isinstance(given.type, TileBuf) or given.type.tile.pad.name != "null":
        return bound
    for name, ((each, _), *_) in bound.operands.items():
        if each is not None and isinstance(each.type, TileBuf):
            type = replace(each.type, tile=replace(each.type.tile, pad=pad("zero")))
            bound.operands[name] = [(replace(each, type=type), 0)]
    return bound


def _staged(bound: BoundCall) -> BoundCall:
    """A staging tile with a dynamic valid region may be smaller at the end of the transfer."""
    for name, given in bound.operands.items():
        each = given[0][0]
        if each is not None and isinstance(each.type, TileBuf) and any(each.facts.more[:2]):
            sizes = zip(_valid(each), each.facts.more[:2], strict=True)
            valid = tuple(1 if dynamic and size else size for size, dynamic in sizes)
            tile = replace(each.type.tile, valid=valid)
            bound.operands[name] = [(replace(each, type=replace(each.type, tile=tile)), 0)]
    return bound


def _valid(operand: Passed) -> tuple[int, int]:
    rows, cols = operand.type.tile.valid if isinstance(operand.type, TileBuf) else (0, 0)
    return rows or 0, cols or 0


def _fitted(tile: Passed, view: Passed, profile: str) -> tuple[Passed, Passed] | None:
    if not isinstance(tile.type, TileBuf) or not isinstance(view.type, View):
        return None
    of, layout = tile.type.tile, GLOBAL[view.facts.layout]
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
    own, width = (rows, cols) if layout == "ND" else (cols, rows)
    if (lines, length) == (own, width):
        return None
    if profile != "cpu" and of.role is Role.MAT and _BOXES.get(layout) == of.layout.name:
        return _boxed(tile, of, view, shape, profile)
    if profile == "cpu" and (lines == own or own <= shape[across]):
        if lines != own:
            shape[:3], shape[across] = (1, 1, 1), own
        shape[along] = width  # the simulator uses the strides, whatever the line length
        return tile, replace(view, type=replace(view.type, shape=tuple(shape)))
    whole = of.role is Role.ACC and layout == "ND" and lines == shape[across]
    if whole:  # the fixpipe uses only the valid region
        shape[across], shape[along] = own, width
        wider = 0
    elif of.role in (Role.VEC, Role.MAT) and of.layout.name == layout:
        # a2a3 counts gaps between lines, other profiles distances from line to line
        shape[along], own, wider = width, lines, width - length if profile == "a2a3" else 0
    else:
        return None
    valid = (own, width) if layout == "ND" else (width, own)
    seen = replace(of, valid=valid, rows=max(of.rows, valid[0]), cols=max(of.cols, valid[1]))
    if (seen.cols if layout == "ND" else seen.rows) != (of.cols if layout == "ND" else of.rows):
        return None  # longer lines than the tile has
    new_tile = replace(tile, type=replace(tile.type, tile=seen))
    new_view = replace(view, type=replace(view.type, shape=tuple(shape)), widen=(across, wider))
    return new_tile, new_view


def _inserted(bound: BoundCall, profile: str) -> BoundCall:
    """A vector tile of boxes into a mat tile that is declared row-major.

    The header of a5 copies strips of src as they are, and takes dst's columns for the rows between
    two strips: dst is written as boxes by columns, whatever its type says (a5/TInsert.hpp,
    TInsertVecToMatImpl).
    """
    bound = _turned(bound)
    _exchanged(bound, profile)
    src, dst = (bound.operands.get(name, [(None, 0)])[0][0] for name in ("src", "dst"))
    kinds = [each.type if each is not None else None for each in (src, dst)]
    if (
        profile != "a5"
        or bound.row.body is not INSERT
        or dst is None
        or not all(isinstance(k, TileBuf) for k in kinds)
    ):
        return bound
    source, target = (k.tile for k in kinds if isinstance(k, TileBuf))
    by_rows = target.layout.blayout is BLayout.ROW_MAJOR
    if (
        source.role is Role.VEC
        and target.role is Role.MAT
        and source.layout.name == "NZ"
        and by_rows
    ):
        tile = replace(
            target,
            layout=find_layout("NZ", source.layout.fractal),
            rows=target.cols,
            cols=target.rows,
            valid=(target.cols, target.rows),
        )
        type = replace(dst.type, tile=tile) if isinstance(dst.type, TileBuf) else dst.type
        bound.operands["dst"] = [(replace(dst, type=type), 0)]
    return bound


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
    if not isinstance(tile.type, TileBuf) or not isinstance(view.type, View):
        return None
    seen = replace(of, valid=(shape[3], shape[4]))
    made = replace(tile, type=replace(tile.type, tile=seen))
    return made, replace(view, type=replace(view.type, shape=tuple(shape)))


_WAYS: Final[tuple[tuple[tuple[Family, ...], Callable[[BoundCall, str], BoundCall]], ...]] = (
    ((LOAD, STORE), _transferred),
    ((SELECT, BY_ROW), _scratched),
    ((MATMUL, GEMV), _multiplied),
    ((FILLPAD,), _padded),
    ((CONVERT,), _paired),
    ((MOVE,), _exponents),
    ((WINDOW,), _inserted),
)
