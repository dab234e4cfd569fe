"""The types an operand can have. Their text lives in `ir/text/types.py`; what a value is, in core.

Every type is frozen and hashable; two spellings of one type are equal.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

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

    How it does so (`layout`) may be written; it says nothing about values.
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
