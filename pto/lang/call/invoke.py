"""One call of an instruction: binds arguments to operands and attributes, propagates valid regions,
adds omitted operands, and emits the operation to the session."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from pto.core.errors import PtoError, nearest
from pto.ir.builder import Given
from pto.ir.graph import Value
from pto.isa.row.instr import Instr, Operand
from pto.isa.row.traits import RegionRule
from pto.isa.row.types import Mask as MaskType
from pto.isa.row.types import Scalar as ScalarType
from pto.isa.row.types import TileBuf, VReg
from pto.lang.call.given import (
    attribute,
    counted_in_memory,
    element_of,
    is_array,
    not_taken,
    operand_value,
)
from pto.lang.call.place import mistake
from pto.lang.call.results import result_types
from pto.lang.call.session import Session, current
from pto.lang.call.signature import (
    Param,
    can_be_left_out,
    parameters,
    python_name,
    required_call,
)
from pto.lang.values.regions import follow
from pto.lang.values.registers import wrap
from pto.lang.values.tiles import Extents, Tile
from pto.lang.values.views import Global, View


def docstring(row: Instr) -> str:
    """The row in words: meaning, operands, attributes, element types, citation."""
    lines = [row.meaning, ""]
    for param in parameters(row):
        lines.append(f"{param.name}: {_about(param)}")
    types = [f"{p}: {' '.join(sorted(names))}" for p, names in row.types.items()]
    missing = [p for p in ("cpu", "a2a3", "a5") if p not in row.profiles]
    lines += ["", *types, *([f"not on {', '.join(missing)}"] if missing else []), *row.notes]
    lines += [f"{row.name}, {'; '.join(row.cite)}"]
    return "\n".join(line.rstrip() for line in lines)


def _about(param: Param) -> str:
    if param.operand is not None:
        role = {"in": "read", "out": "written", "inout": "read and written", "tmp": "scratch"}
        return f"{param.operand.kind}, {role[param.operand.role]}"
    if param.attr is None:
        return "type of the result"
    words = " | ".join(param.attr.values[:8])
    default = "" if param.attr.default is None else f" (default {param.attr.default})"
    return f"{words or param.attr.kind}{default} {param.attr.meaning}".strip()


def invoke(row: Instr, args: Sequence[object], named: Mapping[str, object]) -> object:
    """Bind and check the arguments, propagate valid regions, and emit the operation."""
    session = current()
    bound = _bind(row, args, named)
    bound = {k: session.array(v) if isinstance(v, np.ndarray) else v for k, v in bound.items()}
    to = bound.pop("to", None)
    operands = {o.name: bound[o.name] for o in row.operands if bound.get(o.name) is not None}
    attrs = {
        a.name: attribute(row, a, bound[a.name])
        for a in row.attrs
        if bound.get(a.name) is not None and a.name not in row.operand_names
    }
    _require_order(row, operands)
    before = _let_regions_follow(session, row, operands)
    try:
        values = _lower(session, row, operands)
        types = result_types(row, values, to)
        results = session.emit(row, values, attrs=attrs, results=types)
    except PtoError:
        for tile, region in before if session.eager else ():
            session.set_region(tile, *region)
        raise
    wrapped = [wrap(value, session) for value in results]
    return None if not wrapped else wrapped[0] if len(wrapped) == 1 else tuple(wrapped)


def _bind(row: Instr, args: Sequence[object], named: Mapping[str, object]) -> dict[str, object]:
    params = parameters(row)
    places = [p for p in params if not p.keyword_only]
    args = _by_indices(row, args, len(places))
    listed = f"{python_name(row)}({', '.join(_shown(p) for p in params)})"
    last = places[-1] if places else None
    takes_rest = last is not None and last.operand is not None and last.operand.variadic
    if len(args) > len(places) and not takes_rest:
        raise mistake(
            "PTO-U205",
            f"{row.mnemonic} takes {len(places)} arguments, got {len(args)}",
            help=f"the call is {listed}",
        )
    bound: dict[str, object] = {p.name: arg for p, arg in zip(places, args, strict=False)}
    if takes_rest and last is not None and len(args) >= len(places):
        rest = args[len(places) - 1 :]
        bound[last.name] = list(rest[0]) if isinstance(rest[0], list | tuple) else list(rest)
    names = {p.name for p in params}
    for name, value in named.items():
        if name not in names:
            help = nearest(name, names) or f"the call is {listed}"
            raise mistake("PTO-U205", f"{row.mnemonic} has no {name}", help=help)
        if name in bound:
            raise mistake("PTO-U205", f"{row.mnemonic}: {name} is given twice")
        bound[name] = value
    missing = [p.name for p in params if p.required and bound.get(p.name) is None]
    if missing:
        raise mistake(
            "PTO-U205",
            f"{row.mnemonic} needs {', '.join(missing)}",
            help=f"the call is {listed}",
        )
    return bound


def _by_indices(row: Instr, args: Sequence[object], most: int) -> Sequence[object]:
    """`load_scalar(x, i, j)`: element indices joined to one operand, the element number."""
    more = len(args) - most
    if more < 1 or not args or not is_array(args[0]) or row.places.get("offset") != 1:
        return args
    return [args[0], tuple(args[1 : more + 2]), *args[more + 2 :]]


def _shown(param: Param) -> str:
    return param.name if param.required else f"[{param.name}]"


def _require_order(row: Instr, operands: Mapping[str, object]) -> None:
    """Raise if tile and array are swapped: the destination comes first."""
    for operand in row.operands:
        value = operands.get(operand.name)
        if value is None or operand.kind not in ("tile", "view"):
            continue
        wrong = is_array(value) if operand.kind == "tile" else isinstance(value, Tile)
        if wrong:
            got = "an array in global memory" if is_array(value) else "a tile"
            wanted = "a tile" if operand.kind == "tile" else "an array in global memory"
            raise mistake(
                "PTO-T204",
                f"{row.mnemonic}: {operand.name} is {wanted}, got {got}",
                help=f"the destination comes first: {required_call(row)}",
            )


def _let_regions_follow(
    session: Session, row: Instr, operands: Mapping[str, object]
) -> list[tuple[Tile, Extents]]:
    """Set the valid region of destinations from their sources; returns the previous regions."""
    sources = (o.name for o in row.operands if o.role in ("in", "inout"))
    read = {name: operands[name] for name in sources if name in operands}
    views = [v for v in read.values() if isinstance(v, Global | View)]
    before: list[tuple[Tile, Extents]] = []
    for operand in row.operands:
        dst = operands.get(operand.name)
        written = operand.role == "out" and "tile" in operand.kind
        if not written or not isinstance(dst, Tile):
            continue
        dst.origin = None
        if dst.fixed:
            continue
        dst.used()
        loads = bool(views) and row.traits.region is RegionRule.VIEW
        region = views[0].whole().room(dst.shape) if loads else follow(session, row, dst, read)
        if session.eager:
            before.append((dst, session.region(dst)))
        session.set_region(dst, *region)
    return before


def _lower(session: Session, row: Instr, operands: Mapping[str, object]) -> dict[str, Given]:
    """Operands as SSA values: windows get sizes, scratch tiles and masks are created."""
    operands = counted_in_memory(row, operands)
    tiles = [v for v in operands.values() if isinstance(v, Tile)]
    elem = element_of(row, dict(operands))
    values: dict[str, Given] = {}
    for operand in row.operands:
        value = operands.get(operand.name)
        if value is None:
            created = _made(session, row, operand, tiles, values)
            if created is not None:
                values[operand.name] = created
        elif operand.variadic:
            items = value if isinstance(value, list | tuple) else [value]
            values[operand.name] = [_one(session, row, operand, v, elem, tiles) for v in items]
        else:
            values[operand.name] = _one(session, row, operand, value, elem, tiles)
    return values


def _one(
    session: Session,
    row: Instr,
    operand: Operand,
    value: Any,
    elem: ScalarType | None,
    tiles: list[Tile],
) -> Value:
    if is_array(value) and operand.kind in ("view", "tile or view", "partition view"):
        window = value.whole()
        if row.traits.sized_by_tile and tiles:
            tile = tiles[0]
            _require_elements(session, row, tile, window, stores=operand.role != "in")
            region = session.region(tile)
            if operand.role != "in":
                window.require_room(region)
                region = window.cut(region, tile.shape)
            return window.lower_for(region)
        return window.lower_whole()
    if isinstance(value, View):
        raise not_taken(row, operand, "a window on global memory")
    if isinstance(value, Tile):
        value.used()
        session.region(value)
    return operand_value(row, operand, value, elem)


def _require_elements(
    session: Session, row: Instr, tile: Tile, window: View, *, stores: bool
) -> None:
    """Raise if the types of a transfer differ but have the same size: it does not convert."""
    array, elem = window.array, tile.dtype
    alike = array.dtype is elem or (session.eager and array.dtype.numpy == elem.numpy)
    if alike or array.dtype.itemsize != elem.itemsize or tile.role == "acc":
        return  # a rule checks other sizes; the fixpipe converts accumulators
    name, kind = array.pointer.name, array.dtype
    to = (
        f"isa.tcvt to a tile of pto.{kind}, then store that"
        if stores
        else f"load into a tile of pto.{kind}, then pto.tcvt"
    )
    raise mistake(
        "PTO-T208",
        f"{row.mnemonic}: {name} holds {kind}, the tile {elem}: a transfer does not convert",
        help=f"{to}; to pass the bits unchanged, use {name}.view(pto.{elem})",
    )


def _made(
    session: Session, row: Instr, operand: Operand, tiles: list[Tile], values: Mapping[str, object]
) -> Value | None:
    """A default for an omitted operand: a scratch tile like the first tile, an all-true mask."""
    if operand.optional or operand.variadic or not can_be_left_out(row, operand):
        return None
    if operand.kind == "mask":
        return _all_lanes(session, values)
    source = next((v for n, v in values.items() if n != "dst"), None)
    like = next((t for t in tiles if t.value is source), tiles[0] if tiles else None)
    if like is None or not isinstance(like.value.type, TileBuf):
        return None
    type = like.value.type
    full = TileBuf(type.elem, replace(type.tile, valid=type.tile.shape))
    return session.alloc(full, None, None).used()


def _all_lanes(session: Session, values: Mapping[str, object]) -> Value | None:
    for value in values.values():
        type = getattr(value, "type", None)
        if isinstance(type, VReg) and type.elem.dtype is not None:
            bits = min(32, 8 * type.elem.dtype.itemsize)
        elif isinstance(type, MaskType) and type.granularity:
            bits = type.granularity
        else:
            continue
        return session.all_lanes(bits)
    return None
