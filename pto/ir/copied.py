"""Deep copies of programs, without shared mutable state, and the comparison of two programs."""

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


def same(a: Operation, b: Operation) -> bool:
    """Structural equality: same operations, types, attributes and data flow; names do not count."""
    twin: dict[Value, Value] = {}
    for x, y in zip(a.walk(), b.walk(), strict=False):  # equal shapes make equal walks
        if _shape(x) != _shape(y) or [twin.get(v) for v in x.operands] != y.operands:
            return False
        for one, other in zip(_defined(x), _defined(y), strict=True):
            twin[one] = other
    return True


def _shape(op: Operation) -> tuple[object, ...]:
    """All of an operation but its operands and the operations inside it, of which the number."""
    regions = [[(len(b.args), len(b.ops)) for b in region.blocks] for region in op.regions]
    return op.name, op.attrs, [v.type for v in _defined(op)], len(op.results), regions


def _defined(op: Operation) -> list[Value]:
    """Its results, and the arguments of its blocks."""
    return [*op.results, *(arg for block in op.blocks() for arg in block.args)]
