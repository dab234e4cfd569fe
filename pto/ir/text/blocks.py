"""The control-flow graph of a region's blocks: predecessors, dominators and natural loops."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pto.core.errors import Diagnostic
from pto.ir.graph import Block, Operation, Region, Value
from pto.ir.text.branches import BlockBranch, BranchTarget
from pto.ir.text.cursor import POISON
from pto.ir.text.types import type_text

if TYPE_CHECKING:
    from pto.ir.text.parser import Parser

_MOST_BLOCKS = 1024  # more of them mean hostile input


@dataclass(slots=True, eq=False)
class BlockLoop:
    """A natural loop with a single entry, the header. The whole region is also one, without a back
    edge. An inner loop counts as one block, its header."""

    header: Block
    blocks: set[Block]
    latch: Block  # artificial block: the target of back edges and exits
    inner: dict[Block, BlockLoop] = field(default_factory=dict[Block, "BlockLoop"])  # by header
    exits: list[Block] = field(default_factory=list[Block])
    order: list[Block] = field(default_factory=list[Block])  # each after its successors
    behind: dict[Block, set[Block]] = field(default_factory=dict[Block, set[Block]])

    def ends_at(self, block: Block) -> bool:
        """True if a branch to `block` goes back to the header or leaves the loop."""
        return block is self.header or block not in self.blocks

    def join(self, block: Block) -> Block | None:
        """The immediate post-dominator of a block."""
        later = self.behind[block] - {block}
        joins = (b for b in self.order if b in later)
        return max(joins, key=lambda b: len(self.behind[b]), default=None)


class BlockGraph:
    """The reachable blocks of a region; reports control flow that is not reducible."""

    def __init__(
        self, p: Parser, region: Region, labels: dict[str, Block], ends: dict[Block, BlockBranch]
    ) -> None:
        self.p = p
        self.region = region
        self.ends = ends
        if len(region.blocks) > _MOST_BLOCKS:
            p.fail("PTO-P024", f"a region has {len(region.blocks)} blocks, {_MOST_BLOCKS} at most")
        for branch in ends.values():
            for target in branch.targets():
                self._look_up(target, labels)
        self.before: dict[Block, list[Block]] = {}  # block -> its predecessors
        self.blocks = self._reached()  # each before its successors, except along back edges
        self.numbers = {block: n for n, block in enumerate(self.blocks)}
        self.above = self._dominators()
        self.top = self._loops()
        self.made: dict[Value, Block] = {}  # value -> the block that makes it
        self.used: dict[
            Value, list[Block]
        ] = {}  # value -> the blocks that use it, one for each use
        self._values()

    def targets(self, block: Block) -> list[BranchTarget]:
        branch = self.ends.get(block)
        return branch.targets() if branch else []

    def dominates(self, a: Block, b: Block) -> bool:
        """True if `a` dominates `b`."""
        return bool(self.above[self.numbers[b]] >> self.numbers[a] & 1)

    def _look_up(self, target: BranchTarget, labels: dict[str, Block]) -> None:
        block = labels.get(target.label)
        if block is None:
            self.p.fail("PTO-P024", f"there is no block {target.label} here", at=target.token)
        if block is self.region.blocks[0]:
            message = f"the branch to {target.label} goes back to the first block of the region"
            help = "add a new first block that branches to it"
            self.p.fail("PTO-P024", message, help=help, at=target.token)
        wanted, passed = [v.type for v in block.args], [v.type for v in target.values]
        if len(wanted) != len(passed):
            message = f"block {target.label} takes {len(wanted)} values, got {len(passed)}"
            self.p.fail("PTO-P024", message, at=target.token)
        for take, give in zip(wanted, passed, strict=True):
            if take != give and POISON not in (take, give):
                message = f"block {target.label} takes {type_text(take)}, got {type_text(give)}"
                self.p.fail("PTO-P024", message, at=target.token)
        target.found = block

    def _reached(self) -> list[Block]:
        """Blocks in reverse postorder."""
        done: list[Block] = []
        first = self.region.blocks[0]
        visited, path = {first}, [(first, iter(self.targets(first)))]
        self.before[first] = []
        while path:
            block, left = path[-1]
            target = next(left, None)
            if target is None:
                done.append(block)
                path.pop()
                continue
            self.before.setdefault(target.block, []).append(block)
            if target.block not in visited:
                visited.add(target.block)
                path.append((target.block, iter(self.targets(target.block))))
        return done[::-1]

    def _dominators(self) -> list[int]:
        """The dominators of each block, as a bit set of block numbers."""
        every = (1 << len(self.blocks)) - 1
        dominators = [1, *[every] * (len(self.blocks) - 1)]
        changed = True
        while changed:
            changed = False
            for n, block in enumerate(self.blocks[1:], 1):
                common = every
                for predecessor in self.before[block]:
                    common &= dominators[self.numbers[predecessor]]
                changed |= dominators[n] != common | 1 << n
                dominators[n] = common | 1 << n
        return dominators

    # ---- values

    def _values(self) -> None:
        for block in self.blocks:
            for value in made_in(block):
                self.made[value] = block
        for block in self.blocks:
            for op in block.ops:
                for inner in op.walk():
                    self._use(block, inner.operands, inner)
            branch = self.ends.get(block)
            if branch is not None:
                on = [] if branch.on is None else [branch.on]
                passed = (v for target in branch.targets() for v in target.values)
                self._use(block, [*on, *passed], branch)

    def _use(self, block: Block, values: list[Value], by: Operation | BlockBranch) -> None:
        for value in values:
            maker = self.made.get(value)
            if maker is not None and not self.dominates(maker, block):
                where = by.where.loc if isinstance(by, BlockBranch) else by.loc
                message = f"%{value.name} is not defined on every path to this use"
                self.p.record(Diagnostic("PTO-P011", message, where))
            self.used.setdefault(value, []).append(block)

    def leaves(self, value: Value, blocks: set[Block]) -> bool:
        """True if a value is used outside of `blocks`."""
        return not blocks.issuperset(self.used.get(value, ()))

    def escaping(self, loop: BlockLoop) -> list[Value]:
        """Values defined in a loop and used after it."""
        inside = (block for block in self.blocks if block in loop.blocks)
        return [v for block in inside for v in made_in(block) if self.leaves(v, loop.blocks)]

    def handed(self, header: Block) -> list[Value]:
        """Values defined in a header and used in other blocks or passed to them."""
        passed = {v for target in self.targets(header) for v in target.values}
        return [v for v in made_in(header) if v in passed or self.leaves(v, {header})]

    # ---- loops

    def _loops(self) -> BlockLoop:
        by_header: dict[Block, BlockLoop] = {}
        for block in self.blocks:
            for target in self.targets(block):
                header = target.block
                if self.numbers[header] > self.numbers[block]:
                    continue
                if not self.dominates(header, block):
                    self.p.fail(
                        "PTO-P024",
                        f"the branch to {target.label} goes back into a loop with several entries, "
                        "which cannot be converted to structured control flow",
                        help="enter the loop through one block only",
                        at=target.token,
                    )
                if header not in by_header:
                    by_header[header] = BlockLoop(header, {header}, Block(self.region))
                self._grow(by_header[header], block)
        everything = set(self.blocks)
        top = BlockLoop(self.blocks[0], everything, Block(self.region))
        by_size = sorted(by_header.values(), key=lambda loop: len(loop.blocks))
        for n, loop in enumerate(by_size):
            around = (outer for outer in by_size[n + 1 :] if loop.header in outer.blocks)
            next(around, top).inner[loop.header] = loop
        for loop in (*by_size, top):
            self._arrange(loop)
        self._hoist({block for loop in by_size for block in loop.blocks})
        return top

    def _grow(self, loop: BlockLoop, block: Block) -> None:
        """Add the source of a back edge and all its predecessors, up to the header."""
        left = [block]
        while left:
            member = left.pop()
            if member not in loop.blocks:
                loop.blocks.add(member)
                left += self.before[member]

    def _hoist(self, repeated: set[Block]) -> None:
        """Move constants before all loops: a loop-carried value is not known to be constant."""
        for block in self.blocks:
            if block in repeated:
                constants = [op for op in block.ops if op.traits.constant]
                block.set_ops(op for op in block.ops if not op.traits.constant)
                self.blocks[0].insert(0, *constants)

    def _arrange(self, loop: BlockLoop) -> None:
        """Compute the exits and post-dominators of a loop; inner loops are done already."""
        inside = {b for inner in loop.inner.values() for b in inner.blocks} - loop.inner.keys()
        for block in reversed(self.blocks):
            if block not in loop.blocks or block in inside:
                continue
            inner = loop.inner.get(block)
            nexts = inner.exits if inner else [target.block for target in self.targets(block)]
            for following in nexts:
                if following not in loop.blocks and following not in loop.exits:
                    loop.exits.append(following)
            if inner and not nexts:
                self._endless(inner)
            ways = [
                {loop.latch} if loop.ends_at(following) else loop.behind[following]
                for following in nexts
            ]
            loop.behind[block] = {block, *(set.intersection(*ways) if ways else set())}
            loop.order.append(block)
        loop.behind[loop.latch] = {loop.latch}
        loop.order.append(loop.latch)

    def _endless(self, loop: BlockLoop) -> None:
        back = (t for b in self.blocks if b in loop.blocks for t in self.targets(b))
        target = next(t for t in back if t.block is loop.header)
        message = f"the loop of the branch to {target.label} has no exit"
        self.p.fail("PTO-P024", message, help="branch to a block outside the loop", at=target.token)


def made_in(block: Block) -> Iterator[Value]:
    """Arguments of a block, and results of its operations."""
    yield from block.args
    for op in block.ops:
        yield from op.results
