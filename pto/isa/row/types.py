"""The types an operand can have, and its kinds: named predicates over types, for messages.

The text of types is in `ir/text/types.py`; values are in core. Every type is frozen and hashable;
two spellings of one type are equal.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar

from pto.core.dtypes import DType
from pto.core.memory import Space
from pto.core.tile import TileType

Dim = int | None  # None is `?`


class Type:
    """Base of all types. `kind` is the word rules and messages use."""

    kind: ClassVar[str] = "value"
    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Scalar(Type):
    """`i32`, `ui8`, `bf16`, `!pto.hif8`, `index`. Integers may be signless, so the name stays."""

    kind: ClassVar[str] = "scalar"
    name: str
    dtype: DType | None  # None for index

    @property
    def is_index(self) -> bool:
        return self.dtype is None

    @property
    def is_integer(self) -> bool:
        return self.dtype is not None and not self.dtype.is_float

    @property
    def is_float(self) -> bool:
        return self.dtype is not None and self.dtype.is_float

    @property
    def itemsize(self) -> int | None:
        """Bytes of one element; None for an index."""
        return None if self.dtype is None else self.dtype.itemsize

    @property
    def written(self) -> tuple[int, int]:
        """The lowest and highest integer a program may write for it: a signless one by its number
        or by its bits, an index by its number."""
        bits = 64 if self.dtype is None else self.dtype.bits
        low = 0 if self.name.startswith("u") else -(1 << (bits - 1))
        number = self.is_index or self.name.startswith("s")
        return low, (1 << (bits - 1 if number else bits)) - 1

    @property
    def names(self) -> tuple[str, ...]:
        """Possible element types: a signless `i8` is i8 or u8."""
        if self.dtype is None:
            return ("index",)
        if self.dtype.kind == "int" and not self.name.startswith("s"):
            return (self.dtype.name, "u" + self.dtype.name[1:])
        return (self.dtype.name,)


@dataclass(frozen=True, slots=True)
class Ptr(Type):
    """`!pto.ptr<T, space>`: an address of elements in one memory space (gm when unwritten)."""

    kind: ClassVar[str] = "pointer"
    elem: Type
    space: Space = Space.GM


@dataclass(frozen=True, slots=True)
class TileBuf(Type):
    """`!pto.tile_buf<...>`: a tile in a local buffer."""

    kind: ClassVar[str] = "tile"
    elem: Scalar
    tile: TileType


@dataclass(frozen=True, slots=True)
class MultiTile(Type):
    """`!pto.multi_tile_buf<vec, 16x16xf16, count=2>`: equal tiles, one behind the other."""

    kind: ClassVar[str] = "multiple tile"
    slot: TileBuf
    count: int


@dataclass(frozen=True, slots=True)
class View(Type):
    """`!pto.tensor_view` (whole) or `!pto.partition_tensor_view` (a window): a descriptor of GM."""

    kind: ClassVar[str] = "view"
    shape: tuple[Dim, ...]
    elem: Scalar
    partition: bool


@dataclass(frozen=True, slots=True)
class MemRef(Type):
    """`memref<16x16xf16, #pto.address_space<vec>>`: the lowered form of tiles and views."""

    kind: ClassVar[str] = "memref"
    shape: tuple[Dim, ...]
    elem: Scalar
    layout: str  # the layout as written (`strided<[?, 1]>`), empty when contiguous
    space: Space
    bare: bool = field(default=False, compare=False)  # no space is written: global memory


PLACES = (Ptr, TileBuf, View, MemRef)  # types of values that refer to memory


@dataclass(frozen=True, slots=True)
class VReg(Type):
    """`!pto.vreg<64xf32>`: one 256-byte vector register."""

    kind: ClassVar[str] = "vector register"
    lanes: int
    elem: Scalar


@dataclass(frozen=True, slots=True)
class Mask(Type):
    """`!pto.mask<b32>`: a 256-bit predicate image; the granularity may be unwritten."""

    kind: ClassVar[str] = "mask"
    granularity: int | None


@dataclass(frozen=True, slots=True)
class LogicalVReg(Type):
    """`!pto.vmi.vreg<256xui16>`: a vector of any length that a compiler spreads over registers.

    How it does so (`layout`) may be written; it does not change values.
    """

    kind: ClassVar[str] = "logical vector"
    lanes: int
    elem: Scalar
    layout: str = ""


@dataclass(frozen=True, slots=True)
class LogicalMask(Type):
    """`!pto.vmi.mask<256xb16>`: a predicate with one bit for each lane of a logical vector."""

    kind: ClassVar[str] = "logical mask"
    lanes: int
    granularity: str = ""  # pred, b8, b16, b32, or unwritten
    layout: str = ""


@dataclass(frozen=True, slots=True)
class Align(Type):
    """`!pto.align`: the state that threads an unaligned stream."""

    kind: ClassVar[str] = "align"


@dataclass(frozen=True, slots=True)
class PipeHandle(Type):
    """`!pto.pipe`: a queue between the cube and the vector side."""

    kind: ClassVar[str] = "pipe"
    made_by: str = field(default="", compare=False)  # the operation, where the value has no maker


@dataclass(frozen=True, slots=True)
class EventIdArray(Type):
    """`!pto.eventid_array<N>`: event ids chosen at run time."""

    kind: ClassVar[str] = "event id array"
    size: int


@dataclass(frozen=True, slots=True)
class LocalArray(Type):
    """`!pto.local_array<4x8xi32>`: a small array of the scalar unit."""

    kind: ClassVar[str] = "local array"
    shape: tuple[int, ...]
    elem: Scalar


@dataclass(frozen=True, slots=True)
class Struct(Type):
    """`!pto.struct<f32, !pto.struct<i8>>`: a record of the scalar unit."""

    kind: ClassVar[str] = "struct"
    fields: tuple[Type, ...]


@dataclass(frozen=True, slots=True)
class Async(Type):
    """`!pto.async_session`, `!pto.async_event` and `!pto.prefetch_async_context`."""

    kind: ClassVar[str] = "async"
    what: str


@dataclass(frozen=True, slots=True)
class Vector(Type):
    """The MLIR builtin `vector<4xi16>`."""

    kind: ClassVar[str] = "vector"
    shape: tuple[int, ...]
    elem: Scalar


@dataclass(frozen=True, slots=True)
class Function(Type):
    """`(i32, index) -> f32`."""

    kind: ClassVar[str] = "function"
    inputs: tuple[Type, ...]
    results: tuple[Type, ...]


@dataclass(frozen=True, slots=True)
class Opaque(Type):
    """A type of another dialect, carried as written."""

    kind: ClassVar[str] = "foreign type"
    text: str


@dataclass(frozen=True, slots=True)
class Kind:
    words: str
    accepts: Callable[[Type], bool]


def _is(
    *classes: type[Type], where: Callable[[Any], object] | None = None
) -> Callable[[Type], bool]:
    return lambda type: isinstance(type, classes) and (where is None or bool(where(type)))


def _or(one: Callable[[Type], bool], other: Callable[[Type], bool]) -> Callable[[Type], bool]:
    return lambda type: one(type) or other(type)


def _of_lane(accepts: Callable[[Type], bool]) -> Callable[[Type], bool]:
    """The same for the element type of a builtin vector."""
    return lambda type: accepts(type.elem if isinstance(type, Vector) else type)


def _named(name: str) -> Callable[[Type], bool]:
    return _is(Scalar, where=lambda type: type.name == name)


def _async(*words: str) -> Callable[[Type], bool]:
    return _is(Async, where=lambda type: type.what in words)


def _in(space: Space, *classes: type[Type]) -> Callable[[Type], bool]:
    return _is(*classes, where=lambda type: type.space is space)


_TILE = _or(_is(TileBuf), _is(MemRef, where=lambda type: type.space is not Space.GM))
_VIEW = _or(_is(View), _in(Space.GM, MemRef))
_FIXED_INTEGER = _is(Scalar, where=lambda type: type.is_integer)
_INTEGER = _is(Scalar, where=lambda type: type.is_index or type.is_integer)
_FLOAT = _is(Scalar, where=lambda type: type.is_float)

KINDS: dict[str, Kind] = {
    "tile": Kind("a tile", _TILE),
    "multiple tile": Kind("a multiple tile", _is(MultiTile)),
    "view": Kind("a view of global memory", _VIEW),
    "tile or view": Kind("a tile or a view of global memory", _or(_TILE, _VIEW)),
    "tile or scalar": Kind("a tile or a scalar", _or(_TILE, _is(Scalar))),
    "tensor view": Kind(
        "a whole view of global memory", _is(View, where=lambda type: not type.partition)
    ),
    "partition view": Kind(
        "a window of global memory", _is(View, where=lambda type: type.partition)
    ),
    "pointer": Kind("a pointer", _is(Ptr)),
    "memref": Kind("a memref", _is(MemRef)),
    "pointer or memref": Kind("a pointer or memref", _is(Ptr, MemRef)),
    "pointer or gm memref": Kind(
        "a pointer or a memref in global memory", _or(_is(Ptr), _in(Space.GM, MemRef))
    ),
    "pointer or integer": Kind("a pointer or an integer", _or(_is(Ptr), _FIXED_INTEGER)),
    "pointer, memref or integer": Kind(
        "a pointer, a memref or an integer", _or(_is(Ptr, MemRef), _FIXED_INTEGER)
    ),
    "address": Kind("a pointer or memref", _is(Ptr, MemRef, View, TileBuf)),
    "gm place": Kind("a pointer or a view in global memory", _or(_VIEW, _in(Space.GM, Ptr))),
    "scalar": Kind("a scalar", _is(Scalar)),
    "element": Kind("an integer or a float", _or(_FIXED_INTEGER, _FLOAT)),
    "number": Kind("a number", _is(Scalar, Vector)),
    "integers": Kind("an integer", _of_lane(_INTEGER)),
    "floats": Kind("a float", _of_lane(_FLOAT)),
    "vector": Kind("a vector", _is(Vector)),
    "llvm pointer": Kind("a pointer of LLVM", lambda x: x == Opaque("!llvm.ptr")),
    "int": Kind("an integer", _INTEGER),
    "float": Kind("a float", _FLOAT),
    "index": Kind("an index", _named("index")),
    "i64": Kind("an i64", _named("i64")),
    "i32": Kind("an i32", _named("i32")),
    "i16": Kind("an i16", _named("i16")),
    "i1": Kind("an i1", _named("i1")),
    "vreg": Kind("a vector register", _is(VReg)),
    "mask": Kind("a mask", _is(Mask)),
    "mask or index": Kind("a mask or an index", _or(_is(Mask), _named("index"))),
    "vreg or mask": Kind("a vector register or a mask", _is(VReg, Mask)),
    "vreg or scalar": Kind("a vector register or a scalar", _is(VReg, Scalar)),
    "logical vreg": Kind("a logical vector", _is(LogicalVReg)),
    "logical mask": Kind("a logical mask", _is(LogicalMask)),
    "logical vreg or mask": Kind("a logical vector or mask", _is(LogicalVReg, LogicalMask)),
    "logical vreg or scalar": Kind("a logical vector or a scalar", _is(LogicalVReg, Scalar)),
    "align": Kind("an alignment state", _is(Align)),
    "pipe": Kind("a pipe handle", _is(PipeHandle)),
    "event ids": Kind("an event id array", _is(EventIdArray)),
    "struct": Kind("a struct", _is(Struct)),
    "local array": Kind("a local array", _is(LocalArray)),
    "async session": Kind("an async session", _async("async_session")),
    "async event": Kind("an async event", _async("async_event")),
    "prefetch context": Kind("a prefetch context", _async("prefetch_async_context")),
    "session or context": Kind(
        "an async session or a prefetch context",
        _async("async_session", "prefetch_async_context"),
    ),
    "any": Kind("any value", lambda _: True),
    "scalar or pointer": Kind("a scalar or a pointer", _is(Scalar, Ptr)),
    "gm or ub pointer": Kind("a pointer in gm or ub", _or(_in(Space.GM, Ptr), _in(Space.UB, Ptr))),
    **{f"{s.value} pointer": Kind(f"a pointer in {s.value}", _in(s, Ptr)) for s in Space},
    **{
        f"{s.value} buffer": Kind(f"a pointer or memref in {s.value}", _in(s, Ptr, MemRef))
        for s in Space
    },
}
