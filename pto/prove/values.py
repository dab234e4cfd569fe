"""Integers and windows of global memory as formulas, from the operations that make them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from pto.ir.graph import Operation, Value
from pto.isa.handle.view import MAKE_TENSOR_VIEW, PARTITION_VIEW
from pto.isa.meaning.handle.view import ADD_POINTER, CAST_POINTER, DIMENSION, STRIDE
from pto.isa.meaning.scalar.unit import (
    BLOCK_COUNT,
    BLOCK_INDEX,
    LOAD_SCALAR,
    SUB_BLOCK_COUNT,
    SUB_BLOCK_INDEX,
)
from pto.isa.row import types as t
from pto.isa.row.attributes import word
from pto.prove.decide import always_negative, highest, lowest, never_negative
from pto.prove.number import (
    ZERO,
    Atom,
    Kind,
    Number,
    Symbol,
    maximum,
    minimum,
    number,
    of,
    product,
    quotient,
)

_SUB_BLOCKS: Final = 2  # agents of vector code beside a cube, at most
_DEEPEST: Final = 400  # operations from which one value is computed


@dataclass(frozen=True, slots=True)
class ViewAxis:
    """One dimension of a window: its first index, its size, the stride in bytes, and the size of
    the enclosing view."""

    offset: Number
    size: Number
    stride: Number
    extent: Number


@dataclass(frozen=True, slots=True)
class ViewPart:
    """A part of an array in global memory: `base` is the byte of its first element."""

    root: Value  # the argument of the kernel
    base: Number
    itemsize: int
    axes: tuple[ViewAxis, ...] = ()

    @property
    def start(self) -> Number:
        """The byte of the first element of the window."""
        return sum((product(a.offset, a.stride) for a in self.axes), self.base)

    def mapped(self, put: Callable[[Number], Number]) -> ViewPart:
        """The part with other formulas of where it is, how large, and of how much."""
        axes = (
            replace(a, offset=put(a.offset), size=put(a.size), extent=put(a.extent))
            for a in self.axes
        )
        return replace(self, base=put(self.base), axes=tuple(axes))


class Unknown(Exception):
    """There is no formula; the text is the reason."""


@dataclass(frozen=True, slots=True)
class Later:
    """A number that has this value unless all these counts of iterations are 0."""

    value: Number
    turns: frozenset[Symbol]


class Values:
    """Formulas of the values of one function, for one call."""

    def __init__(self, launch: LaunchSymbols, checks: bool) -> None:
        self.launch = launch
        self.numbers: dict[int, Number] = {}
        self.windows: dict[int, ViewPart] = {}
        self.checks = checks  # whether integers of 32 bits must be proved not to overflow
        self.constant: dict[Value, str] = {}  # arrays that are only read: names of parameters
        self.later: dict[Symbol, Later] = {}
        self._depth = 0

    def copy(self) -> Values:
        copied = Values(self.launch, self.checks)
        copied.numbers, copied.windows = dict(self.numbers), dict(self.windows)
        copied.constant, copied.later = self.constant, dict(self.later)
        return copied

    # ---- integers

    def number(self, value: Value) -> Number:
        evaluated = self.numbers.get(id(value))
        if evaluated is None:
            evaluated = self.numbers[id(value)] = self._evaluated(value)
        return evaluated

    def unknown(
        self, value: Value, low: Number | None = None, high: Number | None = None
    ) -> Number:
        """The symbol of a value. Integers that are computed alike from the same integers share it,
        and so do loads from one element of an array that is only read."""
        is_read = value.maker is not None and value.maker.body is LOAD_SCALAR
        kind: Kind = "data" if is_read else "value"
        symbol, key = of(self.launch.symbol(f"%{value.name}", kind, low, high)), None
        if self._depth <= _DEEPEST:
            with suppress(Unknown):
                key = self._key(value)
        return symbol if key is None else self.launch.shared.setdefault(key, symbol)

    def _key(self, value: Value) -> Hashable | None:
        """A key that equal values share; None if no key is known."""
        op = value.maker
        if op is None or op.regions:
            return None
        if op.body is LOAD_SCALAR:
            window, index = self.window(op.operands[0]), op.operand("offset")
            array = self.constant.get(window.root)
            if index is None or array is None:
                return None
            return op.name, array, window.base, self.number(index), str(value.type)
        if not op.traits.pure or not all(isinstance(v.type, t.Scalar) for v in op.operands):
            return None  # the valid region of a tile changes
        attrs = tuple(sorted((name, str(attr)) for name, attr in op.attrs.items()))
        return op.name, attrs, str(value.type), *map(self.number, op.operands)

    def _evaluated(self, value: Value) -> Number:
        constant = value.number
        if constant is not None:
            return number(constant)
        op = value.maker
        if op is None or self._depth > _DEEPEST:
            return self.unknown(value)
        self._depth += 1
        try:
            evaluated = self._of_operation(op, value)
        except Unknown:
            evaluated = None
        finally:
            self._depth -= 1
        if evaluated is None or not self._fits(evaluated, value.type):
            return self.unknown(value)
        return evaluated

    def _of_operation(self, op: Operation, value: Value) -> Number | None:
        special = OF_LAUNCH.get(id(op.body))
        if special is not None:
            return special(self.launch)
        if op.body in (DIMENSION, STRIDE):
            return self._of_view(op)
        traits, operands = op.traits, op.operands
        if traits.same_number or traits.operator == "index":
            return self.number(operands[0])
        if not is_integer(value):
            return None
        if traits.signed is False and not all(never_negative(self.number(v)) for v in operands):
            return None
        if traits.operator == "cast" and not _is_float(operands[0]):
            return self.number(operands[0])  # `_fits` checks that it is the same number
        if traits.operator == "select":
            return self._selected(value, *operands)
        work = _WORK.get(traits.operator)
        if work is None or len(operands) != 2 or any(map(_is_float, operands)):
            return None
        return work(*map(self.number, operands))

    def _selected(self, value: Value, condition: Value, *choices: Value) -> Number:
        a, b = map(self.number, choices)
        sure = decided(self, condition, ())
        if sure is not None:
            return a if sure else b
        later: dict[Atom, Number] = {}  # where the condition does not hold
        for symbol in b.symbols():
            later_value = self.later.get(symbol)
            if later_value is not None and self._is_first(condition, later_value.turns):
                later[symbol] = later_value.value
        b = b.replaced(later)
        return a if a == b else self.unknown(value, minimum(a, b), maximum(a, b))

    def _is_first(self, condition: Value, turns: Collection[Symbol]) -> bool:
        """True if a condition holds wherever these counts of iterations are 0."""
        op = condition.maker
        if op is not None and op.traits.operator == "&":
            return all(self._is_first(part, turns) for part in op.operands)
        start: dict[Atom, Number] = dict.fromkeys(turns, ZERO)
        needed = guards(self, condition, True)
        return bool(needed) and all(never_negative(n.replaced(start)) for n in needed)

    def first_or_later(self, turns: Symbol, first: Number, later: Number) -> Number:
        """A number that is `first` in the first iteration of a loop and `later` in all others."""
        if first == later:
            return first
        joined = self.launch.symbol("valid", "value", minimum(first, later), maximum(first, later))
        outer = next((n for s, n in self.later.items() if of(s) == first), None)
        counts = outer.turns if outer is not None and outer.value == later else ()
        self.later[joined] = Later(later, frozenset([turns, *counts]))
        return of(joined)

    def _of_view(self, op: Operation) -> Number | None:
        window, at = self.window(op.operands[0]), op.operands[1].number
        if at is None or not 0 <= at < len(window.axes):
            return None
        axis = window.axes[at]
        return axis.size if op.body is DIMENSION else quotient(axis.stride, number(window.itemsize))

    def _fits(self, value: Number, type: t.Type) -> bool:
        """True if an integer type always holds the number; index counts as wide enough."""
        if not isinstance(type, t.Scalar) or type.dtype is None:
            return True
        bits = type.dtype.bits
        if bits >= (64 if self.checks else 32):
            return True
        low, high = lowest(value), highest(value)
        signed = not type.name.startswith("u")
        most = 1 << (bits - 1 if signed else bits)
        return (
            low is not None and high is not None and (-most if signed else 0) <= low and high < most
        )

    # ---- windows

    def window(self, value: Value) -> ViewPart:
        """The window of a pointer or view; raises Unknown."""
        part = self.windows.get(id(value))
        if part is None:
            part = self.windows[id(value)] = self._made(value)
        return part

    def _made(self, value: Value) -> ViewPart:
        op = value.maker
        if op is None:
            raise Unknown(f"%{value.name} is handed from one iteration to the next")
        if op.row is MAKE_TENSOR_VIEW:
            return self._view(op, value.type)
        if op.row is PARTITION_VIEW:
            source = self.window(op.operands[0])
            offsets, sizes = (map(self.number, op.group(n)) for n in ("offsets", "sizes"))
            parts = zip(source.axes, offsets, sizes, strict=True)
            axes = (replace(a, offset=a.offset + off, size=size) for a, off, size in parts)
            return replace(source, axes=tuple(axes))
        if op.body is ADD_POINTER:
            source = self.window(op.operands[0])
            step = self.number(op.operands[1]).times(item_bytes(value.type))
            return replace(source, base=source.base + step)
        if op.body is CAST_POINTER and isinstance(op.operands[0].type, t.Ptr):
            return replace(self.window(op.operands[0]), axes=())
        raise Unknown(f"'{op.name}' op gives the place")

    def _view(self, op: Operation, type: t.Type) -> ViewPart:
        source, item = self.window(op.operands[0]), item_bytes(type)
        shape, strides = ([self.number(v) for v in op.group(n)] for n in ("shape", "strides"))
        for size in shape:
            self.launch.assume_size(size)
        axes = (ViewAxis(ZERO, n, by.times(item), n) for n, by in zip(shape, strides, strict=True))
        return replace(source, itemsize=item, axes=tuple(axes))


class LaunchSymbols:
    """Symbols of one launch: the number of blocks, the block, the agent; and new ones."""

    def __init__(self, function: Operation, blocks: int | None = None) -> None:
        """`blocks` None: any number of them."""
        self.depth, one = 0, number(1)
        self.arrays: dict[Value, Number] = {}  # sizes in bytes, if they are known
        self.shared: dict[Hashable, Number] = {}  # by what decides them
        self.blocks = number(blocks) if blocks else of(self.symbol("blocks", "argument", one))
        self.depth = 1
        self.block = self.symbol("block", "block", ZERO, self.blocks - 1)
        self.subs, self.sub = one, ZERO
        sides = {op.own_side() for op in [function, *function.ancestors()][-1].walk()}
        if {"cube", "vector"} <= sides and function.side() != "cube":  # vector code beside a cube
            self.subs = of(self.symbol("subblocks", "value", one, number(_SUB_BLOCKS)))
            self.sub = of(self.symbol("subblock", "value", ZERO, self.subs - 1))

    def symbol(
        self, name: str, kind: Kind, low: Number | None = None, high: Number | None = None
    ) -> Symbol:
        self.depth += 1  # of its bounds, all have been made before
        return Symbol(name, kind, low, high, 0 if kind == "argument" else self.depth)

    def assume_size(self, n: Number) -> None:
        """Assume that an argument that is the size of a view is not negative
        (`make_tensor_view`)."""
        if len(n.terms) == 1 and not n.rest:
            (atom, count), *_ = n.terms
            if isinstance(atom, Symbol) and atom.is_fixed and count == 1 and atom.low is None:
                atom.low = ZERO


def _is_float(value: Value) -> bool:
    return isinstance(value.type, t.Scalar) and value.type.is_float


def _is_truth(value: Value) -> bool:
    return isinstance(value.type, t.Scalar) and value.type.name == "i1"


def is_integer(value: Value) -> bool:
    return isinstance(value.type, t.Scalar) and not value.type.is_float


def item_bytes(type: t.Type) -> int:
    """Bytes of an element; raises Unknown if two elements share one byte."""
    elem = getattr(type, "elem", None)
    dtype = elem.dtype if isinstance(elem, t.Scalar) else None
    if dtype is None or dtype.bits % 8:
        raise Unknown("its elements are smaller than a byte")
    return dtype.bits // 8


def _floor(a: Number, b: Number) -> Number | None:
    return quotient(a, b) if never_negative(b - 1) else None


def _ceiling(a: Number, b: Number) -> Number | None:
    return quotient(a + b - 1, b) if never_negative(b - 1) else None


def _truncated(a: Number, b: Number) -> Number | None:
    return _floor(a, b) if never_negative(a) else None


def _remainder(a: Number, b: Number) -> Number | None:
    truncated = _truncated(a, b)
    return None if truncated is None else a - product(truncated, b)


def _shifted(by: Callable[[Number, Number], Number], a: Number, b: Number) -> Number | None:
    return by(a, number(1 << b.value)) if b.value is not None and 0 <= b.value < 63 else None


_WORK: Final[dict[str, Callable[[Number, Number], Number | None]]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": product,
    "min": minimum,
    "max": maximum,
    "//": _floor,
    "cdiv": _ceiling,
    "quot": _truncated,
    "rem": _remainder,
    "<<": partial(_shifted, product),
    ">>": partial(_shifted, quotient),
}
OF_LAUNCH: Final[dict[int, Callable[[LaunchSymbols], Number]]] = {
    id(BLOCK_INDEX): lambda launch: of(launch.block),
    id(BLOCK_COUNT): lambda launch: launch.blocks,
    id(SUB_BLOCK_INDEX): lambda launch: launch.sub,
    id(SUB_BLOCK_COUNT): lambda launch: launch.subs,
}

# ---- conditions

Guards = tuple[Number, ...]


def guards(values: Values, condition: Value, holds: bool) -> Guards:
    """Numbers that are not negative if a condition holds, or does not; empty if that implies
    nothing about integers."""
    op = condition.maker
    if op is not None and op.traits.operator == "&" and holds and _is_truth(condition):
        return tuple(n for part in op.operands for n in guards(values, part, holds))
    if op is None or op.traits.operator != "compare" or any(map(_is_float, op.operands)):
        return ()
    predicate = word(op.attrs, "predicate") or ""
    a, b = map(values.number, op.operands)
    if predicate.startswith("u") and not (never_negative(a) and never_negative(b)):
        return ()
    name = predicate[1:] if predicate[:1] in ("s", "u") else predicate
    name = name if holds else _OPPOSITE.get(name, "")
    return tuple(COMPARED[name](a, b)) if name in COMPARED else ()


def decided(values: Values, condition: Value, known_guards: Guards) -> bool | None:
    """Whether a condition always holds, or never; None if that is not known."""
    op = condition.maker
    if op is not None and op.traits.operator == "&" and _is_truth(condition):
        parts = [decided(values, part, known_guards) for part in op.operands]
        return False if False in parts else None if None in parts else True
    for holds in (True, False):
        ours, others = (guards(values, condition, h) for h in (holds, not holds))
        if ours and all(never_negative(n, known_guards) for n in ours):
            return holds
        if any(always_negative(n, known_guards) for n in others):
            return holds
    return None


_OPPOSITE: Final = {"lt": "ge", "ge": "lt", "gt": "le", "le": "gt", "eq": "ne", "ne": "eq"}
COMPARED: Final[dict[str, Callable[[Number, Number], Sequence[Number]]]] = {
    "lt": lambda a, b: [b - a - 1],
    "le": lambda a, b: [b - a],
    "gt": lambda a, b: [a - b - 1],
    "ge": lambda a, b: [a - b],
    "eq": lambda a, b: [a - b, b - a],
}
