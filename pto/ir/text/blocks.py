"""The blocks of a region as a graph: who branches to whom, which block every way to another one
comes through, and loops: the blocks between a branch back and the one block it goes back to.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pto.core.errors import Diagnostic
from pto.ir.graph import Block, Operation, Region, Value
from pto.ir.text.branches import Branch, Target
from pto.ir.text.cursor import POISON
from pto.ir.text.types import type_text

if TYPE_CHECKING:
    from pto.ir.text.parser import Parser

_MOST_BLOCKS = 1024  # more of them mean hostile input


@dataclass(slots=True)
class Loop:
    """Blocks that are repeated, all entered through the header; the region as a whole is one that
    nothing goes back in. A loop inside counts as one block of it, its header."""

    header: Block
    blocks: set[int]
    latch: Block  # stands for going back, or leaving: no way on
    inner: dict[int, Loop] = field(default_factory=dict[int, "Loop"])  # by header
    exits: list[Block] = field(default_factory=list[Block])
    order: list[Block] = field(default_factory=list[Block])  # each behind those it branches to
    behind: dict[int, set[int]] = field(default_factory=dict[int, set[int]])

    def ends_at(self, block: Block) -> bool:
        """Whether a branch to a block goes back or leaves."""
        return block is self.header or id(block) not in self.blocks

    def join(self, block: Block) -> Block | None:
        """The nearest block that every way out of this one comes through."""
        later = self.behind[id(block)] - {id(block)}
        found = (b for b in self.order if id(b) in later)
        return max(found, key=lambda b: len(self.behind[id(b)]), default=None)


class Graph:
    """What can be reached of a region; refuses what has no structure."""

    def __init__(
        self, p: Parser, region: Region, labels: dict[str, Block], ends: dict[int, Branch]
    ) -> None:
        self.p, self.region, self.ends = p, region, ends
        if len(region.blocks) > _MOST_BLOCKS:
            p.fail("PTO-P024", f"a region has {len(region.blocks)} blocks, {_MOST_BLOCKS} at most")
        for branch in ends.values():
            for target in branch.targets():
                self._look_up(target, labels)
        self.before: dict[int, list[Block]] = {}  # block -> those that branch to it
        self.blocks = self._reached()  # each before those it branches to, but for going back
        self.numbers = {id(block): n for n, block in enumerate(self.blocks)}
        self.above = self._dominators()
        self.top = self._loops()
        self.made: dict[int, Block] = {}  # value -> the block that makes it
        self.used: dict[int, list[int]] = {}  # value -> the blocks that use it, one for each use
        self._values()

    def targets(self, block: Block) -> list[Target]:
        branch = self.ends.get(id(block))
        return branch.targets() if branch else []

    def dominates(self, a: Block, b: Block) -> bool:
        """Whether every way to `b` comes through `a`."""
        return bool(self.above[self.numbers[id(b)]] >> self.numbers[id(a)] & 1)

    def _look_up(self, target: Target, labels: dict[str, Block]) -> None:
        found = labels.get(target.label)
        if found is None:
            self.p.fail("PTO-P024", f"there is no block {target.label} here", at=target.token)
        if found is self.region.blocks[0]:
            message = f"the branch to {target.label} goes back to the first block"
            help = "begin with a block of its own that branches to it"
            self.p.fail("PTO-P024", message, help=help, at=target.token)
        wanted, given = [v.type for v in found.args], [v.type for v in target.values]
        if len(wanted) != len(given):
            message = f"block {target.label} takes {len(wanted)} values, got {len(given)}"
            self.p.fail("PTO-P024", message, at=target.token)
        for take, give in zip(wanted, given, strict=True):
            if take != give and POISON not in (take, give):
                message = f"block {target.label} takes {type_text(take)}, got {type_text(give)}"
                self.p.fail("PTO-P024", message, at=target.token)
        target.found = found

    def _reached(self) -> list[Block]:
        """Blocks in reverse postorder."""
        done: list[Block] = []
        first = self.region.blocks[0]
        seen, path = {id(first)}, [(first, iter(self.targets(first)))]
        self.before[id(first)] = []
        while path:
            block, left = path[-1]
            target = next(left, None)
            if target is None:
                done.append(block)
                path.pop()
                continue
            self.before.setdefault(id(target.block), []).append(block)
            if id(target.block) not in seen:
                seen.add(id(target.block))
                path.append((target.block, iter(self.targets(target.block))))
        return done[::-1]

    def _dominators(self) -> list[int]:
        """For each block those that every way to it comes through, as bits of their numbers."""
        every = (1 << len(self.blocks)) - 1
        found = [1, *[every] * (len(self.blocks) - 1)]
        changed = True
        while changed:
            changed = False
            for n, block in enumerate(self.blocks[1:], 1):
                common = every
                for each in self.before[id(block)]:
                    common &= found[self.numbers[id(each)]]
                changed |= found[n] != common | 1 << n
                found[n] = common | 1 << n
        return found

    # ---- values

    def _values(self) -> None:
        for block in self.blocks:
            for value in made_in(block):
                self.made[id(value)] = block
        for block in self.blocks:
            for op in block.ops:
                for inner in op.walk():
                    self._use(block, inner.operands, inner)
            branch = self.ends.get(id(block))
            if branch is not None:
                on = [] if branch.on is None else [branch.on]
                given = (v for target in branch.targets() for v in target.values)
                self._use(block, [*on, *given], branch)

    def _use(self, block: Block, values: list[Value], by: Operation | Branch) -> None:
        for value in values:
            maker = self.made.get(id(value))
            if maker is not None and not self.dominates(maker, block):
                where = by.where.loc if isinstance(by, Branch) else by.loc
                message = f"%{value.name} is not defined on every way here"
                self.p.record(Diagnostic("PTO-P011", message, where))
            self.used.setdefault(id(value), []).append(id(block))

    def leaves(self, value: Value, blocks: set[int]) -> bool:
        """Whether a value is used outside of some blocks."""
        return not blocks.issuperset(self.used.get(id(value), ()))

    def escaping(self, loop: Loop) -> list[Value]:
        """What is made in a loop and used behind it."""
        inside = (block for block in self.blocks if id(block) in loop.blocks)
        return [v for block in inside for v in made_in(block) if self.leaves(v, loop.blocks)]

    def handed(self, header: Block) -> list[Value]:
        """What a header makes and others use: in blocks, or given to them."""
        given = {id(v) for target in self.targets(header) for v in target.values}
        return [v for v in made_in(header) if id(v) in given or self.leaves(v, {id(header)})]

    # ---- loops

    def _loops(self) -> Loop:
        found: dict[int, Loop] = {}
        for block in self.blocks:
            for target in self.targets(block):
                header = target.block
                if self.numbers[id(header)] > self.numbers[id(block)]:
                    continue
                if not self.dominates(header, block):
                    self.p.fail(
                        "PTO-P024",
                        f"the branch to {target.label} goes back into a loop that has another "
                        "entry: it has no structure",
                        help="let every way into the loop come through one block",
                        at=target.token,
                    )
                if id(header) not in found:
                    found[id(header)] = Loop(header, {id(header)}, Block(self.region))
                self._grow(found[id(header)], block)
        everything = {id(block) for block in self.blocks}
        top = Loop(self.blocks[0], everything, Block(self.region))
        by_size = sorted(found.values(), key=lambda loop: len(loop.blocks))
        for n, loop in enumerate(by_size):
            around = (each for each in by_size[n + 1 :] if id(loop.header) in each.blocks)
            next(around, top).inner[id(loop.header)] = loop
        for loop in (*by_size, top):
            self._arrange(loop)
        self._hoist({block for loop in by_size for block in loop.blocks})
        return top

    def _grow(self, loop: Loop, block: Block) -> None:
        """All that leads to a block that goes back, up to the header."""
        left = [block]
        while left:
            each = left.pop()
            if id(each) not in loop.blocks:
                loop.blocks.add(id(each))
                left += self.before[id(each)]

    def _hoist(self, repeated: set[int]) -> None:
        """Constants stand before all loops: what is handed from turn to turn is not known."""
        for block in self.blocks:
            if id(block) in repeated:
                constants = [op for op in block.ops if op.traits.constant]
                self.blocks[0].ops[:0] = constants
                block.ops = [op for op in block.ops if not op.traits.constant]

    def _arrange(self, loop: Loop) -> None:
        """Exits, and what every way on comes through; loops inside come first."""
        inside = {b for inner in loop.inner.values() for b in inner.blocks} - loop.inner.keys()
        for block in reversed(self.blocks):
            if id(block) not in loop.blocks or id(block) in inside:
                continue
            inner = loop.inner.get(id(block))
            nexts = inner.exits if inner else [target.block for target in self.targets(block)]
            for each in nexts:
                if id(each) not in loop.blocks and each not in loop.exits:
                    loop.exits.append(each)
            if inner and not nexts:
                self._endless(inner)
            ways = [
                {id(loop.latch)} if loop.ends_at(each) else loop.behind[id(each)] for each in nexts
            ]
            loop.behind[id(block)] = {id(block), *(set.intersection(*ways) if ways else set())}
            loop.order.append(block)
        loop.behind[id(loop.latch)] = {id(loop.latch)}
        loop.order.append(loop.latch)

    def _endless(self, loop: Loop) -> None:
        back = (t for b in self.blocks if id(b) in loop.blocks for t in self.targets(b))
        target = next(t for t in back if t.block is loop.header)
        message = f"the branch to {target.label} goes back, and no way leads out of this loop"
        self.p.fail("PTO-P024", message, help="branch to a block outside", at=target.token)


def made_in(block: Block) -> Iterator[Value]:
    """Arguments of a block, and results of its operations."""
    yield from block.args
    for op in block.ops:
        yield from op.results
