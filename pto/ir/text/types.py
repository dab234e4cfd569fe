"""Type text <-> type. `parse_type` reads every spelling of programs; `type_text` prints one.

Spellings are parsed once and remembered: a program repeats few types many times.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from pto.core.dtypes import dtype
from pto.core.errors import PtoError, fail, nearest
from pto.core.layout import ZZ, ZZ_MX, BLayout, Layout, SLayout
from pto.core.memory import Role, Space, role, space
from pto.core.pad import pad
from pto.core.tile import Compact, TileType
from pto.isa.row import types as t
from pto.isa.row.enums import ENUMS

_KNOWN: dict[str, t.Type] = {}
_REMEMBER = _MAX_SPELLING = 4096  # more distinct ones mean hostile input, which only gets slower

# How a space is spelled in a pointer (global memory is not: released compilers refuse the word) and
# in an address_space attribute, where it is not its name.
_POINTER_SPACE = {**{s: [s.value] for s in Space}, Space.BIAS: ["bt"], Space.FIXPIPE: ["fb"]}
_POINTER_SPACE[Space.GM] = []
_ADDRESS_WORDS = {
    Space.UB: "vec",
    Space.L1: "mat",
    Space.L0A: "left",
    Space.L0B: "right",
    Space.L0C: "acc",
    Space.FIXPIPE: "scaling",
}
_MEMREF_LAYOUT = re.compile(r"(?:strided|affine_map)<[^<>]*(?:->[^<>]*)?>")
_ADDRESS_SPACE = re.compile(r"#pto\.address_space<\s*(\w+)\s*>")
_VMI_KEPT = r"contiguous|(?:block_)?deinterleaved = [24]|num_groups = \d+(?:, slots = \d+)?"
_VMI_LAYOUT = re.compile(rf"#pto\.vmi\.layout<(?:{_VMI_KEPT})(?:, lane_stride = \d+)?>")
_SCALAR = re.compile(r"index|[su]?i\d+|b?f\d+\w*|tf32")
_SHAPED = re.compile(r"((?:(?:\d+|\?) ?x ?)*)(.+)", re.DOTALL)


def is_scalar_word(text: str) -> bool:
    """Does a bare word name a scalar type?"""
    return _SCALAR.fullmatch(text) is not None or text == "none"


def parse_type(text: str) -> t.Type:
    """The type a spelling names; PtoError PTO-T0xx or PTO-P0xx when it names none."""
    cached = _KNOWN.get(text)
    if cached is not None:
        return cached
    if len(text) > _MAX_SPELLING:
        raise fail("PTO-P003", f"a type of {len(text):,} characters is too long")
    parsed = _parse(" ".join(text.split()))
    if len(_KNOWN) < _REMEMBER:
        _KNOWN[text] = parsed
    return parsed


def _parse(text: str) -> t.Type:
    head, _, body = text.partition("<")
    head = head.strip()
    body = body[:-1].strip() if body.endswith(">") else body
    reader = _READERS.get(head)
    if reader is not None:
        return reader(head, body)
    if head.startswith("!") and not head.startswith("!pto."):
        return t.Opaque(text)
    return _scalar(text)


def _scalar(text: str) -> t.Scalar:
    if text == "index":
        return t.Scalar("index", None)
    if not (_SCALAR.fullmatch(text) or text.startswith("!pto.")):
        raise _unknown(text)
    try:
        return t.Scalar(text, dtype(text))
    except PtoError:
        if re.fullmatch(r"[su]?i\d+", text):
            raise fail("PTO-T032", f"no PTO type has the width of {text}") from None
        raise _unknown(text) from None


def _unknown(text: str) -> PtoError:
    return fail("PTO-T030", f"unknown type `{text}`", help=nearest(text, _READERS))


def _split(body: str) -> list[str]:
    """Cut at commas outside <>, [] and ()."""
    parts: list[str] = []
    depth = start = 0
    for i, ch in enumerate(body):
        if ch in "<[(":
            depth += 1
        elif ch in "])" or (ch == ">" and body[i - 1 : i] != "-"):
            depth -= 1
        elif ch == "," and depth == 0:
            parts.append(body[start:i].strip())
            start = i + 1
    parts.append(body[start:].strip())
    return parts


def _shaped(text: str, kind: str) -> tuple[tuple[t.Dim, ...], t.Scalar]:
    """`16x?xf32` -> ((16, None), f32)."""
    match = _SHAPED.fullmatch(text)
    if not match:
        raise fail("PTO-T031", f"{kind} needs a shape and an element type, got `{text}`")
    sizes = match[1].replace(" ", "").split("x")[:-1]
    return tuple(None if s == "?" else _int(s, kind) for s in sizes), _elem(match[2].strip())


def _elem(text: str) -> t.Scalar:
    type = parse_type(text)
    if not isinstance(type, t.Scalar):
        raise fail("PTO-T031", f"`{text}` is not an element type")
    return type


def _int(text: str, kind: str) -> int:
    digits = text.split(":")[0].strip()
    if not re.fullmatch(r"\d{1,19}", digits) or int(digits) >= 1 << 63:
        raise fail("PTO-T031", f"{kind} needs a number, got `{text}`")
    return int(digits)


def _static(shape: tuple[t.Dim, ...], kind: str) -> tuple[int, ...]:
    if None in shape:
        raise fail("PTO-T031", f"{kind} needs a static shape")
    return tuple(d for d in shape if d is not None)


def _ptr(head: str, body: str) -> t.Type:
    parts = _split(body)
    if len(parts) > 2:
        raise fail("PTO-T033", f"a pointer has an element type and a space, got `{body}`")
    return t.Ptr(parse_type(parts[0]), _space(parts[1]) if len(parts) > 1 else Space.GM)


def _space(text: str) -> Space:
    enum = _ADDRESS_SPACE.fullmatch(text)
    word = enum[1] if enum else text
    return Space.GM if word == "zero" else space(word)


def _view(head: str, body: str) -> t.Type:
    shape, elem = _shaped(body, head)
    if not 1 <= len(shape) <= 5:
        raise fail("PTO-S010", f"{head} has 1 to 5 dimensions, got {len(shape)}: `{body}`")
    return t.View(shape, elem, head != "!pto.tensor_view")


def _vreg(head: str, body: str) -> t.Type:
    shape, elem = _shaped(body, head)
    (lanes,) = _static(shape, head) if len(shape) == 1 else (0,)
    wanted = elem.dtype.lanes if elem.dtype else 0
    if lanes != wanted:
        kind = f"a vector register of {elem.name}"
        raise fail("PTO-T034", f"{kind} has {wanted} lanes (256 bytes), not {lanes}")
    return t.VReg(lanes, elem)


def _mask(head: str, body: str) -> t.Type:
    if body not in ("", "b8", "b16", "b32"):
        raise fail("PTO-T035", f"a mask is b8, b16 or b32, not `{body}`")
    return t.Mask(int(body[1:]) if body else None)


def _logical_vreg(head: str, body: str) -> t.Type:
    lanes_text, *layout = _split(body)
    shape, elem = _shaped(lanes_text, head)
    (lanes,) = _static(shape, head) if len(shape) == 1 else (0,)
    if lanes < 1 or elem.dtype is None or elem.dtype.itemsize > 4:
        raise fail("PTO-T031", f"{head} has lanes of 8, 16 or 32 bits, not `{lanes_text}`")
    return t.LogicalVReg(lanes, elem, _logical_layout(head, layout))


def _logical_mask(head: str, body: str) -> t.Type:
    lanes_text, *layout = _split(body)
    lanes, _, width = lanes_text.partition("x")
    if width not in (*("", "pred") * (not layout), "b8", "b16", "b32"):
        raise fail("PTO-T035", f"a logical mask is pred, b8, b16 or b32, not `{body}`")
    return t.LogicalMask(_int(lanes, head), width, _logical_layout(head, layout))


def _logical_layout(head: str, parts: list[str]) -> str:
    if not parts:
        return ""
    if len(parts) > 1 or not _VMI_LAYOUT.fullmatch(parts[0]):
        raise fail("PTO-T031", f"`{', '.join(parts)}` is not a layout of {head}")
    return parts[0]


def _memref(head: str, body: str) -> t.Type:
    parts = _split(body)
    shape, elem = _shaped(parts[0], head)
    where, layout = None, ""
    for part in parts[1:]:
        number = ENUMS["address_space"].word(int(part)) if re.fullmatch(r"\d{1,2}", part) else None
        if number or _ADDRESS_SPACE.fullmatch(part):
            where = _space(number or part)
        elif layout or not _MEMREF_LAYOUT.fullmatch(part):
            raise fail("PTO-T031", f"`{part}` is not a layout of a memref")
        else:
            layout = part
    return t.MemRef(shape, elem, layout, where or Space.GM, where is None)


def _word(kind: str, word: str) -> str:
    if word not in ENUMS[kind].words:
        help = nearest(word, ENUMS[kind].words)
        raise fail("PTO-T036", f"`{word}` is not a {kind}", help=help)
    return word


def _vector(head: str, body: str) -> t.Type:
    shape, elem = _shaped(body, head)
    return t.Vector(_static(shape, head), elem)


def _vector_text(type: t.Vector) -> str:
    if type.elem.name == "!pto.hif8" and type.shape == (2,):
        return "!pto.hif8x2"  # MLIR's vector holds builtin elements only
    return f"vector<{_shape_text(type.shape)}{type.elem.name}>"


def _local_array(head: str, body: str) -> t.Type:
    shape, elem = _shaped(body, head)
    return t.LocalArray(_static(shape, head), elem)


def _plain(make: Callable[[], t.Type]) -> Callable[[str, str], t.Type]:
    return lambda head, body: make()


# ---- tiles: `<vec, 16x64xf32, valid=8x8, pad=1>`, `<loc=vec, dtype=f32, rows=16, ...>`, and the
# older `<32x64xf32, #pto.address_space<vec>>`
_FIELDS = (
    "loc", "dtype", "rows", "cols", "v_row", "v_col",
    "valid", "blayout", "slayout", "fractal", "pad", "compact",
)  # fmt: skip
_WORDY = {"pad": "pad_value", "compact": "compact_mode", "blayout": "blayout", "slayout": "slayout"}


def _tile_buf(head: str, body: str) -> t.Type:
    fields = _tile_fields(_split(body))
    elem = _elem(fields["dtype"])
    rows, cols = _int(fields["rows"], "rows"), _int(fields["cols"], "cols")
    layout = Layout(
        BLayout(fields.get("blayout", "row_major")),
        SLayout(fields.get("slayout", "none_box")),
        _int(fields.get("fractal", "512"), "fractal"),
    )
    if elem.dtype is None:
        raise fail("PTO-T031", "a tile holds elements, not index values")
    where = Role.VEC if fields["loc"] == "ub" else role(fields["loc"])
    if where is Role.VEC and layout == ZZ and elem.dtype.itemsize == 1 and cols % 32:
        layout = ZZ_MX  # exponents of MX groups: tmov writes boxes of 16x2 whatever the type is
    tile = TileType(
        role=where,
        dtype=elem.dtype,
        rows=rows,
        cols=cols,
        layout=layout,
        pad=pad(_number("pad", fields.get("pad", "0"))),
        valid=(_dim(fields.get("v_row", "")), _dim(fields.get("v_col", ""))),
        compact=Compact(_number("compact", fields["compact"]) if "compact" in fields else 0),
    )
    return t.TileBuf(elem, tile)


def _multi_tile(head: str, body: str) -> t.Type:
    """`<vec, 16x16xf16, count=2>`, or with a whole tile type before the count."""
    *rest, last = _split(body)
    slot = parse_type(rest[0]) if rest and body[0] == "!" else _tile_buf(head, ", ".join(rest))
    name, _, number = last.partition("=")
    if name.strip() != "count" or (body[0] == "!" and rest[1:]) or not isinstance(slot, t.TileBuf):
        raise fail("PTO-T038", "a multiple tile type needs a tile and count")
    return t.MultiTile(slot, _int(number.strip(), "count"))


def _tile_fields(parts: list[str]) -> dict[str, str]:
    """Every form as named fields, defaults for the valid region filled in."""
    fields: dict[str, str] = {}
    for part in filter(None, parts):
        name, eq, value = part.partition("=")
        name, value = name.strip(), value.strip()
        enum = _ADDRESS_SPACE.fullmatch(part)
        if enum:
            fields["loc"] = enum[1]
        elif part.startswith("strided<"):
            continue  # the pitch of a window: a property of the value, not of the type
        elif eq and name in _FIELDS:
            fields[name] = _enum_word(name, value)
        elif not eq and re.match(r"\d+x", part):
            shape, elem = _shaped(part, "tile_buf")
            sizes = _static(shape, "tile_buf")
            if len(sizes) != 2:
                raise fail("PTO-S011", f"a tile has 2 dimensions, got {len(sizes)}: `{part}`")
            fields.update(dtype=elem.name, rows=str(sizes[0]), cols=str(sizes[1]))
        elif not eq and part.isidentifier():
            fields["loc"] = part
        else:
            raise fail("PTO-T037", f"unknown tile field `{part}`", help=nearest(name, _FIELDS))
    missing = [f for f in ("loc", "dtype", "rows", "cols") if f not in fields]
    if missing:
        raise fail("PTO-T038", f"a tile type needs {', '.join(missing)}")
    if "valid" in fields:
        fields["v_row"], _, fields["v_col"] = fields["valid"].partition("x")
    fields.setdefault("v_row", fields["rows"])
    fields.setdefault("v_col", fields["cols"])
    return fields


def _enum_word(name: str, value: str) -> str:
    """`blayout=1 : i32`, `blayout=#pto.blayout<col_major>` and `blayout=col_major` are one."""
    kind = _WORDY.get(name)
    if kind is None:
        return value
    enum = re.fullmatch(rf"#pto\.{kind}<(\w+)>", value)
    word = enum[1] if enum else value
    if name in ("pad", "compact"):
        return word
    if re.match(r"\d", word):
        word = ENUMS[kind].word(_int(word, name)) or word
    return _word(kind, word)


def _number(name: str, value: str) -> int:
    kind = ENUMS[_WORDY[name]]
    if value in kind.words:
        return kind.number(value)
    number = int(value, 16) if re.fullmatch(r"0x[0-9a-fA-F]{1,16}", value) else _int(value, name)
    if name == "compact" and kind.word(number) is None:
        raise fail("PTO-T036", f"`{value}` is not a {kind.name}")
    return number


def _dim(text: str) -> int | None:
    return None if text == "?" else _int(text, "valid region")


_ASYNC = ("async_session", "async_event", "prefetch_async_context")
_READERS: dict[str, Callable[[str, str], t.Type]] = {
    "!pto.ptr": _ptr,
    "!pto.tile_buf": _tile_buf,
    "!pto.multi_tile_buf": _multi_tile,
    "!pto.struct": lambda head, body: t.Struct(tuple(map(parse_type, _split(body)))),
    "!llvm.ptr": lambda head, body: t.Opaque("!llvm.ptr"),
    "!pto.tensor_view": _view,
    "!pto.partition_tensor_view": _view,
    "!pto.tile_view": _view,  # the older name of a partition
    "!pto.vreg": _vreg,
    "!pto.mask": _mask,
    "!pto.vmi.vreg": _logical_vreg,
    "!pto.vmi.mask": _logical_mask,
    "!pto.hif8x2": lambda head, body: t.Vector((2,), _elem("!pto.hif8")),
    "!pto.align": _plain(t.Align),
    "!pto.pipe": _plain(t.PipeHandle),
    "!pto.eventid_array": lambda head, body: t.EventIdArray(_int(body, head)),
    "!pto.local_array": _local_array,
    **{f"!pto.{w}": lambda head, body, w=w: t.Async(w) for w in _ASYNC},
    "memref": _memref,
    "vector": _vector,
    "tensor": lambda head, body: t.Opaque(f"tensor<{body}>"),
    "none": lambda head, body: t.Opaque("none"),
}
HEADS = tuple(_READERS)  # words that a type begins with

# ---- type -> text


def type_text(type: t.Type) -> str:
    """The canonical text of a type."""
    return _WRITERS[type.__class__](type)


def _shape_text(shape: tuple[t.Dim, ...]) -> str:
    return "".join(f"{'?' if d is None else d}x" for d in shape)


def _tile_text(type: t.TileBuf) -> str:
    tile = type.tile
    blayout = tile.layout.blayout
    slayout = tile.layout.slayout
    fractal = tile.layout.fractal
    fields = (
        ("valid", _shape_text(tile.valid)[:-1], tile.valid != tile.shape),
        ("blayout", blayout.value, blayout is not BLayout.ROW_MAJOR),
        ("slayout", slayout.value, slayout is not SLayout.NONE_BOX),
        ("fractal", fractal, fractal != 512),
        ("pad", tile.pad.code, tile.pad.code),
        ("compact", tile.compact.value, tile.compact is not Compact.NULL),
    )
    fields_text = "".join(f", {name}={value}" for name, value, differs in fields if differs)
    return (
        f"!pto.tile_buf<{tile.role.value}, {tile.rows}x{tile.cols}x{type.elem.name}{fields_text}>"
    )


def _memref_text(type: t.MemRef) -> str:
    parts = [_shape_text(type.shape) + type.elem.name]
    if type.layout:
        parts.append(type.layout)
    word = _ADDRESS_WORDS.get(type.space, type.space.value)
    parts += [] if type.bare else [f"#pto.address_space<{word}>"]
    return f"memref<{', '.join(parts)}>"


def _function_text(type: t.Function) -> str:
    results = ", ".join(map(type_text, type.results))
    bare = len(type.results) == 1 and not isinstance(type.results[0], t.Function)
    return f"({', '.join(map(type_text, type.inputs))}) -> " + (results if bare else f"({results})")


def _laid_out(kind: str, lanes_text: str, layout: str) -> str:
    return f"!pto.vmi.{kind}<{lanes_text}{', ' * bool(layout)}{layout}>"


def _mask_words(type: t.LogicalMask) -> str:
    return f"{type.lanes}x{type.granularity}" if type.granularity else str(type.lanes)


_WRITERS: dict[type[t.Type], Callable[..., str]] = {
    t.Scalar: lambda x: x.name,
    t.Ptr: lambda x: f"!pto.ptr<{', '.join([type_text(x.elem), *_POINTER_SPACE[x.space]])}>",
    t.TileBuf: _tile_text,
    t.MultiTile: lambda x: f"!pto.multi_tile_buf<{_tile_text(x.slot)}, count={x.count}>",
    t.View: lambda x: (
        f"!pto.{'partition_' if x.partition else ''}tensor_view"
        f"<{_shape_text(x.shape)}{x.elem.name}>"
    ),
    t.MemRef: _memref_text,
    t.VReg: lambda x: f"!pto.vreg<{x.lanes}x{x.elem.name}>",
    t.Mask: lambda x: f"!pto.mask<b{x.granularity}>" if x.granularity else "!pto.mask",
    t.LogicalVReg: lambda x: _laid_out("vreg", f"{x.lanes}x{x.elem.name}", x.layout),
    t.LogicalMask: lambda x: _laid_out("mask", _mask_words(x), x.layout),
    t.Align: lambda x: "!pto.align",
    t.PipeHandle: lambda x: "!pto.pipe",
    t.EventIdArray: lambda x: f"!pto.eventid_array<{x.size}>",
    t.LocalArray: lambda x: f"!pto.local_array<{_shape_text(x.shape)}{x.elem.name}>",
    t.Struct: lambda x: f"!pto.struct<{', '.join(map(type_text, x.fields))}>",
    t.Async: lambda x: f"!pto.{x.what}",
    t.Vector: _vector_text,
    t.Function: _function_text,
    t.Opaque: lambda x: x.text,
}
