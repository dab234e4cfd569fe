"""Operands of call sites: their types, and the functions that make their values of a record."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from pto.core.dtypes import DType, dtype
from pto.core.errors import fail
from pto.core.global_tensor import GlobalTensor
from pto.core.memory import Space
from pto.core.memory import space as memory_space
from pto.cxx.native import bytes_at
from pto.cxx.records import (
    NUMBERS,
    POINTER,
    QUEUE,
    Passed,
    element,
    global_layout,
    number_of,
)
from pto.cxx.sizes import BoundCall
from pto.ir.builder import INDEX, scalar_type
from pto.isa.row.types import PipeHandle, Ptr, Scalar, TileBuf, Type, Vector, View
from pto.run.sites import Given, ProgramSite, scalar_value

if TYPE_CHECKING:
    from pto.cxx.feed import AgentState

BYTE = dtype("i8")
MOVING = (QUEUE, NUMBERS)  # operands that differ between executions
_COUNTS = Vector((4,), scalar_type(dtype("i16")))  # of records merged from each list
Maker = Callable[["AgentState", Sequence[int]], Any]  # an operand of the values of a record


@dataclass(frozen=True, slots=True)
class Plan:
    """How the records of one call site become operands; computed once per site."""

    site: Any  # of the simulator, or a vector instruction or mark (`vector_calls.py`)
    makers: Sequence[Maker] = ()  # one an operand
    binds: int | None = None  # index of the value that names a tile to bind
    makes: int | None = None  # index of the value that names a new queue
    moves: bool = False  # some operands differ between executions of one record


def pointer(operand: Passed, space: Space, kind: DType) -> Maker:
    return lambda state, values: state.pointer(space, kind, values[operand.at])


def number(operand: Passed, type: Scalar) -> Maker:
    return lambda state, values: scalar_value(type, number_of(operand, values))


def operand(
    bound: BoundCall, name: str, passed: Passed, values: Sequence[int], state: AgentState
) -> tuple[Given, Maker]:
    """An operand of a site, and how its value is made of a record."""
    type, at = passed.type, passed.at
    if isinstance(type, TileBuf):
        tile = type.tile
        return Given(type), lambda state, values: state.tile(tile, values[at])
    if isinstance(type, View):
        return Given(type), _view(passed, type)
    if passed.tag == QUEUE:
        maker = state.queues[values[at]][1]
        by = "" if maker is None or maker.maker is None else maker.maker.name
        argument = Given(PipeHandle(by), maker=maker)
        return argument, lambda state, values: state.queues[values[at]][0]
    if passed.tag == POINTER:
        spec = next(o for o in bound.row.operands if o.name == name)
        space = memory_space(spec.kind.split()[0])
        return Given(Ptr(scalar_type(BYTE), space)), pointer(passed, space, BYTE)
    if passed.tag == NUMBERS:
        return Given(_COUNTS), lambda _, values: bytes_at(values[at], 8).view(np.int16)
    kind = _scalar_of(bound, name, passed)
    first = number_of(passed, values)
    if passed.number is None:
        return Given(kind, _plain(kind, first)), number(passed, kind)
    value = scalar_value(kind, first)
    return Given(kind, first), lambda state, values: value


def _scalar_of(bound: BoundCall, operand: str, passed: Passed) -> Scalar:
    """The type of a scalar operand: C++ converts it to the element type of its tile."""
    spec = next(o for o in bound.row.operands if o.name == operand)
    if spec.kind == "index":
        return INDEX
    if spec.kind in ("i64", "i32"):
        return scalar_type(dtype(spec.kind))
    tiles = {n: p.type for n, (p, *_) in bound.operands.items() if isinstance(p.type, TileBuf)}
    sources = [t for o in bound.row.operands if o.role == "in" and (t := tiles.get(o.name))]
    targets = [
        t for o in bound.row.operands if o.role not in ("in", "tmp") and (t := tiles.get(o.name))
    ]
    elem = element(passed.element)
    wants_float = spec.kind == "float" or operand == "deqScale"
    if wants_float or not (sources or targets):
        return scalar_type(dtype("f32") if wants_float else elem or dtype("i64"))
    if spec.kind == "int":
        return scalar_type(elem or dtype("i32"))
    return (tiles.get("src") or tiles.get("src0") or (sources or targets)[0]).elem


def _view(operand: Passed, type: View) -> Maker:
    kind, layout = element(operand.element), global_layout(operand.facts)
    assert kind is not None
    shape = tuple(size or 0 for size in type.shape)
    at = operand.at
    paired = operand.paired
    (axis, wider) = operand.widen

    def make(state: AgentState, values: Sequence[int]) -> GlobalTensor:
        key = (kind.name, shape, layout.name, paired, *values[at : at + 6])
        tensor = state.made.get(key)
        if tensor is None:
            memory, offset = state.memory.find(values[at])
            strides = list(values[at + 1 : at + 6])
            strides[axis] = max(0, strides[axis] + wider)  # not used for a single line
            if paired is not None:
                strides = [n if i == paired else n // 2 for i, n in enumerate(strides)]
            tensor = GlobalTensor.of(memory, offset, kind, shape, strides, layout)
            state.made[key] = tensor
        return tensor

    return make


def _plain(type: Scalar, number: int | float) -> int | float:
    value = scalar_value(type, number)
    return int(value) if not type.is_float else float(value)


def argument(site: ProgramSite, type: Type, operand: Passed) -> Maker:
    if isinstance(type, Ptr) and isinstance(type.elem, Scalar) and type.elem.dtype:
        return pointer(operand, type.space, type.elem.dtype)
    if isinstance(type, Scalar):
        return number(operand, type)
    raise fail("PTO-U249", f"@{site.op.symbol}: C++ has no argument of type {type.kind}")
