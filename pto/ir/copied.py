"""Deep copies of programs: same operations, names and locations, no shared mutable state."""

from __future__ import annotations

from pto.ir.graph import Block, Module, Operation, Region, Value


def copied(module: Module) -> Module:
    """A copy that can be edited without touching the original."""
    return Module(copied_operation(module.op, {}), module.source)


def copied_operation(op: Operation, twins: dict[Value, Value]) -> Operation:
    """A copy of an operation with its regions; `twins` maps old values to new ones and is updated
    with the results."""
    operands = [twins.get(v, v) for v in op.operands]
    new = Operation(op.name, op.row, operands, dict(op.attrs), op.where)
    new.segments = op.segments
    for value in op.results:
        twins[value] = twin = Value(value.type, value.name, new)
        new.results.append(twin)
    for region in op.regions:
        new.regions.append(_region(region, new, twins))
    return new


def _region(region: Region, owner: Operation, twins: dict[Value, Value]) -> Region:
    new = Region(owner)
    for block in region.blocks:
        twin = Block(new)
        new.blocks.append(twin)
        for arg in block.args:
            twins[arg] = value = Value(arg.type, arg.name, twin)
            twin.args.append(value)
        for op in block.ops:
            twin.append(copied_operation(op, twins))
    return new
