"""Branches between blocks (`cf.br`, `cf.cond_br`, `cf.switch`), read as structured control flow.

A program has regions of one block; what branches forward becomes `scf.if` as it is read, with the
operations of a block that several ways lead to behind it, or copied where they part for good. Loops
are written with `scf`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pto.core.dtypes import I1
from pto.core.errors import Loc
from pto.ir.copied import copied_operation
from pto.ir.graph import Block, Operation, Region, Span, Value
from pto.ir.text import lexer as lx
from pto.isa.row.attributes import Enum, Int
from pto.isa.row.instr import Instr
from pto.isa.row.types import Scalar, Type
from pto.isa.scalar.arith import CMPI, CONSTANT
from pto.isa.scalar.structure import IF, RETURN, YIELD

if TYPE_CHECKING:
    from pto.ir.text.parser import Parser

_MOST_BLOCKS, _MOST_COPIES = 256, 4096  # more of them mean hostile input


@dataclass(slots=True)
class Target:
    """A block that is branched to, and what becomes of its arguments."""

    label: str
    token: int
    values: list[Value] = field(default_factory=list[Value])


@dataclass(slots=True)
class Branch:
    """The end of a block: cases in order, each with its condition, and where it goes otherwise."""

    where: Span
    otherwise: Target
    on: Value | None = None
    cases: list[tuple[int | None, Target]] = field(default_factory=list[tuple[int | None, Target]])

    def targets(self) -> list[Target]:
        return [*(target for _, target in self.cases), self.otherwise]


# ---- reading


def is_branch(p: Parser) -> bool:
    return p.kind == lx.WORD and p.text in _READERS


def read_branch(p: Parser) -> Branch:
    """One of the three, up to its last target."""
    start, outer = p.i, p.uses
    p.uses = []
    branch = _READERS[p.take()](p, p.span(start))
    if p.kind == lx.WORD and p.text == "loc":
        p.skip_location()
    found = {id(here): value for _, here, value in p.uses}
    p.uses = outer
    for target in branch.targets():
        target.values = [found.get(id(v), v) for v in target.values]
    if branch.on is not None:
        branch.on = found.get(id(branch.on), branch.on)
    return branch


def _target(p: Parser) -> Target:
    if p.kind != lx.LABEL:
        p.fail("PTO-P020", f"expected a block, got {p.shown()}")
    target = Target(p.text, p.i)
    p.i += 1
    if p.accept("("):
        while not p.accept(":"):
            target.values.append(p.use())
            p.accept(",")
        for n, value in enumerate(target.values):
            if n:
                p.expect(",")
            p.type(value.type)
        p.expect(")")
    return target


def _read_plain(p: Parser, where: Span) -> Branch:
    return Branch(where, _target(p))


def _read_condition(p: Parser, where: Span) -> Branch:
    condition = p.use()
    p.expect(",")
    then = _target(p)
    p.expect(",")
    return Branch(where, _target(p), condition, [(None, then)])


def _read_switch(p: Parser, where: Span) -> Branch:
    """`%flag : i32, [default: ^a, 0: ^b(%x : T)]`."""
    flag = p.use()
    p.expect(":")
    p.type(flag.type)
    p.expect(",")
    p.expect("[")
    p.expect("default")
    p.expect(":")
    branch = Branch(where, _target(p), flag)
    while p.accept(","):
        if not p.text.removeprefix("-").isdecimal():
            p.fail("PTO-P020", f"expected the number of a case, got {p.shown()}")
        number = int(p.take())
        p.expect(":")
        branch.cases.append((number, _target(p)))
    p.expect("]")
    return branch


_READERS = {"cf.br": _read_plain, "cf.cond_br": _read_condition, "cf.switch": _read_switch}

# ---- what is read, structured


class Lifter:
    """Makes one block of the blocks of a region."""

    def __init__(
        self, p: Parser, region: Region, labels: dict[str, Block], ends: dict[int, Branch]
    ) -> None:
        self.p, self.region, self.labels, self.ends = p, region, labels, ends
        self.twins: dict[int, Value] = {}
        self.left, self.depth = _MOST_COPIES, 0
        self.behind: dict[int, set[int]] = {}  # block -> blocks every way out of it comes through
        self.order: list[Block] = []  # each behind those it branches to
        if len(region.blocks) > _MOST_BLOCKS:
            p.fail("PTO-P024", f"a region has {len(region.blocks)} blocks, {_MOST_BLOCKS} at most")
        self._visit(region.blocks[0], set())

    def structured(self) -> None:
        """The region with one block."""
        first, made = self.region.blocks[0], Block(self.region)
        made.args = first.args
        for value in made.args:
            value.owner = made
        values = self._walk(first, None, None, made)
        end = next((b.ops[-1] for b in self.order if b.ops and b.ops[-1].row is RETURN), None)
        if end is not None:
            _append(made, _end(RETURN, values, end.where))
        self.region.blocks = [made]

    def _block(self, target: Target) -> Block:
        found = self.labels.get(target.label)
        if found is None:
            self.p.fail("PTO-P024", f"there is no block {target.label} here", at=target.token)
        if len(found.args) != len(target.values):
            wanted, given = len(found.args), len(target.values)
            message = f"block {target.label} takes {wanted} values, got {given}"
            self.p.fail("PTO-P024", message, at=target.token)
        return found

    def _visit(self, block: Block, above: set[int]) -> None:
        """Successors first; a way back is a loop."""
        branch, ways = self.ends.get(id(block)), list[set[int]]()
        for target in branch.targets() if branch else ():
            found = self._block(target)
            if id(found) in above or found is block:
                self.p.fail(
                    "PTO-P024",
                    f"the branch to {target.label} goes back: loops are written with scf",
                    help="use scf.for or scf.while",
                    at=target.token,
                )
            if id(found) not in self.behind:
                self._visit(found, above | {id(block)})
            ways.append(self.behind[id(found)])
        self.behind[id(block)] = {id(block)} | (set.intersection(*ways) if ways else set())
        self.order.append(block)

    def _join(self, block: Block) -> Block | None:
        """The nearest block that every way out of this one comes through."""
        later = self.behind[id(block)] - {id(block)}
        return max(
            (b for b in self.order if id(b) in later),
            key=lambda b: len(self.behind[id(b)]),
            default=None,
        )

    def _seen(self, values: list[Value]) -> list[Value]:
        return [self.twins.get(id(v), v) for v in values]

    def _walk(
        self, block: Block, values: list[Value] | None, stop: Block | None, into: Block
    ) -> list[Value]:
        """Operations from a block on, up to `stop`; what `stop` gets, or the function returns."""
        while block is not stop or values is None:
            if values is not None:
                self.twins.update(zip(map(id, block.args), values, strict=True))
            self.left -= 1
            if self.left < 0:
                self.p.fail("PTO-P024", f"blocks are copied more than {_MOST_COPIES} times")
            branch, ops = self.ends.get(id(block)), block.ops
            returns = branch is None and bool(ops) and ops[-1].row is RETURN
            for op in ops[:-1] if returns else ops:
                _append(into, copied_operation(op, self.twins))
            if branch is None:
                return self._seen(ops[-1].operands) if returns else []
            if not branch.cases:
                block, values = self._block(branch.otherwise), self._seen(branch.otherwise.values)
                continue
            join = self._join(block)
            found = self._choice(branch, 0, join, into)
            if join is None:
                return found
            block, values = join, found
        return values

    def _choice(self, branch: Branch, n: int, join: Block | None, into: Block) -> list[Value]:
        if n == len(branch.cases):
            other = branch.otherwise
            return self._walk(self._block(other), self._seen(other.values), join, into)
        self.depth += 1
        if self.depth > lx.MAX_DEPTH:
            self.p.fail("PTO-P023", f"branches are nested more than {lx.MAX_DEPTH} deep")
        number, target = branch.cases[n]
        op = Operation.of(IF, [self._condition(branch, number, into)], where=branch.where)
        _append(into, op)
        results: list[Value] = []
        for taken in (True, False):
            region = Region(op)
            inner = Block(region)
            region.blocks.append(inner)
            op.regions.append(region)
            if taken:
                results = self._walk(self._block(target), self._seen(target.values), join, inner)
            else:
                results = self._choice(branch, n + 1, join, inner)
            _append(inner, _end(YIELD, results, branch.where))
        op.results = [Value(v.type, v.name, op) for v in results]
        self.depth -= 1
        return list(op.results)

    def _condition(self, branch: Branch, number: int | None, into: Block) -> Value:
        (flag,) = self._seen([branch.on] if branch.on is not None else [])
        if number is None:
            return flag
        known = Operation.of(CONSTANT, attrs={"value": Int(number, flag.type)}, where=branch.where)
        (case,) = known.results = [Value(flag.type, "case", known)]
        eq = {"predicate": Enum("cmpi_predicate", "eq")}
        compared = Operation.of(CMPI, [flag, case], dict(eq), branch.where)
        (holds,) = compared.results = [Value(_I1, "is_case", compared)]
        _append(into, known)
        _append(into, compared)
        return holds


_I1: Type = Scalar("i1", I1)


def _end(row: Instr, values: list[Value], where: Span | Loc | None) -> Operation:
    op = Operation.of(row, values, where=where)
    op.segments = (len(values),)
    return op


def _append(block: Block, op: Operation) -> None:
    op.parent = block
    block.ops.append(op)
