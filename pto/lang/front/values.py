"""Variables around a branch or loop, and the values that they have where control flow joins.

Numbers and registers are values of the program; a tile is a buffer, so the tiles that a variable
may stand for are copied into one buffer. `lang/coalesce.py` removes the copies that are not needed.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from types import FunctionType
from typing import Any

from pto.core.dtypes import F32, I1
from pto.core.tile import Role
from pto.ir.builder import INDEX, scalar_type
from pto.ir.graph import Operation
from pto.isa.handle.tile import ALLOC_TILE
from pto.isa.row.types import Scalar as ScalarType
from pto.isa.row.types import TileBuf
from pto.lang.call import instructions
from pto.lang.call.place import mistake
from pto.lang.call.session import Handle
from pto.lang.express.algebra import everywhere
from pto.lang.express.shapes import flat, is_column, set_region
from pto.lang.trace import Trace
from pto.lang.values.registers import Mask, Vreg
from pto.lang.values.scalars import Scalar, is_number
from pto.lang.values.tiles import Tile, same_region
from pto.lang.values.views import Global, View

MISSING: Any = object()  # the value of a variable that has none
UNSET: Any = object()  # the result of a function that has not returned yet: never read
BOOLEAN = scalar_type(I1)
Key = Any  # the name of a variable, or a carry
Values = dict[Key, Any]


class Unjoinable(Exception):
    """Two values that no one value of the program stands for; the argument tells why."""


class Slots:
    """The variables that blocks of a function share with it, and the carries of a trace."""

    def __init__(self, blocks: Iterable[Callable[..., Any] | None], carries: Sequence[Any]) -> None:
        self._cells: dict[str, Any] = {}
        for block in blocks:
            if block is not None:
                names = block.__code__.co_freevars
                self._cells.update(zip(names, block.__closure__ or (), strict=True))
        self.carries = list(carries)

    def read(self) -> Values:
        found: Values = {each: each.value for each in self.carries}
        for name, cell in self._cells.items():
            try:
                found[name] = cell.cell_contents
            except ValueError:
                found[name] = MISSING
        return found

    def write(self, values: Values) -> None:
        for each in self.carries:
            each.put(values[each])
        for name, cell in self._cells.items():
            if values[name] is not MISSING:
                cell.cell_contents = values[name]
            else:
                with suppress(ValueError):
                    del cell.cell_contents


# ---- containers, which Python changes while it traces


def contents(values: Values) -> dict[Key, list[Any]]:
    """What lists, sets, dictionaries and objects of the user's classes hold."""
    return {key: held for key, value in values.items() if (held := _held(value)) is not None}


def _held(value: Any) -> list[Any] | None:
    if isinstance(value, list | set):
        return list(value)  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
    if isinstance(value, dict):
        return [*value.values()]  # pyright: ignore[reportUnknownVariableType]
    home = getattr(type(value), "__module__", "").partition(".")[0]
    if home in ("pto", "numpy", "builtins", "types") or isinstance(value, type | FunctionType):
        return None
    held = getattr(value, "__dict__", None)
    return [*held.values()] if isinstance(held, dict) else None  # pyright: ignore[reportUnknownVariableType]


def require_contents(trace: Trace, before: dict[Key, list[Any]], values: Values) -> None:
    """Raise if a container was changed: the block is traced once, whether or how often it runs. A
    value that was made in the block is not seen outside it, which is told where it is used."""
    for key, held in before.items():
        now = _held(values.get(key))
        if now is None or (len(now) == len(held) and all(map(operator.is_, now, held))):
            continue
        new = [each for each in now if not any(each is old for old in held)]
        if new and all(isinstance(v, Handle) and not trace.builder.sees(v.value) for v in new):
            continue
        raise mistake(
            "PTO-U217",
            f"what `{key}` holds is changed inside a branch or loop of the program, which is traced"
            " once",
            help="bind variables instead, also to a new tuple or list of the same length",
        )


# ---- values made of values


def parts(value: Any) -> list[Any] | None:
    """The elements of a tuple or list; None for any other value."""
    return list(value) if isinstance(value, tuple | list) else None  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]


def alike(a: Any, b: Any) -> bool:
    """True if both are tuples, or lists, of one length."""
    return type(a) is type(b) and isinstance(a, tuple | list) and len(a) == len(b)  # pyright: ignore[reportUnknownArgumentType]


def leaves(value: Any) -> list[Any]:
    found = parts(value)
    return [value] if found is None else [leaf for each in found for leaf in leaves(each)]


def rebuilt(like: Any, made: Iterator[Any]) -> Any:
    """A value of the structure of `like` with other leaves."""
    found = parts(like)
    if found is None:
        return next(made)
    new = [rebuilt(each, made) for each in found]
    return type(like)(*new) if hasattr(like, "_fields") else type(like)(new)


def same_structure(a: Any, b: Any) -> bool:
    first, second = parts(a), parts(b)
    if first is None or second is None:
        return first is second
    return alike(a, b) and all(same_structure(x, y) for x, y in zip(first, second, strict=True))


# ---- numbers and registers


def is_plain(value: Any) -> bool:
    """A number of Python or of the program."""
    return is_number(value) or isinstance(value, Scalar)


def is_register(value: Any) -> bool:
    return isinstance(value, Vreg | Mask) or (
        isinstance(value, Handle) and not isinstance(value, Tile | Scalar | Global | View)
    )


def is_same(a: Any, b: Any) -> bool:
    """The same object, or equal constants of one type."""
    if a is b:
        return True
    return type(a) is type(b) and isinstance(a, int | float | str | bytes) and a == b


def kind_of(number: Any) -> ScalarType:
    if isinstance(number, Scalar):
        return number.scalar
    if isinstance(number, bool):
        return BOOLEAN
    return INDEX if isinstance(number, int) else scalar_type(F32)


def common_kind(a: Any, b: Any) -> ScalarType:
    """The type that holds either of two numbers; a number of Python takes that of the other."""
    first, second = kind_of(a), kind_of(b)
    if first == second:
        return first
    if is_number(a) and is_number(b):
        if BOOLEAN in (first, second):
            raise Unjoinable(f"it is {a!r} or {b!r}")
        return scalar_type(F32)
    for number, kind in ((a, second), (b, first)):
        fits = is_number(number) and (kind.is_float or isinstance(number, int))
        if fits and (kind == BOOLEAN) == isinstance(number, bool):
            return kind
    if is_number(a) or is_number(b) or first.is_float or second.is_float:
        raise Unjoinable(f"it is {words(a)} or {words(b)}")
    if INDEX in (first, second) and BOOLEAN not in (first, second):
        return INDEX
    raise Unjoinable(f"it is {words(a)} or {words(b)}")


def words(value: Any) -> str:
    """A value as a message shows it."""
    if value is MISSING:
        return "unbound"
    if isinstance(value, Scalar):
        return f"a number of type {value.scalar.name}"
    if isinstance(value, Tile):
        return f"a tile of {value.rows}x{value.cols} {value.dtype}"
    if isinstance(value, Global | View):
        return "a window on global memory"
    if isinstance(value, Handle):
        return f"a {value.type.kind}"
    return f"{value!r}"[:40]


# ---- tiles


def require_one_tile_type(a: Tile, b: Tile) -> None:
    """Raise Unjoinable unless one buffer can hold either tile."""
    for each in (a, b):
        maker = each.value.maker
        if each.spec.role is not Role.VEC:
            raise Unjoinable(
                f"it would be one of two tiles of role {each.role}, and only tiles of the vector"
                " unit are copied"
            )
        if maker is None or maker.row is not ALLOC_TILE:
            raise Unjoinable(
                "it would be one of two windows on tiles: choose the offset, and index once"
            )
    if _whole(a) != _whole(b) or a.fixed != b.fixed or (a.fixed and a.value.type != b.value.type):
        raise Unjoinable(f"it is {words(a)} or {words(b)}, and one buffer holds one of them")


def _whole(t: Tile) -> TileBuf:
    type = t.value.type
    assert isinstance(type, TileBuf)
    return TileBuf(type.elem, replace(type.tile, valid=type.tile.shape))


def buffer(trace: Trace, like: Tile, name: str) -> Tile:
    """A tile of its own of the type of another one."""
    type = like.value.type
    assert isinstance(type, TileBuf)
    made = trace.alloc(
        type if like.fixed else _whole(like), like.known_region if like.fixed else None, None
    )
    made.value.name, made.asked = name, like.asked
    return made


def copy(trace: Trace, dst: Tile, src: Tile) -> None:
    """`src` into `dst`, with its valid region: a tmov that may turn out to be needless."""
    if is_column(dst):
        set_region(dst, *trace.region(src))
    dst.is_filled = False
    with everywhere(dst, src):
        instructions.tmov(flat(dst), flat(src))
        op = trace.builder.block.ops[-1]
    trace.copies.append(op)


@contextmanager
def ahead_of(trace: Trace, op: Operation) -> Generator[None]:
    """Operations that are appended here stand before `op`."""
    block = trace.builder.block
    known = {id(each) for each in block.ops}
    yield
    after = block.ops[block.ops.index(op) + 1 :]
    new = [each for each in after if id(each) not in known]
    block.ops[:] = [each for each in block.ops if each not in new]
    at = block.ops.index(op)
    block.ops[at:at] = new


def static_region(t: Tile) -> tuple[int, int] | None:
    rows, cols = t.known_region
    return (rows, cols) if isinstance(rows, int) and isinstance(cols, int) else None


def one_region(a: Tile, b: Tile) -> bool:
    return same_region(a.known_region, b.known_region)
