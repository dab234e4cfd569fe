"""Lowered values: how values of a program are represented in compiled code, and passed to Python.

Every lowered value consists of a few LLVM scalars (`parts`) and constants known at compile time.
They are passed in an argument buffer. A value without such a representation is a handle: its number
in a list of Python objects.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from pto.core.compact import Compact
from pto.core.constants import BLOCK_BYTE_SIZE, VREG_BYTES
from pto.core.dtypes import DType
from pto.core.global_layout import GlobalLayout
from pto.core.global_tensor import GlobalTensor
from pto.core.memory import Space
from pto.core.pointer import Pointer
from pto.core.tile import Tile, TileType
from pto.isa.meaning.memory.collective import TOKEN, Token
from pto.isa.meaning.scalar.arith import from_bits, to_bits
from pto.isa.meaning.simt.memory import Own
from pto.isa.meaning.vector.unaligned import LoadState, StoreState
from pto.isa.row import types as t
from pto.run.jit.llvm.text import I8, I64, Constant, Val, element, number, vector
from pto.run.jit.runtime.context import Context

Part = tuple[str, Val]  # LLVM type, name


@dataclass(frozen=True, slots=True)
class Lowered:
    """Base class: `names` are LLVM scalars with the types of `parts`."""

    names: tuple[Val, ...]

    @property
    def types(self) -> tuple[str, ...]:
        return (I64,) * len(self.names)

    @property
    def parts(self) -> list[Part]:
        return list(zip(self.types, self.names, strict=True))

    def renamed(self, names: Sequence[Val]) -> Lowered:
        return replace(self, names=tuple(names))

    def is_like(self, other: Lowered) -> bool:
        """True if only the names differ."""
        return replace(self, names=()) == replace(other, names=())

    @property
    def nbytes(self) -> int:
        """Bytes in the argument buffer."""
        return 8 * len(self.names)

    def encode(self, frame: Any, offset: int, value: Any, context: Context) -> bool:
        """Write a Python value to the buffer; False if this representation cannot hold it."""
        raise NotImplementedError

    def decode(self, frame: Any, offset: int, context: Context) -> Any:
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class ScalarValue(Lowered):
    """A scalar."""

    type: t.Scalar

    @property
    def name(self) -> Val:
        return self.names[0]

    @property
    def types(self) -> tuple[str, ...]:
        return (word_type(self.type),)

    def encode(self, frame: Any, offset: int, value: Any, context: Context) -> bool:
        struct.pack_into("<Q", frame, offset, to_bits(self.type, value))
        return True

    def decode(self, frame: Any, offset: int, context: Context) -> Any:
        kind = self.type.dtype
        (bits,) = struct.unpack_from("<Q", frame, offset)
        return from_bits(self.type, bits & ((1 << (64 if kind is None else kind.bits)) - 1))


@dataclass(frozen=True, slots=True)
class Reg(Lowered):
    """A vector register."""

    dtype: DType

    @property
    def name(self) -> str:
        return str(self.names[0])

    @property
    def types(self) -> tuple[str, ...]:
        return (register_type(self.dtype),)

    @property
    def nbytes(self) -> int:
        return VREG_BYTES

    def encode(self, frame: Any, offset: int, value: Any, context: Context) -> bool:
        if not isinstance(value, np.ndarray) or value.nbytes != VREG_BYTES:
            return False
        raw = np.ascontiguousarray(value).view(np.uint8)
        frame[offset : offset + VREG_BYTES] = memoryview(raw.tobytes())
        return True

    def decode(self, frame: Any, offset: int, context: Context) -> Any:
        raw = np.frombuffer(frame, np.uint8, VREG_BYTES, offset).copy()
        return raw.view(self.dtype.numpy)


@dataclass(frozen=True, slots=True)
class Mask(Lowered):
    """A predicate: one bit for each `width` bytes of a register, the bits between them off."""

    width: int

    @property
    def name(self) -> str:
        return str(self.names[0])

    @property
    def lanes(self) -> int:
        return VREG_BYTES // self.width

    @property
    def types(self) -> tuple[str, ...]:
        return (vector(self.lanes, "i1"),)

    @property
    def nbytes(self) -> int:
        return VREG_BYTES

    def encode(self, frame: Any, offset: int, value: Any, context: Context) -> bool:
        frame[offset : offset + VREG_BYTES] = memoryview(value.tobytes())
        return True

    def decode(self, frame: Any, offset: int, context: Context) -> Any:
        return np.frombuffer(frame, np.uint8, VREG_BYTES, offset).copy().view(np.bool_)


@dataclass(frozen=True, slots=True)
class Vector(Lowered):
    """A logical vector; a logical mask where there is no type."""

    dtype: DType | None
    count: int

    @property
    def name(self) -> str:
        return str(self.names[0])

    @property
    def types(self) -> tuple[str, ...]:
        return (vector(self.count, "i1" if self.dtype is None else element(self.dtype)),)

    @property
    def item(self) -> np.dtype[Any]:
        """The element type in the argument buffer: a mask has a byte a lane."""
        return np.dtype(np.bool_) if self.dtype is None else self.dtype.numpy

    @property
    def nbytes(self) -> int:
        return -(-self.count * self.item.itemsize // 8) * 8

    def encode(self, frame: Any, offset: int, value: Any, context: Context) -> bool:
        raw = np.ascontiguousarray(value).tobytes()
        frame[offset : offset + len(raw)] = raw
        return True

    def decode(self, frame: Any, offset: int, context: Context) -> Any:
        return np.frombuffer(frame, self.item, self.count, offset).copy()


@dataclass(frozen=True, slots=True)
class Array(Lowered):
    """A small array of words: its number in the context's list of objects, or -1 for one that
    compiled code has made; and its machine address."""

    count: int

    @property
    def address(self) -> Val:
        return self.names[1]

    def encode(self, frame: Any, offset: int, value: Any, context: Context) -> bool:
        context.objects.append(value)
        number = len(context.objects) - 1
        struct.pack_into("<qq", frame, offset, number, value.ctypes.data)
        return True

    def decode(self, frame: Any, offset: int, context: Context) -> Any:
        number, address = struct.unpack_from("<qq", frame, offset)
        if number >= 0:
            return context.objects[number]
        return np.ctypeslib.as_array((ctypes.c_int64 * self.count).from_address(address))


@dataclass(frozen=True, slots=True)
class PointerDesc(Lowered):
    """A pointer: the number of a memory in the context, and a byte address there."""

    elem: DType | None

    @property
    def memory(self) -> Val:
        return self.names[0]

    @property
    def address(self) -> Val:
        return self.names[1]

    def encode(self, frame: Any, offset: int, value: Any, context: Context) -> bool:
        if not isinstance(value, Pointer) or value.dtype is not self.elem:
            return False
        number = context.number(value.memory)
        if number is None:
            return False
        struct.pack_into("<qq", frame, offset, number, value.address)
        return True

    def decode(self, frame: Any, offset: int, context: Context) -> Any:
        number, address = struct.unpack_from("<qq", frame, offset)
        return Pointer(context.memory(number), address, self.elem)


@dataclass(frozen=True, slots=True)
class OwnDesc(Lowered):
    """Arrays of work items (`Own`): number of the memory, first address, distance in bytes."""

    @property
    def memory(self) -> Val:
        return self.names[0]

    @property
    def address(self) -> Val:
        return self.names[1]

    def encode(self, frame: Any, offset: int, value: Any, context: Context) -> bool:
        number = context.number(value.memory, own=True) if isinstance(value, Own) else None
        if number is not None:
            struct.pack_into("<qqq", frame, offset, number, value.address, value.nbytes)
        return number is not None

    def decode(self, frame: Any, offset: int, context: Context) -> Any:
        number, address, nbytes = struct.unpack_from("<qqq", frame, offset)
        return Own(context.memory(number), address, nbytes)


@dataclass(frozen=True, slots=True)
class TileDesc(Lowered):
    """A tile of a known type in a local buffer: address and valid region."""

    type: TileType
    pitch: int | None = None  # of a window: elements (or boxes) from row to row of its parent

    @property
    def address(self) -> Val:
        return self.names[0]

    @property
    def valid(self) -> tuple[Val, Val]:
        return self.names[1], self.names[2]

    @property
    def memory(self) -> int:
        return SPACE_NUMBERS[self.type.space]

    def encode(self, frame: Any, offset: int, value: Any, context: Context) -> bool:
        if (
            not isinstance(value, Tile)
            or value.type != self.type
            or value.window_pitch != self.pitch
        ):
            return False
        if value.memory is not context.memory(SPACE_NUMBERS[self.type.space]):
            return False
        rows, cols = value.known_valid
        if rows is None or cols is None:
            return False
        struct.pack_into("<qqq", frame, offset, value.address, rows, cols)
        return True

    def decode(self, frame: Any, offset: int, context: Context) -> Any:
        address, rows, cols = struct.unpack_from("<qqq", frame, offset)
        memory, type = context.memory(SPACE_NUMBERS[self.type.space]), self.type
        pitch = self.pitch
        if pitch is None and type.compact is Compact.NULL:  # its address was checked before
            pitch = type.shape[type.layout.pitch_axis]
        return Tile(type, memory, address, (rows, cols), pitch=pitch)


@dataclass(frozen=True, slots=True)
class ViewDesc(Lowered):
    """A view of global memory: its address, five sizes and five strides in elements."""

    dtype: DType
    layout: GlobalLayout

    @property
    def memory(self) -> Val:
        return self.names[0]

    @property
    def address(self) -> Val:
        return self.names[1]

    @property
    def shape(self) -> tuple[Val, ...]:
        return self.names[2:7]

    @property
    def strides(self) -> tuple[Val, ...]:
        return self.names[7:12]

    def encode(self, frame: Any, offset: int, value: Any, context: Context) -> bool:
        if not isinstance(value, GlobalTensor) or value.layout is not self.layout:
            return False
        number = context.number(value.memory)
        if value.dtype is not self.dtype or number is None:
            return False
        struct.pack_into("<12q", frame, offset, number, value.address, *value.shape, *value.strides)
        return True

    def decode(self, frame: Any, offset: int, context: Context) -> Any:
        number, address, *rest = struct.unpack_from("<12q", frame, offset)
        shape, strides = tuple(rest[:5]), tuple(rest[5:])
        memory = context.memory(number)
        return GlobalTensor(memory, address, self.dtype, shape, strides, self.layout)  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True)
class Handle(Lowered):
    """Any other value: its number in the context's list of objects."""

    def encode(self, frame: Any, offset: int, value: Any, context: Context) -> bool:
        context.objects.append(value)
        struct.pack_into("<q", frame, offset, len(context.objects) - 1)
        return True

    def decode(self, frame: Any, offset: int, context: Context) -> Any:
        (number,) = struct.unpack_from("<q", frame, offset)
        return context.objects[number]


@dataclass(frozen=True, slots=True)
class Nothing(Lowered):
    """A session or an event, which has no value."""

    def encode(self, frame: Any, offset: int, value: Any, context: Context) -> bool:
        return isinstance(value, Token)

    def decode(self, frame: Any, offset: int, context: Context) -> Any:
        return TOKEN


_PENDING: Final = BLOCK_BYTE_SIZE  # bytes that a store stream buffers, at most


@dataclass(frozen=True, slots=True)
class Stream(Lowered):
    """The state of an unaligned stream, of either kind.

    A store: memory (-1: nothing yet), address of the first buffered byte, number of bytes, the
    address of a flush, the bytes. A load: memory, number of its block, -1.
    """

    @property
    def types(self) -> tuple[str, ...]:
        return (I64, I64, I64, I64, vector(_PENDING, I8))

    @property
    def nbytes(self) -> int:
        return 32 + _PENDING

    def encode(self, frame: Any, offset: int, value: Any, context: Context) -> bool:
        if isinstance(value, LoadState):
            number = context.number(value.memory)
            words, held = (value.block, -1, 0), b""
        elif isinstance(value, StoreState):
            number = -1 if value.memory is None else context.number(value.memory)
            words, held = (value.address, len(value.pending), value.mark), value.pending
        else:
            return False
        if number is None:
            return False
        struct.pack_into(f"<qqqq{_PENDING}s", frame, offset, number, *words, held)
        return True

    def decode(self, frame: Any, offset: int, context: Context) -> Any:
        words = struct.unpack_from(f"<qqqq{_PENDING}s", frame, offset)
        number, address, count, mark, held = words
        if count < 0:
            return LoadState(context.memory(number), address)
        memory = None if number < 0 else context.memory(number)
        return StoreState(memory, held[:count], address, mark)


SPACE_NUMBERS: Final = {space: n for n, space in enumerate(Space)}


def known(word: ScalarValue) -> Any:
    """The constant value of a scalar; None if it is not a constant."""
    name = word.name
    return name.value if isinstance(name, Constant) else name if isinstance(name, int) else None


def word_type(type: t.Scalar) -> str:
    if type.dtype is None:
        return I64
    return number(type.dtype)


def register_type(dtype: DType) -> str:
    return vector(dtype.lanes, element(dtype))
