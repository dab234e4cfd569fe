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
from pto.run.jit.ir.kinds import Kind, unsupported_if
from pto.run.jit.llvm.text import I8, I64, element, number, vector
from pto.run.jit.llvm.value import Val, facts
from pto.run.jit.runtime.context import Context

Part = tuple[str, Val]  # LLVM type, name


@dataclass(frozen=True, slots=True)
class Lowered:
    """Base class: `names` are LLVM scalars with the types of `parts`, 64-bit words by default."""

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

    def names_like(self, form: Lowered) -> tuple[Val, ...]:
        """The names of a value that has to be of this form."""
        unsupported_if(not self.is_like(form), "values of different forms meet")
        return self.names

    @property
    def nbytes(self) -> int:
        """Bytes in the argument buffer."""
        return 8 * len(self.names)

    def encode(self, frame: memoryview, offset: int, value: object, context: Context) -> bool:
        """Write a Python value to the buffer; False if this representation cannot hold it."""
        words = self.words_of(value, context)
        if words is not None:
            struct.pack_into(f"<{len(words)}q", frame, offset, *words)
        return words is not None

    def decode(self, frame: memoryview, offset: int, context: Context) -> Any:
        return self.value_of(context, *struct.unpack_from(f"<{len(self.names)}q", frame, offset))

    def words_of(self, value: object, context: Context) -> tuple[int, ...] | None:
        """A Python value as words, one for each name; None if this cannot hold it."""
        raise NotImplementedError

    def value_of(self, context: Context, *words: int) -> Any:
        """The Python value of words."""
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

    def encode(self, frame: memoryview, offset: int, value: object, context: Context) -> bool:
        struct.pack_into("<Q", frame, offset, to_bits(self.type, value))
        return True

    def decode(self, frame: memoryview, offset: int, context: Context) -> Any:
        kind = self.type.dtype
        (bits,) = struct.unpack_from("<Q", frame, offset)
        return from_bits(self.type, bits & ((1 << (64 if kind is None else kind.bits)) - 1))


@dataclass(frozen=True, slots=True)
class LaneVector(Lowered):
    """Lanes in one LLVM vector; in the argument buffer `count` elements of the type `item`."""

    @property
    def name(self) -> str:
        return str(self.names[0])

    @property
    def item(self) -> Kind:
        raise NotImplementedError

    @property
    def count(self) -> int:
        return VREG_BYTES // self.item.itemsize

    @property
    def nbytes(self) -> int:
        return -(-self.count * self.item.itemsize // 8) * 8

    def encode(self, frame: memoryview, offset: int, value: object, context: Context) -> bool:
        raw = np.ascontiguousarray(value).tobytes()
        if len(raw) != self.count * self.item.itemsize:
            return False
        frame[offset : offset + len(raw)] = raw
        return True

    def decode(self, frame: memoryview, offset: int, context: Context) -> Any:
        return np.frombuffer(frame, self.item, self.count, offset).copy()


@dataclass(frozen=True, slots=True)
class Mask(LaneVector):
    """A predicate: one bit for each `width` bytes of a register, the bits between them off."""

    width: int

    @property
    def lanes(self) -> int:
        return VREG_BYTES // self.width

    @property
    def types(self) -> tuple[str, ...]:
        return (vector(self.lanes, "i1"),)

    @property
    def item(self) -> Kind:
        return np.dtype(np.bool_)


@dataclass(frozen=True, slots=True)
class Vector(LaneVector):
    """A register or a logical vector; a logical mask where there is no type."""

    dtype: DType | None
    lanes: int

    @property
    def count(self) -> int:
        return self.lanes

    @property
    def types(self) -> tuple[str, ...]:
        return (vector(self.lanes, "i1" if self.dtype is None else element(self.dtype)),)

    @property
    def item(self) -> Kind:
        """The element type in the argument buffer: a mask has a byte a lane."""
        return np.dtype(np.bool_) if self.dtype is None else self.dtype.numpy


@dataclass(frozen=True, slots=True)
class Array(Lowered):
    """A small array of words: its number in the context's list of objects, or -1 for one that
    compiled code has made; and its machine address."""

    count: int

    @property
    def address(self) -> Val:
        return self.names[1]

    def words_of(self, value: Any, context: Context) -> tuple[int, ...]:
        context.objects.append(value)
        return len(context.objects) - 1, value.ctypes.data

    def value_of(self, context: Context, *words: int) -> Any:
        number, address = words
        if number >= 0:
            return context.objects[number]
        return np.ctypeslib.as_array((ctypes.c_int64 * self.count).from_address(address))


@dataclass(frozen=True, slots=True)
class InMemory(Lowered):
    """Names a place: the number of a memory in the context, and a byte address there."""

    @property
    def memory(self) -> Val:
        return self.names[0]

    @property
    def address(self) -> Val:
        return self.names[1]


@dataclass(frozen=True, slots=True)
class PointerDesc(InMemory):
    """A pointer."""

    elem: DType | None

    def words_of(self, value: object, context: Context) -> tuple[int, ...] | None:
        if not isinstance(value, Pointer) or value.dtype is not self.elem:
            return None
        number = context.number(value.memory)
        return None if number is None else (number, value.address)

    def value_of(self, context: Context, *words: int) -> Pointer:
        return Pointer(context.memory(words[0]), words[1], self.elem)


@dataclass(frozen=True, slots=True)
class OwnDesc(InMemory):
    """Arrays of work items (`Own`): number of the memory, first address, distance in bytes."""

    def words_of(self, value: object, context: Context) -> tuple[int, ...] | None:
        if not isinstance(value, Own):
            return None
        number = context.number(value.memory, own=True)
        return None if number is None else (number, value.address, value.nbytes)

    def value_of(self, context: Context, *words: int) -> Own:
        number, address, nbytes = words
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

    def words_of(self, value: object, context: Context) -> tuple[int, ...] | None:
        if not isinstance(value, Tile) or value.type != self.type:
            return None
        if value.window_pitch != self.pitch:
            return None
        rows, cols = value.known_valid
        if rows is None or cols is None or value.memory is not context.memory(self.memory):
            return None
        return value.address, rows, cols

    def value_of(self, context: Context, *words: int) -> Tile:
        (address, rows, cols) = words
        type = self.type
        pitch = self.pitch
        if pitch is None and type.compact is Compact.NULL:  # its address was checked before
            pitch = type.shape[type.layout.pitch_axis]
        return Tile(type, context.memory(self.memory), address, (rows, cols), pitch=pitch)


@dataclass(frozen=True, slots=True)
class ViewDesc(InMemory):
    """A view of global memory: its address, five sizes and five strides in elements."""

    dtype: DType
    layout: GlobalLayout

    @property
    def shape(self) -> tuple[Val, ...]:
        return self.names[2:7]

    @property
    def strides(self) -> tuple[Val, ...]:
        return self.names[7:12]

    def words_of(self, value: object, context: Context) -> tuple[int, ...] | None:
        if not isinstance(value, GlobalTensor) or value.layout is not self.layout:
            return None
        number = context.number(value.memory)
        if value.dtype is not self.dtype or number is None:
            return None
        return number, value.address, *value.shape, *value.strides

    def value_of(self, context: Context, *words: int) -> GlobalTensor:
        memory = context.memory(words[0])
        address = words[1]
        numbers = (words[2:7], words[7:])
        return GlobalTensor(memory, address, self.dtype, *numbers, self.layout)  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True)
class Handle(Lowered):
    """Any other value: its number in the context's list of objects."""

    def words_of(self, value: object, context: Context) -> tuple[int, ...]:
        context.objects.append(value)
        return (len(context.objects) - 1,)

    def value_of(self, context: Context, *words: int) -> Any:
        return context.objects[words[0]]


@dataclass(frozen=True, slots=True)
class Nothing(Lowered):
    """A session or an event, which has no value."""

    def words_of(self, value: object, context: Context) -> tuple[int, ...] | None:
        return () if isinstance(value, Token) else None

    def value_of(self, context: Context, *words: int) -> Token:
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

    def encode(self, frame: memoryview, offset: int, value: object, context: Context) -> bool:
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

    def decode(self, frame: memoryview, offset: int, context: Context) -> Any:
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
    return name if isinstance(name, int) else facts(name).constant


def word_type(type: t.Scalar) -> str:
    if type.dtype is None:
        return I64
    return number(type.dtype)
