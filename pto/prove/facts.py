"""The uses of global memory of a kernel, as formulas of its sizes, blocks and loops.

`facts` walks through a function and the functions it calls once, whatever the sizes are. A use that
has no formula is listed with the reason.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import Final

from pto.ir.graph import Block, Operation, Value
from pto.isa.meaning.scalar.unit import LOAD_SCALAR, STORE_SCALAR
from pto.isa.row import types as t
from pto.isa.row.order import Within
from pto.isa.row.traits import Control
from pto.plan.calls import FunctionNames
from pto.plan.stores import combines, is_global
from pto.prove.assume import ANY, GRID, Stated
from pto.prove.closed import asks_for_block
from pto.prove.coordinates import Coordinates, Split
from pto.prove.decide import never_negative
from pto.prove.flow import FlowWalk, regions_after
from pto.prove.number import ZERO, Number, Symbol, number, of, product, quotient
from pto.prove.regions import Regions
from pto.prove.values import (
    COMPARED,
    Guards,
    LaunchSymbols,
    Unknown,
    Values,
    ViewAxis,
    ViewPart,
    is_integer,
    item_bytes,
)

_CALLS: Final = 16  # functions that call each other


@dataclass(frozen=True, slots=True)
class MemUse:
    """One operation that reads or writes a window of an array. It accesses no byte outside of the
    window, and maybe not all inside."""

    op: Operation
    window: ViewPart
    writes: bool
    given: Guards  # numbers that are not negative when it runs
    loops: tuple[Symbol, ...]  # enclosing iterations, outermost first
    combines: bool = False  # an atomic update

    def numbers(self) -> list[Number]:
        """All that decides where it is, and whether it runs."""
        axes = [n for axis in self.window.axes for n in (axis.offset, axis.size)]
        return [self.window.base, *axes, *self.given]


@dataclass(slots=True)
class KernelUses:
    """The uses of global memory of a kernel, and the symbols in their formulas."""

    launch: LaunchSymbols
    arguments: Mapping[int, Symbol]  # unknown arguments, by number of the parameter
    numbers: Mapping[int, int]  # known arguments
    uses: list[MemUse] = field(default_factory=list[MemUse])
    unknown: list[tuple[Operation, str]] = field(default_factory=list[tuple[Operation, str]])
    coordinates: tuple[Symbol, ...] = ()  # integers that differ between blocks
    splits: Sequence[Split] = ()  # how they follow from the block number
    assumed: Guards = ()
    likely: Mapping[str, int] = field(default_factory=dict[str, int])  # numbers to try first
    grid: str = ""  # the product of the extents that the number of blocks is assumed to be
    asks: bool = False  # for the block number


def facts(function: Operation, stated: Stated = ANY, blocks: int | None = None) -> KernelUses:
    """The uses of a kernel. `blocks` None: any grid. If they are known, integers of 32 bits are
    proved not to overflow, else that is assumed."""
    launch, args = LaunchSymbols(function, blocks), function.regions[0].block.args
    values = Values(launch, checks=blocks is not None)
    for n, arg in enumerate(args):
        if isinstance(arg.type, t.Ptr) and is_global(arg.type):
            root = args[stated.same.get(n, n)]
            values.windows[id(arg)] = ViewPart(root, ZERO, 1)
    symbols, guards = stated.of(function, values)
    uses = KernelUses(launch, symbols, stated.numbers, assumed=guards, likely=stated.likely)
    uses.asks = asks_for_block([function])
    _UseWalk(uses, values).block(function.regions[0].block, guards)
    _use_coordinates(uses)
    return uses


def _use_coordinates(uses: KernelUses) -> None:
    """Replace the block number by coordinates in all formulas."""
    numbers = [n for use in uses.uses for n in use.numbers()]
    loops = {loop: None for use in uses.uses for loop in use.loops}
    numbers += [loop.high for loop in loops if loop.high is not None]
    coordinates = Coordinates(uses.launch.block, numbers)
    uses.coordinates, uses.splits = tuple(coordinates.leaves), coordinates.splits
    put = coordinates.replaced
    by_axis = (n for n in numbers if n.without(uses.launch.block).terms)  # not `8 * block`
    _assume_axes(uses, [s for n in by_axis for s in put(n).symbols()])
    for loop in loops:
        loop.high = None if loop.high is None else put(loop.high)
    for n, use in enumerate(uses.uses):
        guards = tuple(map(put, use.given))
        uses.uses[n] = replace(use, window=use.window.mapped(put), given=guards)


def _assume_axes(uses: KernelUses, used: Sequence[Symbol]) -> None:
    """Assume that the grid has only the axes that the kernel uses."""
    axes = {of(s) for s in uses.arguments.values() if s.name in GRID}
    extents, further = [split.by for split in uses.splits], uses.coordinates[0]
    if extents and axes.issuperset(extents) and further not in used:
        further.high = ZERO
        uses.assumed += tuple(COMPARED["eq"](uses.launch.blocks, reduce(product, extents)))
        uses.grid = " * ".join(map(str, extents))


class _UseWalk(FlowWalk[Regions]):
    def __init__(self, uses: KernelUses, values: Values) -> None:
        super().__init__(values, Regions())
        self._found = uses
        self._names = FunctionNames()
        self._calls = 0
        self._loops: tuple[Symbol, ...] = ()

    def other(self, op: Operation, guards: Guards) -> None:
        if op.control is Control.CALL:
            self._call(op, guards)
            return
        for region in op.regions:
            for block in region.blocks:
                self.state.forget(block)
                self.block(block, guards)
                self.state.forget(block)

    def loop(self, op: Operation, guards: Guards) -> None:
        block, values = op.regions[0].block, self.values
        low, high, step = map(values.number, op.operands[:3])
        turns = values.launch.symbol(f"#{block.args[0].name}", "counter", ZERO)
        inside = guards
        if never_negative(step - 1):
            turns.high = quotient(high - low - 1, step)
            values.numbers[id(block.args[0])] = low + product(step, of(turns))
            inside = (*guards, high - low - 1, high - values.number(block.args[0]) - 1)
        for carried, first in zip(block.args[1:], op.operands[3:], strict=True):
            self._carried(carried, first, block, turns, values)
        entry, loops = self.state, self._loops
        end = regions_after(op, values, entry, guards)
        if end is None:
            entry.forget(block)
            end = entry
        self.state = entry.in_loop(end, turns, values)
        self._loops = (*loops, turns)
        self.block(block, inside)
        self._loops = loops
        runs = never_negative(high - low - 1, guards)
        self.state = end if runs else end.meet(entry)

    def _carried(
        self, carried: Value, first: Value, block: Block, turns: Symbol, values: Values
    ) -> None:
        """A loop-carried value: constant, or with a fixed step in each iteration."""
        at = block.args.index(carried) - 1
        last = block.ops[-1].operands[at]
        if is_global(carried.type):
            if last is carried:
                values.windows[id(carried)] = values.window(first)
            return
        if not is_integer(carried):
            return
        trial = Values(values.launch, values.checks)
        trial.numbers, trial.windows = dict(values.numbers), dict(values.windows)
        before = Symbol(carried.name, "value", depth=values.launch.depth)
        trial.numbers[id(carried)] = of(before)
        step = trial.number(last) - of(before)
        if all(s.is_fixed for s in step.symbols()):
            values.numbers[id(carried)] = values.number(first) + product(step, of(turns))

    def _call(self, op: Operation, guards: Guards) -> None:
        caller = next(op.around(Control.FUNCTION))
        function = self._names.find(op.attrs.get("callee"), caller)
        if function is None or self._calls >= _CALLS:
            self._unknown(op, "the function it calls is not known")
            return
        values, inner = self.values, Values(self.values.launch, self.values.checks)
        for arg, value in zip(function.regions[0].block.args, op.operands, strict=True):
            if is_global(arg.type):
                with suppress(Unknown):
                    inner.windows[id(arg)] = values.window(value)
            elif is_integer(arg):
                inner.numbers[id(arg)] = values.number(value)
        outer = self.state
        self.state = Regions()
        self.values = inner
        self._calls += 1
        body = function.regions[0].block
        self.block(body, guards)
        self._calls -= 1
        self.state, self.values = outer, values
        outer.forget_operands(op)
        for result, value in zip(op.results, body.ops[-1].operands, strict=False):
            if is_integer(result):
                values.numbers[id(result)] = inner.number(value)

    # ---- uses

    def operation(self, op: Operation, guards: Guards) -> None:
        self.state.operation(op, self.values)
        row, why = op.row, _not_followed(op)
        if why is None:
            return
        if why:
            self._unknown(op, why)
            return
        for operand in row.operands:
            for value in op.group(operand.name):
                if not is_global(value.type):
                    continue
                try:
                    window = self._touched(op, value)
                except Unknown as why:
                    self._unknown(op, str(why))
                    continue
                writes = operand.role != "in"
                use = MemUse(op, window, writes, guards, self._loops, combines(op))
                self._found.uses.append(use)

    def _unknown(self, op: Operation, why: str) -> None:
        self._found.unknown.append((op, why))

    def _touched(self, op: Operation, value: Value) -> ViewPart:
        """The window that an operation accesses through an operand."""
        values = self.values
        window = values.window(value)
        if isinstance(value.type, t.View):
            return window
        if op.body in (LOAD_SCALAR, STORE_SCALAR):
            index = op.operand("offset")
            if index is not None:
                item = item_bytes(value.type)
                start, size = window.base + values.number(index).times(item), number(item)
                extent = values.launch.arrays.get(window.root)
                if extent is None:
                    return ViewPart(window.root, start, 1, (_bytes(size),))
                return ViewPart(window.root, ZERO, 1, (ViewAxis(start, size, number(1), extent),))
        if op.group("n_burst") and op.group("len_burst"):
            axes = _bursts(op, value, values)
            if axes is not None:
                return ViewPart(window.root, window.base, 1, axes)
        raise Unknown("its place is not written in the operands")


def _not_followed(op: Operation) -> str | None:
    """Why the uses of an operation are not known; empty if they are, None if it has none."""
    row = op.row
    if row.traits.names_only and row.attr("slot_size") is None:
        return None
    if row.order is not None and not isinstance(row.order, Within):
        return "it synchronises with others through memory"
    if "callee" in op.attrs:
        return "it launches work items"
    return "it reaches memory of other ranks" if row.family.section == "comm" else ""


def _bytes(count: Number) -> ViewAxis:
    return ViewAxis(ZERO, count, number(1), count)


def _bursts(op: Operation, value: Value, values: Values) -> tuple[ViewAxis, ...] | None:
    """Loops of bursts of bytes, the outermost first."""
    side = "src" if value is op.operand("source") else "dst"
    strides = op.group(f"nburst_{side}_stride")
    if not strides:
        return None
    counts = [*op.group("n_burst"), *op.group("loop_counts")]
    strides = [*strides, *op.group(f"loop_{side}_strides")]
    axes = [_bytes(values.number(op.group("len_burst")[0]))]
    for count, stride in zip(counts, strides, strict=True):
        size = values.number(count)
        axes.insert(0, ViewAxis(ZERO, size, values.number(stride), size))
    return tuple(axes)
