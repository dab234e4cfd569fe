"""The order of blocks for the L2 cache: cores that run together share rows and columns.

A launch over a grid of rows and columns numbers its blocks row by row, so that the cores of a round
load one row of the left operand and all of the right one: requests for one line wait for each
other, and most lines are used once. In groups of several rows, column by column, blocks share both.
"""

from __future__ import annotations

from pto.ir.builder import INDEX, Builder
from pto.ir.graph import Operation, Value
from pto.isa.scalar.arith import FLOORDIVSI, INDEX_CAST
from pto.isa.scalar.unit import GET_BLOCK_IDX
from pto.transform.index_math import IndexMath, Number
from pto.transform.pass_result import PassResult


def grouped(function: Operation, blocks: int, rows: int) -> PassResult:
    """Run the blocks in groups of `rows` rows of their grid, column by column."""
    columns = grid_columns(function, blocks)
    height = blocks // columns if columns else 0
    if not 1 < rows <= height:
        reason = f"{height} rows, {rows} a group" if columns else "they are no grid"
        return PassResult(f"blocks keep their order: {reason}", function.loc, is_done=False)
    builder = Builder(function)
    for op in [op for op in function.walk() if op.row is GET_BLOCK_IDX]:
        _renumber(op, height, columns, rows, builder)
    words = f"blocks of a {height}x{columns} grid in groups of {rows} rows"
    return PassResult(words, function.loc)


def grid_columns(function: Operation, blocks: int) -> int:
    """The columns of the grid: the constant by which the number of the block is divided; else 0."""
    divisors = {
        op.operands[1].number
        for op in function.walk()
        if op.row is FLOORDIVSI and _is_block(op.operands[0])
    }
    columns = divisors.pop() if len(divisors) == 1 else None
    return columns if columns and 1 < columns < blocks and blocks % columns == 0 else 0


def _is_block(value: Value) -> bool:
    maker = value.origin(lambda op: op.traits.same_number).maker
    return maker is not None and maker.row is GET_BLOCK_IDX


def _renumber(op: Operation, height: int, columns: int, rows: int, builder: Builder) -> None:
    """Replace the number of the block by that of the block which runs in its place."""
    number, users = op.results[0], list(op.results[0].uses)
    index = builder.make(INDEX_CAST, {"in": number}, results=[INDEX], where=op.loc)
    back = builder.make(INDEX_CAST, {"in": index.results[0]}, results=[number.type], where=op.loc)
    op.home.insert(op.home.ops.index(op) + 1, index, back)
    place = index.results[0]
    back.set_operands([_in_groups(IndexMath(builder, back), place, height, columns, rows)])
    for user in users:
        user.set_operands([back.results[0] if v is number else v for v in user.operands])


def _in_groups(n: IndexMath, number: Value, height: int, columns: int, rows: int) -> Value:
    """The number of the block that runs at this place; the last group may have fewer rows."""
    group = n.floordiv(number, rows * columns)
    inside = n.sub(number, n.mul(group, rows * columns))
    top = n.mul(group, rows)
    tall: Number = rows if height % rows == 0 else n.min(n.sub(height, top), rows)
    column = n.floordiv(inside, tall)
    row = n.add(top, n.sub(inside, n.mul(column, tall)))
    return n.value(n.add(n.mul(row, columns), column))
