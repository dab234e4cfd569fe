"""The grid that follows from a program: as many blocks as its stores need to fill their arrays.

A block stores at offsets that are multiples of its position along an axis of the grid. The extent
of the array, divided by that multiple, is the extent of the grid along the axis.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from math import prod

from pto.ir.graph import Block, Module, Operation, Value
from pto.isa.handle.view import MAKE_TENSOR_VIEW, PARTITION_VIEW
from pto.isa.row.traits import Control
from pto.isa.scalar.arith import FLOORDIVSI, MAXSI, MINSI, MULI
from pto.isa.scalar.unit import GET_BLOCK_IDX, GET_BLOCK_NUM
from pto.prove.assume import GRID

Factors = Mapping[int, int]  # of the positions along the axes of a grid, in a sum


@dataclass(slots=True)
class _Axes:
    """The positions of a block: its number is divided by the extents of the grid, one by one."""

    extents: dict[int, Value] = field(default_factory=dict[int, Value])  # known by a division

    def rest(self, value: Value) -> int | None:
        """How often the number of the block was divided to give this value."""
        maker = value.origin(lambda op: op.traits.same_number).maker
        if maker is None:
            return None
        if maker.row is GET_BLOCK_IDX:
            return 0
        if maker.row is not FLOORDIVSI:
            return None
        level = self.rest(maker.operands[0])
        return None if level is None else self._divided(level, maker.operands[1])

    def _divided(self, level: int, divisor: Value) -> int | None:
        """The level after a division by the extent of an axis, or by a product of extents."""
        maker = divisor.maker
        if maker is not None and maker.row is MULI and divisor.number is None:
            for factor in maker.operands:
                after = self._divided(level, factor)
                if after is None:
                    return None
                level = after
            return level
        known = self.extents.setdefault(level, divisor)
        same = known is divisor or (known.number is not None and known.number == divisor.number)
        return level + 1 if same else None

    def position(self, value: Value) -> int | None:
        """The axis along which a value is the position of the block."""
        maker = value.origin(lambda op: op.traits.same_number).maker
        if maker is not None and maker.traits.operator == "-":
            level, product = self.rest(maker.operands[0]), maker.operands[1].maker
            if level is not None and product is not None and product.row is MULI:
                quotients = [self.rest(v) for v in product.operands]
                return level if level + 1 in quotients else None
        level = self.rest(value)
        return None if level in self.extents else level  # else it holds several positions

    def factors(self, value: Value) -> Factors | None:
        """The factors of the positions in a sum; None if it is no sum of multiples."""
        axis = self.position(value)
        maker = value.maker
        owner = value.owner
        if axis is not None:
            return {axis: 1}
        if isinstance(owner, Block) and owner.region.owner.control is Control.FOR:
            return self.factors(owner.region.owner.operands[0])  # a counter begins there
        if maker is None or value.number is not None:
            return {}
        if maker.row in (MINSI, MAXSI):  # a clamp to the extents of an array
            found = [each for v in maker.operands if (each := self.factors(v))]
            return found[0] if len(found) == 1 else {} if not found else None
        operator = maker.traits.operator
        if operator not in ("+", "-", "*") or len(maker.operands) != 2:
            return {}
        first, second = map(self.factors, maker.operands)
        if first is None or second is None:
            return None
        if operator == "*":
            scale = next((v.number for v in maker.operands if v.number is not None), None)
            both = first or second
            if not both:
                return {}
            return None if scale is None else {n: f * scale for n, f in both.items()}
        sign = 1 if operator == "+" else -1
        axes = {*first, *second}
        return {n: first.get(n, 0) + sign * second.get(n, 0) for n in axes}


def grid_of(module: Module, numbers: Mapping[str, int], cores: int) -> tuple[int, ...] | None:
    """The grid on which a program fills its arrays; None if its stores do not determine it.

    `numbers`: values of parameters in a launch, by name. A program that divides its work by the
    number of blocks takes a block for each core.
    """
    functions = [f for f in module.functions() if f.has_body]
    ops = [op for function in functions for op in function.walk()]
    if not any(op.row is GET_BLOCK_IDX for op in ops):
        return (1,)
    if any(op.row is GET_BLOCK_NUM for op in ops):
        return (cores,)
    axes, needed = _Axes(), dict[int, int]()
    for value in (value for op in ops for value in op.results):
        axes.rest(value)  # finds the divisions
    for offset, extent in _stored(ops, numbers):
        factors = axes.factors(offset)
        if factors is None or len(factors) > 1 or any(f < 1 for f in factors.values()):
            return None
        for axis, step in factors.items():
            needed[axis] = max(needed.get(axis, 0), -(-extent // step))
    return _extents(axes, needed)


def _extents(axes: _Axes, needed: Mapping[int, int]) -> tuple[int, ...] | None:
    """The extents along all axes up to the last one along which blocks store apart."""
    fixed = {n: v.number for n, v in axes.extents.items() if v.number is not None}
    count = max(needed, default=-1) + 1
    if count == 0 or any(n not in needed and n not in fixed for n in range(count)):
        return None
    if fixed:  # the kernel divides a single number itself
        if any(needed.get(n, 1) > extent for n, extent in fixed.items()):
            return None
        return (prod(fixed.get(n) or needed[n] for n in range(count)),)
    named = [v.name in GRID for n, v in axes.extents.items() if n < count]
    return tuple(needed[n] for n in range(count)) if all(named) else None


def _stored(ops: list[Operation], numbers: Mapping[str, int]) -> Iterator[tuple[Value, int]]:
    """Offsets of the windows that are written, each with the extent of the array."""
    for op in ops:
        for value in op.given("out", "inout"):
            window = value.maker
            if window is None or window.row is not PARTITION_VIEW:
                continue
            view = window.group("source")[0].maker
            if view is None or view.row is not MAKE_TENSOR_VIEW:
                continue
            for offset, size in zip(window.group("offsets"), view.group("shape"), strict=False):
                extent = numbers.get(size.name) if size.number is None else size.number
                if isinstance(extent, int):
                    yield offset, extent
