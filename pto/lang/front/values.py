"""Variables around a branch or loop, and the values that they have where control flow joins.

Numbers and registers are SSA values; a tile is a buffer, so the possible tiles of a variable are
copied into one buffer. `lang/coalesce.py` removes unnecessary copies.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from enum import Enum
from types import CellType, FunctionType
from typing import Any, TypeGuard

from pto import isa
from pto.core.dtypes import F32, I1
from pto.core.tile import Role
from pto.ir.builder import INDEX, scalar_type
from pto.ir.graph import Operation
from pto.isa.handle.tile import ALLOC_TILE
from pto.isa.row.types import Scalar as ScalarType
from pto.isa.row.types import TileBuf
from pto.lang.call.session import ValueHandle
from pto.lang.express.algebra import everywhere
from pto.lang.express.shapes import flat, is_column, set_region
from pto.lang.front.exits import RETURNED
from pto.lang.trace import Trace
from pto.lang.values.registers import Mask, Vreg
from pto.lang.values.scalars import Scalar, is_number
from pto.lang.values.tiles import Tile
from pto.lang.values.views import Global, View

MISSING: object = object()  # the value of a variable that has none
UNSET: object = object()  # the result of a function that has not returned yet: never read
BOOLEAN = scalar_type(I1)


class Unjoinable(Exception):
    """Two values cannot be joined to one value of the program; the argument is the reason."""


@dataclass(frozen=True, slots=True, eq=False)
class OuterVariable:
    """A variable of the body of a `for` statement, in a generator that this statement runs."""

    name: str
    cell: CellType
    block: OuterBlock


class Expression(Enum):
    """The value of a branch that is an expression: a key beside the variables."""

    RESULT = "result"


Key = str | OuterVariable | Expression  # a variable of the function, or of a body around it
Values = dict[Key, Any]


class OuterBlock:
    """The body of a `for` statement over a generator; its statements may call it anywhere."""

    def __init__(
        self, blocks: Iterable[Callable[..., object] | None], read_later: Iterable[str]
    ) -> None:
        self.blocks = [block for block in blocks if block is not None]
        self.read_later = {*read_later}  # by its next call, or after the loop
        cells = {name: cell for block in self.blocks for name, cell in _cells(block)}
        self.variables = [OuterVariable(name, cell, self) for name, cell in cells.items()]


def _cells(block: Callable[..., object]) -> Iterable[tuple[str, CellType]]:
    return zip(block.__code__.co_freevars, block.__closure__ or (), strict=True)


class VariableSlots:
    """The variables that blocks of a function share with it, and those of loops over generators
    around it."""

    def __init__(self, blocks: Iterable[Callable[..., object] | None], trace: Trace) -> None:
        self._cells: dict[Key, CellType] = {}
        self.blocks = [block for block in blocks if block is not None]
        for block in self.blocks:
            self._cells.update(_cells(block))
        self.always: set[Key] = set()  # variables that may be read at any time
        for outer in trace.outer:
            self.blocks += outer.blocks
            self._add(outer)

    def _add(self, outer: OuterBlock) -> None:
        for variable in outer.variables:
            shared = (key for key, cell in self._cells.items() if cell is variable.cell)
            key = next(shared, variable)
            self._cells[key] = variable.cell
            if variable.name in outer.read_later:
                self.always.add(key)

    def read(self) -> Values:
        contents: Values = {}
        for name, cell in self._cells.items():
            try:
                contents[name] = cell.cell_contents
            except ValueError:
                contents[name] = MISSING
        return contents

    def write(self, values: Values) -> None:
        for name, cell in self._cells.items():
            if values[name] is not MISSING:
                cell.cell_contents = values[name]
            else:
                with suppress(ValueError):
                    del cell.cell_contents


# ---- values made of values


def parts(value: object) -> list[object] | None:
    """The elements of a tuple or list; None for any other value."""
    return list(value) if isinstance(value, tuple | list) else None  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]


def alike(a: Any, b: Any) -> bool:
    """True if both are tuples, or lists, of one length."""
    return type(a) is type(b) and isinstance(a, tuple | list) and len(a) == len(b)  # pyright: ignore[reportUnknownArgumentType]


def leaves(value: object) -> list[object]:
    inner = parts(value)
    return [value] if inner is None else [leaf for part in inner for leaf in leaves(part)]


def rebuilt(like: object, new_leaves: Iterator[object]) -> object:
    """A value of the structure of `like` with other leaves."""
    inner = parts(like)
    if inner is None:
        return next(new_leaves)
    return with_parts(like, [rebuilt(part, new_leaves) for part in inner])


def with_parts(like: object, new: Sequence[object]) -> object:
    """A tuple or list of the type of `like` with other elements."""
    kind: Any = type(like)
    return kind(*new) if hasattr(like, "_fields") else kind(new)


def same_structure(a: object, b: object) -> bool:
    first, second = parts(a), parts(b)
    if first is None or second is None:
        return first is second
    return alike(a, b) and all(same_structure(x, y) for x, y in zip(first, second, strict=True))


# ---- numbers and registers


def is_plain(value: object) -> bool:
    """A number of Python or of the program."""
    return is_number(value) or isinstance(value, Scalar)


def is_register(value: object) -> TypeGuard[ValueHandle]:
    return isinstance(value, Vreg | Mask) or (
        isinstance(value, ValueHandle) and not isinstance(value, Tile | Scalar | Global | View)
    )


def is_same(a: object, b: object) -> bool:
    """The same object, or equal constants of one type."""
    if a is b:
        return True
    return type(a) is type(b) and isinstance(a, int | float | str | bytes) and a == b


def kind_of(number: object) -> ScalarType:
    if isinstance(number, Scalar):
        return number.scalar
    if isinstance(number, bool):
        return BOOLEAN
    return INDEX if isinstance(number, int) else scalar_type(F32)


def common_kind(a: object, b: object) -> ScalarType:
    """The common type of two numbers; a Python number takes the type of the other."""
    first, second = kind_of(a), kind_of(b)
    if first == second:
        return first
    both = first, second
    if is_number(a) and is_number(b) and BOOLEAN not in both:
        return scalar_type(F32)
    for number, kind in ((a, second), (b, first)):
        fits = is_number(number) and (kind.is_float or isinstance(number, int))
        if fits and (kind == BOOLEAN) == isinstance(number, bool):
            return kind
    of_program = not (is_number(a) or is_number(b) or first.is_float or second.is_float)
    if of_program and INDEX in both and BOOLEAN not in both:
        return INDEX
    raise Unjoinable(f"it is {words(a)} or {words(b)}")


def name_of(key: Key) -> str | None:
    """The name of a variable; None for the value of an expression."""
    return key if isinstance(key, str) else key.name if isinstance(key, OuterVariable) else None


def has_returned(key: Key, values: Values) -> bool:
    """True if the function of a variable has returned, after a branch with these values."""
    if isinstance(key, OuterVariable):
        flags = (v for v in key.block.variables if v.name == RETURNED)
        return any(values.get(flag) is True for flag in flags)
    return values.get(RETURNED) is True


def words(value: object) -> str:
    """A value as a message shows it."""
    if value is MISSING:
        return "unbound"
    if isinstance(value, Scalar):
        return f"a number of type {value.scalar.name}"
    if isinstance(value, Tile):
        return f"a tile of {value.rows}x{value.cols} {value.dtype}"
    if isinstance(value, Global | View):
        return "a window on global memory"
    if isinstance(value, ValueHandle):
        return f"a {value.type.kind}"
    if isinstance(value, FunctionType):
        return f"the function `{value.__name__}` of line {value.__code__.co_firstlineno}"
    return f"{value!r}"[:40]


# ---- tiles


def require_one_tile_type(a: Tile, b: Tile) -> None:
    """Raise Unjoinable unless one buffer can hold either tile."""
    for tile in (a, b):
        maker = tile.value.maker
        if tile.spec.role is not Role.VEC:
            raise Unjoinable(
                f"it would be one of two tiles of role {tile.role}, and only tiles of the vector"
                " unit are copied"
            )
        if maker is None or maker.row is not ALLOC_TILE:
            raise Unjoinable(
                "it would be a window on one of two tiles: copy the window to a tile of its own,"
                " `own[:] = t[0:8, :]`, or choose the offset and index once"
            )
    if _whole(a) != _whole(b) or a.fixed != b.fixed or (a.fixed and a.value.type != b.value.type):
        raise Unjoinable(f"it is {words(a)} or {words(b)}, and one buffer holds one of them")


def _whole(t: Tile) -> TileBuf:
    type = t.value.type
    assert isinstance(type, TileBuf)
    return TileBuf(type.elem, replace(type.tile, valid=type.tile.shape))


def buffer(trace: Trace, like: Tile, name: str) -> Tile:
    """A new tile with the type of another one."""
    type = like.value.type
    assert isinstance(type, TileBuf)
    tile = trace.alloc(
        type if like.fixed else _whole(like), like.known_region if like.fixed else None, None
    )
    tile.value.name, tile.asked = name, like.asked
    return tile


def copy(trace: Trace, dst: Tile, src: Tile) -> None:
    """Copy `src` into `dst` with its valid region: a tmov that `coalesce` may remove."""
    if is_column(dst):
        set_region(dst, *trace.region(src))
    dst.is_filled = False
    with everywhere(dst, src):
        isa.tmov(flat(dst), flat(src))
        op = trace.builder.block.ops[-1]
    trace.copies.append(op)


@contextmanager
def ahead_of(trace: Trace, op: Operation) -> Generator[None]:
    """A context in which emitted operations are inserted before `op`."""
    block = trace.builder.block
    before = set(block.ops)
    yield
    after = block.ops[block.ops.index(op) + 1 :]
    new = [op_after for op_after in after if op_after not in before]
    for op_after in new:
        op_after.move_before(op)
