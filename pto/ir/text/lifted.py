"""Converts branches between blocks to structured control flow: one block per region.

Forward branches become `scf.if`; a block with several predecessors follows the `scf.if`, or is
copied into the arms if they never join. Back edges become `scf.for` if the loop counts, else
`scf.while`. The test of the `scf.while` is the header if only the header exits the loop, else the
whole loop, which then yields whether it continues and by which exit it leaves.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from pto.core.dtypes import I1, I32
from pto.core.errors import Loc
from pto.ir.builder import constant_attribute, new_block
from pto.ir.copied import copied_operation
from pto.ir.graph import Block, Operation, Region, Span, Value
from pto.ir.text import lexer as lx
from pto.ir.text.blocks import BlockGraph, BlockLoop, made_in
from pto.ir.text.branches import BlockBranch, BranchTarget
from pto.ir.text.counted import Count, Way, counted, tested
from pto.ir.text.types import type_text
from pto.isa.row.attributes import Attribute, Enum
from pto.isa.row.instr import Instr
from pto.isa.row.traits import Control
from pto.isa.row.types import Scalar
from pto.isa.scalar.arith import CMPI, CONSTANT, XORI
from pto.isa.scalar.structure import CONDITION, FOR, IF, WHILE, YIELD

if TYPE_CHECKING:
    from pto.ir.text.parser import Parser

_MOST_COPIES = 4096  # more of them mean hostile input
_FLAG, _NUMBER = Scalar("i1", I1), Scalar("i32", I32)


def lift(
    p: Parser, region: Region, labels: dict[str, Block], ends: dict[Block, BlockBranch]
) -> None:
    """Replace the blocks of a region by one block with structured control flow."""
    graph, lifted = BlockGraph(p, region, labels, ends), Block(region)
    lifted.args = region.blocks[0].args
    for value in lifted.args:
        value.owner = lifted
    values = _Lifter(p, graph).walk(graph.top, graph.top.header, None, None, lifted)
    end = next((b.ops[-1] for b in graph.blocks if _hands_on(graph, b)), None)
    if end is not None:
        lifted.append(_end(end.row, values, end.where))
    for block in region.blocks:
        block.set_ops(())
    region.blocks = [lifted]


def _hands_on(graph: BlockGraph, block: Block) -> bool:
    """True if a block ends with the terminator of the region (return or yield)."""
    if block in graph.ends or not block.ops:
        return False
    return block.ops[-1].control in (Control.RETURN, Control.YIELD)


class _Lifter:
    def __init__(self, p: Parser, graph: BlockGraph) -> None:
        self.p = p
        self.graph = graph
        self.ends = graph.ends
        self.twins: dict[Value, Value] = {}  # value of the source -> its copy
        self.left, self.depth = _MOST_COPIES, 0
        self.dropped: set[Operation] = set()  # increments, implied by scf.for
        self.escapes: dict[
            BlockLoop, list[Value]
        ] = {}  # loop with inner exits -> values used after it

    def seen(self, values: Sequence[Value]) -> list[Value]:
        return [self.twins.get(v, v) for v in values]

    def bind(self, values: Sequence[Value], twins: Sequence[Value]) -> None:
        self.twins.update(zip(values, twins, strict=True))

    def walk(
        self,
        loop: BlockLoop,
        block: Block,
        values: list[Value] | None,
        stop: Block | None,
        into: Block,
    ) -> list[Value]:
        """Emit the blocks from `block` up to `stop`; returns the arguments for `stop`, or the
        operands of the region's terminator."""
        while block is not stop or values is None:
            inner = loop.inner.get(block)
            if inner is not None:
                branch = self._repeated(inner, values or [], into)
            else:
                if values is not None:
                    self.bind(block.args, values)
                ended = self._copy(block, into)
                branch = self.ends.get(block)
                if branch is None:
                    return ended
            if not branch.cases:
                block, values = self._next(loop, block, branch.otherwise, into)
                continue
            loop_block = self._turn(loop, block, branch, into)
            if loop_block is not None:
                return loop_block
            join = loop.join(block)
            values = self._choice(loop, block, branch, 0, join, into)
            if join is None:
                return values
            block = join
        return values

    def _copy(self, block: Block, into: Block) -> list[Value]:
        """Emit the operations of a block; returns the operands of the region's terminator, if the
        block ends with it."""
        self.left -= 1
        if self.left < 0:
            self.p.fail("PTO-P024", f"blocks are copied more than {_MOST_COPIES} times")
        ends = _hands_on(self.graph, block)
        for op in block.ops[:-1] if ends else block.ops:
            if op not in self.dropped:
                into.append(copied_operation(op, self.twins))
        return self.seen(block.ops[-1].operands) if ends else []

    def _next(
        self, loop: BlockLoop, block: Block, target: BranchTarget, into: Block
    ) -> tuple[Block, list[Value]]:
        """The target of a branch and its arguments; the latch if it goes back or exits the loop."""
        values = self.seen(target.values)
        if not loop.ends_at(target.block):
            return target.block, values
        if loop not in self.escapes:
            return loop.latch, values
        again = target.block is loop.header
        carried = values if again else self.seen(loop.header.args)
        more = _number(again, _FLAG, into)
        escape = self._escape(loop, block, None if again else target, into)
        return loop.latch, [more, *carried, *escape]

    def _open(self) -> None:
        self.depth += 1
        if self.depth > lx.MAX_DEPTH:
            self.p.fail("PTO-P023", f"branches are nested more than {lx.MAX_DEPTH} deep")

    # ---- conditions

    def _choice(
        self,
        loop: BlockLoop,
        block: Block,
        branch: BlockBranch,
        n: int,
        join: Block | None,
        into: Block,
    ) -> list[Value]:
        if n == len(branch.cases):
            return self._arm(loop, block, branch.otherwise, join, into)
        self._open()
        number, target = branch.cases[n]
        op = Operation.of(IF, [self._condition(branch, number, into)], where=branch.where)
        into.append(op)
        then, other = new_block(op), new_block(op)
        results = self._arm(loop, block, target, join, then)
        then.append(_end(YIELD, results, branch.where))
        results = self._choice(loop, block, branch, n + 1, join, other)
        other.append(_end(YIELD, results, branch.where))
        op.results = _like(results, op)
        if not results and len(other.ops) == 1:
            op.regions[1].blocks.clear()  # nothing is done otherwise
        self.depth -= 1
        return list(op.results)

    def _arm(
        self, loop: BlockLoop, block: Block, target: BranchTarget, join: Block | None, into: Block
    ) -> list[Value]:
        there, values = self._next(loop, block, target, into)
        return self.walk(loop, there, values, join, into)

    def _condition(self, branch: BlockBranch, number: int | None, into: Block) -> Value:
        (flag,) = self.seen([branch.on] if branch.on is not None else [])
        if number is None or not isinstance(flag.type, Scalar):
            return flag
        case = _number(number, flag.type, into)
        eq = {"predicate": Enum("cmpi_predicate", "eq")}
        return _made(CMPI, [flag, case], eq, _FLAG, "is_case", into)

    # ---- loops

    def _repeated(self, loop: BlockLoop, values: list[Value], into: Block) -> BlockBranch:
        """Emit a loop; returns the branch that follows it."""
        self._open()
        way = tested(self.graph, loop)
        count = counted(self.graph, loop, way) if way else None
        if way and count:
            branch = self._for(loop, way, count, values, into)
        elif way:
            branch = self._while(loop, way, values, into)
        else:
            branch = self._until(loop, values, into)
        self.depth -= 1
        return branch

    def _body(self, loop: BlockLoop, way: Way, into: Block) -> list[Value]:
        """Emit the loop without its header; returns the next arguments of the header."""
        return self._arm(loop, loop.header, way.inside, loop.latch, into)

    def _for(
        self, loop: BlockLoop, way: Way, count: Count, values: list[Value], into: Block
    ) -> BlockBranch:
        """Emit `scf.for`: the header only compares, and each iteration adds the step."""
        lower = values.pop(count.place)
        op = Operation.of(FOR, [lower, *self.seen([count.upper, count.step]), *values])
        op.segments, op.where = (1, 1, 1, len(values)), way.where
        into.append(op)
        variable, carried = count.variable, [v for v in loop.header.args if v is not count.variable]
        body = new_block(op, _like([variable, *carried]))
        self.bind([variable, *carried], body.args)
        self.dropped.add(count.advance)
        latch = self._body(loop, way, body)
        latch.pop(count.place)
        body.append(_end(YIELD, latch, way.where))
        op.results = _like(carried, op)
        self.bind(carried, op.results)
        return BlockBranch(way.where, way.outside)

    def _while(self, loop: BlockLoop, way: Way, values: list[Value], into: Block) -> BlockBranch:
        """Emit `scf.while` with the header as its test; values that the header defines are passed
        to the body and become results."""
        op, before = self._begin(WHILE, loop, values, way.where, into)
        self._copy(loop.header, before)
        handed = self.graph.handed(loop.header)
        (flag,) = self.seen([way.flag])
        flag = _inverted(flag, before) if way.inverted else flag
        after = _hand_on(op, flag, self.seen(handed))
        self.bind(handed, after.args)
        after.append(_end(YIELD, self._body(loop, way, after), way.where))
        self.bind(handed, op.results)
        return BlockBranch(way.where, way.outside)

    def _until(self, loop: BlockLoop, values: list[Value], into: Block) -> BlockBranch:
        """Emit `scf.while` with the whole loop as its test, which yields whether to continue, the
        carried values, and the exit taken with its values."""
        where = self.ends[loop.header].where
        op, before = self._begin(WHILE, loop, values, where, into)
        self.escapes[loop] = live = self.graph.escaping(loop)
        more, *handed = self.walk(loop, loop.header, None, loop.latch, before)
        distinct = list(dict.fromkeys(handed))
        places = {v: n for n, v in enumerate(distinct)}
        after = _hand_on(op, more, distinct)
        results = [op.results[places[v]] for v in handed]
        count = len(loop.header.args)
        again = [after.args[places[v]] for v in handed[:count]]
        after.append(_end(YIELD, again, where))
        left = iter(results[count:])
        number = next(left) if len(loop.exits) > 1 else None
        targets = [BranchTarget("", 0, [next(left) for _ in b.args], b) for b in loop.exits]
        self.bind(live, list(left))
        return BlockBranch(where, targets[-1], number, list(enumerate(targets[:-1])))

    def _begin(
        self, row: Instr, loop: BlockLoop, values: list[Value], where: Span, into: Block
    ) -> tuple[Operation, Block]:
        op = _end(row, values, where)
        into.append(op)
        before = new_block(op, _like(loop.header.args))
        self.bind(loop.header.args, before.args)
        return op, before

    def _turn(
        self, loop: BlockLoop, block: Block, branch: BlockBranch, into: Block
    ) -> list[Value] | None:
        """The operands of the loop's test, if `branch` either goes back or exits; else None."""
        if loop not in self.escapes or len(branch.cases) > 1 or branch.cases[0][0] is not None:
            return None
        back, out = targets = branch.targets()
        inverted = out.block is loop.header
        back, out = targets[::-1] if inverted else targets
        if back.block is not loop.header or out.block in loop.blocks:
            return None
        flag = self._condition(branch, None, into)
        flag = _inverted(flag, into) if inverted else flag
        return [flag, *self.seen(back.values), *self._escape(loop, block, out, into)]

    def _escape(
        self, loop: BlockLoop, block: Block, target: BranchTarget | None, into: Block
    ) -> list[Value]:
        """The index of the exit taken, the arguments of each exit, and values used after the loop.
        A value that will not be read is arbitrary: if the branch goes back (no target), if it
        belongs to another exit, or if it is not defined on this path."""
        values: list[Value] = []
        if len(loop.exits) > 1:
            values.append(_number(loop.exits.index(target.block) if target else 0, _NUMBER, into))
        for leaving in loop.exits:
            if target and leaving is target.block:
                values += self.seen(target.values)
            else:
                values += [self._any(v, loop, into) for v in leaving.args]
        for value in self.escapes[loop]:
            definer = self.graph.made[value]
            is_defined = self.graph.dominates(definer, target.block if target else block)
            values.append(self.seen([value])[0] if is_defined else self._any(value, loop, into))
        return values

    def _any(self, like: Value, loop: BlockLoop, into: Block) -> Value:
        """An arbitrary value of the type of `like`; it will not be read."""
        if isinstance(like.type, Scalar) and like.type.name[0] in "ifb":  # types with constants
            return _number(0, like.type, into)
        for block in self.graph.blocks:
            if self.graph.dominates(block, loop.header):
                for value in made_in(block):
                    if value.type == like.type:
                        return self.seen([value])[0]
        self.p.fail(
            "PTO-P024",
            f"%{like.name} is used after a loop with several exits, and another exit has no "
            f"value of type {type_text(like.type)} for it",
            help="leave the loop at one exit",
        )


def _like(values: Sequence[Value], op: Operation | None = None) -> list[Value]:
    return [Value(v.type, v.name, op) for v in values]


def _hand_on(op: Operation, flag: Value, values: list[Value]) -> Block:
    """End the test of a `scf.while` and set its results; returns its body with such arguments."""
    test = Operation.of(CONDITION, [flag, *values], where=op.where)
    test.segments = (1, len(values))
    op.regions[0].block.append(test)
    op.results = _like(values, op)
    return new_block(op, _like(values))


def _number(number: int, type: Scalar, into: Block) -> Value:
    value = constant_attribute(number, type)
    name = f"c{number}" if number >= 0 else "cst"
    return _made(CONSTANT, [], {"value": value}, type, name, into)


def _inverted(flag: Value, into: Block) -> Value:
    return _made(XORI, [flag, _number(True, _FLAG, into)], {}, _FLAG, "otherwise", into)


def _made(
    row: Instr,
    operands: list[Value],
    attrs: Mapping[str, Attribute],
    type: Scalar,
    name: str,
    into: Block,
) -> Value:
    op = Operation.of(row, operands, dict(attrs))
    into.append(op)
    return op.new_result(type, name)


def _end(row: Instr, values: list[Value], where: Span | Loc | None) -> Operation:
    """An operation that takes a list of values, and nothing else."""
    op = Operation.of(row, values, where=where)
    op.segments = (len(values),)
    return op
