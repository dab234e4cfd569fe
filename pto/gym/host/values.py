"""The values of a host program: memory blocks, pointers, places, structs, functions.

Numbers are Python ints and floats, text is str, nullptr is None. Conversions between C++ types are
here; statements are not.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from pto.core.errors import Loc, PtoError, fail
from pto.gym.host.syntax import ARITHMETIC, CType, FunctionDef, StructDef

if TYPE_CHECKING:
    from pto.gym.host.interpreter import Interpreter

Space = Literal["host", "device"]
Value = Any  # one of the classes here, int, float, bool, str or None
CHAR = ARITHMETIC["char"]


def cannot_follow(message: str, loc: Loc | None = None) -> PtoError:
    """The host program is readable, and does something that cannot be followed."""
    return fail("PTO-U063", message, loc=loc)


class Variable:
    """A variable."""

    __slots__ = ("type", "value")

    def __init__(self, type: CType, value: Value = None) -> None:
        self.type = type
        self.value = value

    def get(self) -> Value:
        return self.value

    def set(self, value: Value) -> None:
        self.value = converted(value, self.type)


@dataclass(eq=False, slots=True)
class MemoryBlock:
    """Memory of one allocation.

    Device memory comes in pages: `data` has the requested size, `pages` is what a kernel can
    access.
    """

    data: npt.NDArray[np.uint8]
    pages: npt.NDArray[np.uint8]
    space: Space
    is_freed: bool = False


@dataclass(frozen=True, slots=True)
class CPointer:
    """An address inside a block; `type` is what it points to, None for void."""

    block: MemoryBlock
    offset: int
    type: CType | None = None

    @property
    def step(self) -> int:
        return (self.type.size if self.type else 1) or 1

    def moved(self, elements: int) -> CPointer:
        return CPointer(self.block, self.offset + elements * self.step, self.type)

    def span(self, count: int) -> npt.NDArray[np.uint8]:
        """The `count` bytes from here, which must be inside the block."""
        if self.block.is_freed:
            raise cannot_follow("memory is used after it was freed")
        size = self.block.data.size
        if count < 0 or self.offset < 0 or self.offset + count > size:
            where = f"{count} bytes at offset {self.offset}"
            raise cannot_follow(f"{where} reach outside a buffer of {size} bytes")
        return self.block.data[self.offset : self.offset + count]

    @property
    def place(self) -> Pointed:
        """The number in memory that is pointed at."""
        if self.type is None or self.type.numpy is None:
            raise cannot_follow(f"a pointer to {self.type or 'void'} stands for no number")
        return Pointed(self, self.type, self.type.numpy)


@dataclass(frozen=True, slots=True)
class Pointed:
    """A number in memory."""

    pointer: CPointer
    type: CType
    dtype: np.dtype[Any]

    def get(self) -> Value:
        return self.pointer.span(self.dtype.itemsize).view(self.dtype)[0].item()

    def set(self, value: Value) -> None:
        self.pointer.span(self.dtype.itemsize)[:] = bytes_of(value, self.type)


@dataclass(frozen=True, slots=True)
class Reference:
    """The address of a variable."""

    place: LValue


@dataclass(eq=False, slots=True)
class CArray:
    """Elements that are not plain numbers: rows of a table, names, functions."""

    items: list[Value]
    type: CType


@dataclass(frozen=True, slots=True)
class ElementRef:
    array: CArray
    index: int

    @property
    def type(self) -> CType:
        return self.array.type

    def get(self) -> Value:
        return self.array.items[self.index]

    def set(self, value: Value) -> None:
        self.array.items[self.index] = converted(value, self.type)


@dataclass(eq=False, slots=True)
class CStruct:
    definition: StructDef
    fields: dict[str, Value] = field(default_factory=dict[str, Value])

    def assign(self, name: str, value: Value) -> None:
        """Set a field; the other names of a union's place follow."""
        place = next((p for p in self.definition.places if name in p), (name,))
        for each in place:
            self.fields[each] = value


@dataclass(frozen=True, slots=True)
class FieldRef:
    struct: CStruct
    name: str

    @property
    def type(self) -> CType:
        return self.struct.definition.types[self.name]

    def get(self) -> Value:
        return self.struct.fields[self.name]

    def set(self, value: Value) -> None:
        self.struct.assign(self.name, converted(value, self.type))


# Places that can be read and assigned; a reference to one is the place itself.
LValue = Variable | Pointed | ElementRef | FieldRef


class Env:
    """Names and their values, and the program they are of."""

    __slots__ = ("machine", "names", "parent")

    def __init__(self, machine: Interpreter, parent: Env | None = None) -> None:
        self.machine = machine
        self.names: dict[str, LValue] = {}
        self.parent = parent

    def inner(self) -> Env:
        return Env(self.machine, self)

    def resolved(self, type: CType) -> CType:
        """The argument of a template parameter; any other type as it is."""
        if type.numpy is not None or type.is_pointer:
            return type
        bound = self.find(f"typename {type.name}")
        return type if bound is None else bound.get()

    def find(self, name: str) -> LValue | None:
        scope: Env | None = self
        while scope is not None:
            cell = scope.names.get(name)
            if cell is not None:
                return cell
            scope = scope.parent
        return None

    def declare(self, name: str, type: CType, value: Value = None) -> None:
        self.names[name] = Variable(type, value)


@dataclass(frozen=True, slots=True)
class Closure:
    """A function with the scope it sees; a lambda sees the scope it was made in."""

    definition: FunctionDef
    scope: Env


@dataclass(frozen=True, slots=True)
class Builtin:
    """A call a runtime answers; `by_reference` are the arguments it assigns to."""

    name: str
    call: Callable[..., Value]  # takes the runtime first
    by_reference: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class CScalar:
    """A number with its C++ type: what a kernel receives by value."""

    type: CType
    value: int | float


def converted(value: Value, type: CType) -> Value:
    """`value` as C++ stores it in a variable of `type`."""
    if type.numpy is not None:
        return _number(value, type)
    if type.target is None:
        return value
    if isinstance(value, CPointer):
        return CPointer(value.block, value.offset, None if type.name == "void *" else type.target)
    if isinstance(value, CVector):
        raise cannot_follow(f"a vector is no {type}: `.data()` is")
    return None if is_number(value) and value == 0 else value


def is_number(value: Value) -> bool:
    return isinstance(value, int | float)


def _number(value: Value, type: CType) -> int | float | bool:
    dtype = type.numpy
    assert dtype is not None
    if dtype.kind == "b":
        return bool(value)
    if not isinstance(value, int | float):
        raise cannot_follow(f"{described(value)} is no {type}")
    if dtype.kind in "iu":
        bits = dtype.itemsize * 8
        wrapped = int(value) & ((1 << bits) - 1)
        return wrapped - (1 << bits) if dtype.kind == "i" and wrapped >> (bits - 1) else wrapped
    return np.asarray(value, np.float64).astype(dtype).item()


def bytes_of(value: Value, type: CType) -> npt.NDArray[np.uint8]:
    """The bytes a number of `type` has in memory."""
    number = _number(value, type)
    return np.asarray([number]).astype(type.numpy).view(np.uint8)


def is_true(value: Value) -> bool:
    if isinstance(value, int | float):
        return value != 0
    if value is None:
        return False
    good: bool | None = getattr(value, "good", None)  # a file stream
    return True if good is None else good


def text_of(value: Value) -> str:
    """A C string or std::string."""
    if isinstance(value, str):
        return value
    if isinstance(value, CPointer):
        raw = value.span(value.block.data.size - value.offset).tobytes()
        return raw.split(b"\0", 1)[0].decode("utf-8", "replace")
    raise cannot_follow(f"{described(value)} is no text")


@dataclass(eq=False, slots=True)
class CVector:
    """std::vector and std::array of numbers."""

    start: CPointer
    count: int


_KINDS = {"Closure": "function", "FileStream": "stream"}  # as messages name them


def described(value: Value) -> str:
    if value is None:
        return "nullptr"
    if isinstance(value, int | float | str):
        return repr(value)
    name = type(value).__name__
    return f"a {_KINDS.get(name, name.removeprefix('C').lower())}"


def size_of(type: CType, structs: Mapping[str, StructDef], depth: int = 0) -> int:
    """sizeof: structs with the alignment of their fields."""
    if type.size is not None:
        return type.size
    struct = structs.get(type.name)
    if struct is None or depth > 8:
        raise cannot_follow(f"the size of {type} is not known")
    total, widest = 0, 1
    for place in struct.places:
        sizes = [size_of(struct.types[n], structs, depth + 1) for n in place]
        align = min(8, max([*sizes, 1]))
        total = -(-total // align) * align + max(sizes, default=0)
        widest = max(widest, align)
    return -(-total // widest) * widest
