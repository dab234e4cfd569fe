"""Convolution tiles: a C++ type with an order and sizes becomes attributes of the instruction."""

from __future__ import annotations

from dataclasses import replace
from math import prod
from typing import Any

from pto.core.constants import C0_SIZE_BYTE
from pto.core.dtypes import dtype
from pto.core.errors import fail
from pto.core.layout import layout as find_layout
from pto.core.tile import TileType
from pto.cxx.records import GLOBAL, Conv, Passed
from pto.cxx.sizes import BoundCall, packed
from pto.ir.builder import scalar_type
from pto.isa.meaning.tile.convolution import ORDERS
from pto.isa.row.attributes import Attribute, Int, Str
from pto.isa.row.types import TileBuf, View
from pto.isa.tile.convolution import LOAD_IN_ORDER, TURN
from pto.isa.tile.extract import WINDOW
from pto.isa.tile.img2col import CONVOLUTION_STATE, IMG2COL
from pto.isa.tile.move import LOAD, MOVE, STORE
from pto.isa.tile.rearrange import TRANSPOSE

_FILTERS = ("FRACTAL_Z", "FRACTAL_Z_3D")
_PADS = ("pad_left", "pad_right", "pad_top", "pad_bottom")


def shaped(bound: BoundCall, profile: str) -> BoundCall:
    """A call with convolution tiles, converted; any other call unchanged."""
    operands = {name: passed for name, (passed, *_) in bound.operands.items()}
    tiles = {name: passed for name, passed in operands.items() if passed.conv is not None}
    if not tiles:
        return bound
    family = bound.row.family
    if family in (IMG2COL, CONVOLUTION_STATE):
        if "dst" in operands:
            bound.set("dst", packed(operands["dst"]))
        return _geometry(bound, tiles["src"])
    if family in (LOAD, STORE):
        return _transferred(bound, operands)
    if family is TRANSPOSE and {"src", "dst"} <= tiles.keys():
        return _turned(bound, tiles["src"], tiles["dst"], profile)
    if family in (MOVE, WINDOW) and "dst" not in tiles and _order(tiles["src"]) in _FILTERS:
        bound.set("src", _filters(tiles["src"]))
        bound.set("dst", packed(operands["dst"]))
        return bound
    if len([passed for passed in operands.values() if isinstance(passed.type, TileBuf | View)]) > 1:
        orders = " and ".join(_order(passed) for passed in tiles.values())
        raise fail("PTO-U240", f"'{bound.row.name}' op takes no convolution tile of {orders}")
    return bound


def _order(operand: Passed) -> str:
    return GLOBAL[operand.facts.layout]


def _conv(operand: Passed) -> Conv:
    assert operand.conv is not None
    return operand.conv


def _int(number: int) -> Int:
    return Int(number, scalar_type(dtype("i64")))


def _retyped(operand: Passed, rows: int, cols: int, layout: str, valid: Any = None) -> Passed:
    """The same bytes as a plain tile."""
    assert isinstance(operand.type, TileBuf)
    current = operand.type.tile
    retyped = TileType.of(
        current.role, current.dtype, rows, cols, find_layout(layout, 512), valid=valid
    )
    return replace(operand, type=replace(operand.type, tile=retyped))


def _line(operand: Passed, count: int = 0) -> Passed:
    """All elements (or the first `count`) as one row of whole 32-byte blocks."""
    assert isinstance(operand.type, TileBuf)
    count, block = count or prod(_conv(operand).shape), C0_SIZE_BYTE // operand.type.tile.itemsize
    return _retyped(operand, 1, -(-count // block) * block, "ND", (1, count))


def _filters(operand: Passed) -> Passed:
    """A FRACTAL_Z tile as the matrix of right operands: blocks of channels by filters."""
    shape = _conv(operand).shape
    columns = shape[1] * shape[2] if len(shape) == 4 else shape[3]
    return _retyped(operand, prod(shape) // columns, columns, "ZN")


# ---- the feature map of img2col


def _geometry(bound: BoundCall, src: Passed) -> BoundCall:
    """Set the attributes of the row from the tile, unless enumerators have set them."""
    conv, order = _conv(src), _order(src)
    if conv.transpose or len(conv.shape) != len(ORDERS[order]):
        raise fail("PTO-U240", f"'{bound.row.name}' op takes no such tile of {order}")
    sizes = dict(zip(ORDERS[order], conv.shape, strict=True))
    geometry = conv._asdict()
    geometry |= dict(zip(_PADS, conv.pads, strict=True))
    geometry |= {"h": conv.h or sizes["h"], "w": conv.w or sizes["w"]}
    geometry |= {"n": sizes["n"], "d": sizes.get("d", 1), "c1": sizes["k"]}
    attrs: dict[str, Attribute] = {"format": Str(order)} if bound.row.attr("format") else {}
    for attr in bound.row.attrs:
        if attr.kind == "int" and attr.name in geometry:
            attrs[attr.name] = _int(geometry[attr.name])
    if not conv.channels:
        attrs.pop("channels", None)
    bound.attrs = {**attrs, **bound.attrs}
    bound.set("src", _line(src))
    return bound


# ---- orders


def _turned(bound: BoundCall, src: Passed, dst: Passed, profile: str) -> BoundCall:
    have, into = _axes(src), _axes(dst)
    attrs, count = _sizes(src, have, dst), prod(_conv(src).shape)
    if "g" in have and "room" in attrs and profile != "cpu":  # TTrans.hpp: equal distances
        attrs["pitch"], count = attrs["room"], count // have["n"] * into["room"]
    turned = {"src": [_line(src, count)], "dst": [_line(dst)]}
    return BoundCall(TURN, bound.operands | turned, attrs)


def _transferred(bound: BoundCall, operands: dict[str, Passed]) -> BoundCall:
    """A transfer without a change of order, as a plain transfer."""
    src, dst = operands["src"], operands["dst"]
    tile, view = (dst, src) if src.conv is None else (src, dst)
    if _order(tile) == _order(view) and len(_conv(tile).shape) < 6:
        bound.set("src" if view is src else "dst", _plain(view))
        return bound
    assert isinstance(view.type, View)
    shape = [n or 0 for n in view.type.shape]
    axes = ORDERS.get(_order(view), "")
    if tile is src or not axes or _order(view) in _FILTERS:
        between = f"{_order(src)} and {_order(dst)}"
        raise fail("PTO-U240", f"a transfer between {between} is not supported for C++ kernels")
    if len(axes) == 6:  # without the dimension of channel blocks
        c0 = _conv(tile).shape[-1]
        wide = replace(view.type, shape=(*shape[:4], shape[4] * c0))
        view = replace(_plain(view), type=wide, widen=(4, 1 - c0))
        sizes = dict(zip(axes, (*shape, c0), strict=True))
    else:
        view, sizes = _plain(view), dict(zip(axes, shape[-len(axes) :], strict=True))
    attrs = _sizes(src, sizes, dst)
    return BoundCall(LOAD_IN_ORDER, {"src": [view], "dst": [_line(tile)]}, attrs)


def _plain(view: Passed) -> Passed:
    facts = type(view.facts).from_buffer_copy(view.facts)
    facts.layout = GLOBAL.index("ND")
    return replace(view, facts=facts)


def _axes(operand: Passed) -> dict[str, int]:
    """Sizes of a tile by axis; for filters counted in blocks of n."""
    order, shape = _order(operand), _conv(operand).shape
    if order in _FILTERS:
        n = shape[1] * shape[2] if len(shape) == 4 else shape[3]
        return {"room": n, "o": shape[-1]}
    axes = ORDERS.get(order, "")
    if len(axes) != len(shape):
        raise fail("PTO-U240", f"a convolution tile of {order} with {len(shape)} dimensions")
    return dict(zip(axes, shape, strict=True))


def _sizes(src: Passed, have: dict[str, int], dst: Passed) -> dict[str, Attribute]:
    """Attributes of a change of order."""
    into = _axes(dst)
    c0 = into.get("o") or have["o"]
    channels = have.get("c") or into.get("c") or have["k"] * c0
    numbers = {axis: have[axis] for axis in "ngdhw" if axis in have}
    numbers |= {"c": channels, "c0": c0}
    if into.get("room", have["n"]) != have["n"]:
        numbers["room"] = into["room"]
    words = {"src_order": Str(_order(src)), "dst_order": Str(_order(dst))}
    return {**words, **{name: _int(number) for name, number in numbers.items()}}
