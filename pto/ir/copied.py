"""A program twice: the same operations, names and places in the source, nothing shared that may
change."""

from __future__ import annotations

from pto.ir.graph import Block, Module, Operation, Region, Value


def copied(module: Module) -> Module:
    """A copy that can be edited without touching the original."""
    return Module(copied_operation(module.op, {}), module.source)


def copied_operation(op: Operation, twins: dict[int, Value]) -> Operation:
    """One operation and all inside; `twins` has what values have become, and gets its results."""
    operands = [twins.get(id(v), v) for v in op.operands]
    new = Operation(op.name, op.row, operands, dict(op.attrs), op.where)
    new.segments = op.segments
    for value in op.results:
        twins[id(value)] = twin = Value(value.type, value.name, new)
        new.results.append(twin)
    for region in op.regions:
        new.regions.append(_region(region, new, twins))
    return new


def _region(region: Region, owner: Operation, twins: dict[int, Value]) -> Region:
    new = Region(owner)
    for block in region.blocks:
        twin = Block(new)
        new.blocks.append(twin)
        for arg in block.args:
            twins[id(arg)] = value = Value(arg.type, arg.name, twin)
            twin.args.append(value)
        for op in block.ops:
            inner = copied_operation(op, twins)
            inner.parent = twin
            twin.ops.append(inner)
    return new
