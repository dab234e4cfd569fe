"""The syntax of branches between blocks (`cf.br`, `cf.cond_br`, `cf.switch`).

`lifted.py` converts them to structured control flow.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pto.ir.graph import Block, Span, Value
from pto.ir.text import lexer as lx
from pto.ir.text.generic import read_operands
from pto.isa.row.attributes import Attribute, Ints, Raw

if TYPE_CHECKING:
    from pto.ir.text.parser import Parser


@dataclass(slots=True)
class BranchTarget:
    """The target block of a branch, and the values for its arguments."""

    label: str
    token: int
    values: list[Value] = field(default_factory=list[Value])
    found: Block | None = None  # the block of this name, once all are read

    @property
    def block(self) -> Block:
        if self.found is None:
            raise RuntimeError(f"{self.label} is not looked up yet")
        return self.found


@dataclass(slots=True)
class BlockBranch:
    """The branch at the end of a block: cases in order, each with its condition, and the default
    target."""

    where: Span
    otherwise: BranchTarget
    on: Value | None = None
    cases: list[tuple[int | None, BranchTarget]] = field(
        default_factory=list[tuple[int | None, BranchTarget]]
    )

    def targets(self) -> list[BranchTarget]:
        return [*(target for _, target in self.cases), self.otherwise]


# ---- reading


def places(p: Parser, first: BlockBranch | None) -> tuple[list[int], int]:
    """First tokens of the blocks after the first one, and of the end of the region. Text may have
    blocks in any order; here definitions come before uses."""
    starts = dict[str, int]()
    named = dict[int, list[str]]()
    at = p.i
    depth = 0
    while p.kinds[at] != lx.END and (depth or p.texts[at] != "}"):
        text, kind = p.texts[at], p.kinds[at]
        if kind == lx.PUNCT:
            depth += (text in "{([") - (text in "})]")
        elif kind == lx.LABEL:
            if depth == 0 and p.texts[at - 1] != "," and p.texts[at - 1] not in BRANCHES:
                starts.setdefault(text, at)
                named[at] = []
            else:
                named[next(reversed(named))].append(text)
        at += 1
    named[-1] = [target.label for target in first.targets()] if first else []
    done, path = list[int](), [(-1, iter(named[-1]))]
    left = dict.fromkeys(starts)
    while path:
        position, labels = path[-1]
        label = next((candidate for candidate in labels if candidate in left), None)
        if label is None:
            done.append(position)
            path.pop()
        else:
            del left[label]
            path.append((starts[label], iter(named[starts[label]])))
    reached = set(done)
    return [*done[-2::-1], *(start for start in named if start not in reached)], at


def read_branch(p: Parser) -> BlockBranch:
    """One branch operation, up to its last target."""
    start, outer = p.i, p.uses
    p.uses = []
    read = _read_generic if p.kind == lx.STRING else BRANCHES[p.text]
    p.i += 1
    branch = read(p, p.span(start))
    p.skip_location()
    value_at = {here: value for _, here, value in p.uses}
    p.uses = outer
    for target in branch.targets():
        target.values = [value_at.get(v, v) for v in target.values]
    if branch.on is not None:
        branch.on = value_at.get(branch.on, branch.on)
    return branch


def _target(p: Parser) -> BranchTarget:
    if p.kind != lx.LABEL:
        p.fail("PTO-P020", f"expected a block, got {p.shown()}")
    target = BranchTarget(p.text, p.i)
    p.i += 1
    if p.accept("("):
        while not p.accept(":"):
            target.values.append(p.use())
            p.accept(",")
        for n, value in enumerate(target.values):
            if n:
                p.expect(",")
            at = p.i
            p.agree(value, p.type(value.type), at)
        p.expect(")")
    return target


def _read_plain(p: Parser, where: Span) -> BlockBranch:
    return BlockBranch(where, _target(p))


def _read_condition(p: Parser, where: Span) -> BlockBranch:
    condition = p.use()
    p.expect(",")
    then = _target(p)
    p.expect(",")
    return BlockBranch(where, _target(p), condition, [(None, then)])


def _read_switch(p: Parser, where: Span) -> BlockBranch:
    """`%flag : i32, [default: ^a, 0: ^b(%x : T)]`."""
    flag = p.use()
    p.expect(":")
    p.type(flag.type)
    p.expect(",")
    p.expect("[")
    p.expect("default")
    p.expect(":")
    branch = BlockBranch(where, _target(p), flag)
    while p.accept(","):
        if not p.text.removeprefix("-").isdecimal():
            p.fail("PTO-P020", f"expected the number of a case, got {p.shown()}")
        number = int(p.take())
        p.expect(":")
        branch.cases.append((number, _target(p)))
    p.expect("]")
    return branch


def _read_generic(p: Parser, where: Span) -> BlockBranch:
    """`(%flag, %x) [^a, ^b] <{operandSegmentSizes = array<i32: 1, 1, 0>}> : (i1, T) -> ()`."""
    values, at = read_operands(p), p.i
    p.expect("[")
    targets = [_target(p)]
    while p.accept(","):
        targets.append(_target(p))
    p.expect("]")
    attrs: dict[str, Attribute] = {}
    if p.accept("<"):
        attrs = dict(p.attr_items("{", "}"))
        p.expect(">")
    p.expect(":")
    for value, type in zip(values, p.function_type().inputs, strict=False):
        p.agree(value, type, at)
    numbers = attrs.get("case_values")
    cases = _CASES.findall(numbers.text.partition(">")[0]) if isinstance(numbers, Raw) else []
    flags, *sizes = _numbers(attrs, "operandSegmentSizes") or [0, len(values)]
    sizes = [*sizes[:1], *_numbers(attrs, "case_operand_segments")] if cases else sizes
    fits = len(sizes) == len(targets) and len(cases) in (0, len(targets) - 1)
    if not fits or flags > 1 or flags + sum(sizes) != len(values):
        p.fail("PTO-P012", f"{len(values)} operands cannot be divided among the targets", at=at)
    left = iter(values)
    on = next(left) if flags else None
    for target, size in zip(targets, sizes, strict=True):
        target.values = [next(left) for _ in range(size)]
    if cases:  # the default is the first target
        return BlockBranch(
            where, targets[0], on, list(zip(map(int, cases), targets[1:], strict=True))
        )
    return BlockBranch(where, targets[-1], on, [(None, target) for target in targets[:-1]])


def _numbers(attrs: dict[str, Attribute], name: str) -> list[int]:
    attribute = attrs.get(name)
    return list(attribute.values) if isinstance(attribute, Ints) else []


_CASES = re.compile(r"-?\d+")
BRANCHES = {"cf.br": _read_plain, "cf.cond_br": _read_condition, "cf.switch": _read_switch}
