"""A persistent launch: one block a core does the work of all blocks, one after the other.

The start of a block is paid once, and the first loads of a block run while the block before it
still computes. Blocks have no order among each other, so any order of them is right; a block that
waits for another one keeps its launch.
"""

from __future__ import annotations

from collections.abc import Sequence

from pto.core.dtypes import I64
from pto.ir.builder import INDEX, Builder, new_block, scalar_type
from pto.ir.graph import Operation, Value
from pto.isa.row.traits import Control
from pto.isa.scalar.arith import INDEX_CAST
from pto.isa.scalar.structure import FOR, YIELD
from pto.isa.scalar.unit import GET_BLOCK_IDX, GET_BLOCK_NUM
from pto.transform.pass_result import PassResult

_LONG = scalar_type(I64)


def persistent(functions: Sequence[Operation], blocks: int, cores: int) -> PassResult:
    """Let `cores` blocks do the work of `blocks`, in all functions of a launch or in none."""
    obstacle = next(filter(None, map(_obstacle, functions)), "")
    if not obstacle and blocks <= cores:
        obstacle = f"{blocks} blocks, {cores} cores"
    where = functions[0].loc
    if obstacle:
        return PassResult(f"each block keeps its launch: {obstacle}", where, is_done=False)
    for function in functions:
        _walk_blocks(function, blocks, cores)
    return PassResult(f"{cores} blocks do the work of {blocks}", where)


def _walk_blocks(function: Operation, blocks: int, cores: int) -> None:
    builder, body = Builder(function), function.regions[0].block
    common = _common(function)
    inside = [op for op in body.ops if op not in common and not op.is_terminator]
    core = builder.make(GET_BLOCK_IDX, results=[_LONG])
    first = builder.make(INDEX_CAST, {"in": core.results[0]}, results=[INDEX], names=["core"])
    bounds = {
        "lower": first.results[0],
        "upper": builder.constant(blocks, INDEX),
        "step": builder.constant(cores, INDEX),
    }
    loop = builder.make(FOR, bounds, where=function.loc)
    body.insert(len(body.ops) - 1, core, first, loop)
    block = Value(INDEX, "block")
    end = builder.make(YIELD, {"results": []})
    new_block(loop, [block]).append(end)
    for op in inside:
        op.move_before(end)
    _number(loop, block, blocks, builder)


def _obstacle(function: Operation) -> str:
    """The reason why each block needs a launch of its own."""
    for op in function.walk():
        if op.order is not None or op.traits.side or op.control in (Control.CALL, Control.WHILE):
            return f"'{op.name}' op may wait for another block"
        if op.row.cost == "register" and not op.traits.pure:
            return f"'{op.name}' op sets a mode, which the next block would find"
    return ""


def _common(function: Operation) -> set[Operation]:
    """Operations that are the same for all blocks: constants, and names and numbers made of them
    and of arguments."""
    common: set[Operation] = set()
    for op in function.regions[0].block.ops:
        varies = any(v.maker is not None and v.maker not in common for v in op.operands)
        describes = op.traits.constant or (op.traits.pure and not op.regions)
        if not varies and describes and op.row not in (GET_BLOCK_IDX, GET_BLOCK_NUM):
            common.add(op)
    return common


def _number(loop: Operation, block: Value, blocks: int, builder: Builder) -> None:
    """Let the operations in the loop see the number and the count of the blocks."""
    for op in list(loop.walk()):
        if op.row is GET_BLOCK_IDX:
            cast = builder.make(INDEX_CAST, {"in": block}, results=[op.results[0].type])
            op.home.insert(op.home.ops.index(op), cast)
            op.results[0].replace_all_uses(cast.results[0])
            op.erase()
        elif op.row is GET_BLOCK_NUM:
            op.results[0].replace_all_uses(builder.constant(blocks, _LONG))
            op.erase()
