"""Proof that every read of a tile sees bytes that were written before, on every path of a kernel.

A walk in program order. Its state is the bytes that were written on every path, and the parts of
tiles with formulas as extents. Writes of the first iteration of a loop hold in all later ones.
Bytes written through a tile are lost when an overlapping tile is written; tiles of one address and
size are aliases.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations
from typing import Final

from pto.core.layout import ND
from pto.core.memory import Role
from pto.core.tile import TileType
from pto.ir.graph import Operation, Value
from pto.ir.liveness import aliases
from pto.isa.meaning.handle import config
from pto.isa.meaning.handle.subview import SUBVIEW, sizes_of
from pto.isa.meaning.tile.rearrange import RESHAPE
from pto.isa.row import types as t
from pto.isa.row.instr import Instr
from pto.isa.row.order import Within
from pto.isa.row.traits import RegionRule
from pto.isa.rules.rule import Case
from pto.isa.tile.debug import GET_ELEMENT
from pto.plan.buffers import FunctionPlan
from pto.prove.assume import ANY, Stated
from pto.prove.filled import Target, filled
from pto.prove.flow import PeeledWalk
from pto.prove.nodes import Undecided
from pto.prove.number import ZERO, Number, number, quotient
from pto.prove.order import Problem
from pto.prove.parts import TilePart, WrittenPart, are_two, as_line, covers
from pto.prove.regions import stated_region
from pto.prove.values import Guards, LaunchSymbols, Values
from pto.target.facts import Profile

_STEPS: Final = 40_000  # operations of one walk
REBINDS: Final = (config.ALIAS, config.SCALE_ADDRESS, config.SUBVIEW)
_LOST: Final = "another tile on the same bytes may be written between"
_MASK: Final = "mask"  # the operand of bits that choose between elements


def unproved_reads(plan: FunctionPlan, profile: Profile, stated: Stated = ANY) -> list[Problem]:
    """Reads that may see bytes not written for them; raises Undecided."""
    walk = _ReadWalk(plan, profile)
    _, guards = stated.of(plan.function, walk.values)
    walk.block(plan.function.regions[0].block, guards)
    return [Problem("reads", op, why) for op, why in walk.found.items()]


class _ReadWalk(PeeledWalk[WrittenPart]):
    def __init__(self, plan: FunctionPlan, profile: Profile) -> None:
        super().__init__(Values(LaunchSymbols(plan.function), checks=False), WrittenPart())
        self._profile = profile
        self._steps = 0
        placed = [p for p in plan.placed if p.buffer.root is not None and p.buffer.nbytes]
        self._starts = {id(p.buffer.root): p for p in placed}
        roots = [p.buffer.root for p in placed if p.buffer.root is not None]
        self._roots, self._names = roots, aliases(plan.function, roots)

    # ---- control flow

    def other(self, op: Operation, guards: Guards) -> None:
        raise Undecided(op, "what it holds is not followed")

    # ---- operations

    def operation(self, op: Operation, guards: Guards) -> None:
        self._steps += 1
        if self._steps > _STEPS:
            raise Undecided(op, "the kernel is too long")
        row = op.row
        if "callee" in op.attrs or op.regions:
            raise Undecided(op, "what it reads is not followed")
        self.state.regions.operation(op, self.values)
        if row.traits.allocates:
            self._allocate(op)
        if row.traits.names_only or row.traits.allocates or row.body is RESHAPE:
            return
        if row.order is not None and not isinstance(row.order, Within):
            raise Undecided(op, "it hands tiles to others")
        if row.body in REBINDS:
            raise Undecided(op, "it changes the address of a tile")
        reads, writes = self._touched(op, row)
        case, sources = Case(op, self._profile), dict(reads)
        self._look_twins(op, [part for _, part in reads])
        for _, part in reads:
            self._read(op, part, guards)
        for name, part, fills in writes:
            target = Target(op, case, name, part, sources, guards)
            self._write(op, part, filled(target) if fills else None)

    def _touched(
        self, op: Operation, row: Instr
    ) -> tuple[list[tuple[str, TilePart]], list[tuple[str, TilePart, bool]]]:
        """Parts of tiles that an operation reads; parts that it writes, and whether it fills them;
        each with the name of its operand."""
        reads, writes = list[tuple[str, TilePart]](), list[tuple[str, TilePart, bool]]()
        is_window = op.traits.region is RegionRule.WINDOW
        for operand in row.operands:
            role = operand.role
            for value in op.group(operand.name) if self._profile.name not in operand.idle else ():
                if isinstance(value.type, t.Ptr | t.MemRef) and value.type.space.is_local:
                    raise Undecided(op, "it goes through a pointer")
                if not isinstance(value.type, t.TileBuf):
                    continue
                part = self._part(op, value)
                if op.traits.region is RegionRule.PRODUCT and value.type.tile.role is Role.ACC:
                    part = self._product(op, part)
                if operand.name == _MASK or (role == "out" and op.traits.region is RegionRule.BITS):
                    part = self._bits(op, part)
                if row is GET_ELEMENT:
                    part = self._element(op, part)
                if role == "in" or (role == "inout" and not is_window):
                    reads.append((operand.name, self._window(op, part) if is_window else part))
                if role != "in":
                    fills = role == "out" or (role == "inout" and not is_window)
                    writes.append((operand.name, part, fills))
        return reads, writes

    def _product(self, op: Operation, part: TilePart) -> TilePart:
        """The part of an accumulator that a matmul covers: rows of the left operand, columns of the
        right."""
        for value in op.operands:
            role = value.type.tile.role if isinstance(value.type, t.TileBuf) else None
            if role is Role.LEFT:
                part = replace(part, rows=self._part(op, value).rows)
            elif role is Role.RIGHT:
                part = replace(part, cols=self._part(op, value).cols)
        return part

    def _bits(self, op: Operation, part: TilePart) -> TilePart:
        """A tile of bits: as many as the elements that are compared or selected."""
        of_data = [n for n in ("src0", "src", "dst") if op.group(n)]
        size = self._part(op, op.group(of_data[0])[0])
        bits = 8 * part.tile.itemsize
        return replace(part, rows=size.rows, cols=quotient(size.cols + bits - 1, number(bits)))

    def _element(self, op: Operation, part: TilePart) -> TilePart:
        """The element at an offset: terms that are multiples of a row choose the row. If that is
        not how the offset was made, the column is not known to be inside."""
        source, offset = op.group("src")[0], op.operand("offset")
        maker = source.maker
        if offset is None or part.tile.layout != ND or (maker and maker.body is SUBVIEW):
            raise Undecided(op, "the element that it reads is not followed")
        at, pitch = self.values.number(offset), part.tile.cols
        if part.tile.rows == 1:
            row, col = ZERO, at
        else:
            whole = {(atom, n // pitch) for atom, n in at.terms if n % pitch == 0}
            row = Number(frozenset(whole), at.rest // pitch)
            col = at - row.times(pitch)
        one = number(1)
        return replace(part, row=part.row + row, col=part.col + col, rows=one, cols=one)

    def _window(self, op: Operation, part: TilePart) -> TilePart:
        """The part of a source that an operation with a window reads, as large as its
        destination."""
        start = [op.operand(name) for name in ("indexRow", "indexCol")]
        targets = op.group("dst")
        is_small = any(o.role == "out" for o in op.row.operands)
        if None in start or len(targets) != 1 or not is_small:
            return part
        row, col = (self.values.number(v) for v in start if v is not None)
        size = self._part(op, targets[0])
        return replace(part, row=part.row + row, col=part.col + col, rows=size.rows, cols=size.cols)

    # ---- places

    def _allocate(self, op: Operation) -> None:
        """An allocation that runs again is a new tile without content."""
        for value in op.results:
            placed, state = self._starts.get(id(value)), self.state
            if placed is not None and id(value) in state.made:
                state.lost.pop((placed.buffer.space, placed.start, placed.end), None)
            state.made.add(id(value))

    def _part(self, op: Operation, value: Value) -> TilePart:
        type, maker = value.type, value.maker
        assert isinstance(type, t.TileBuf)
        if maker is not None and maker.body is SUBVIEW:
            return self._subview(op, maker, type.tile)
        names = self._names.get(value, ())
        starts = [self._starts[id(self._roots[n])] for n in names]
        if not starts or len({p.start for p in starts}) > 1:
            raise Undecided(op, "a tile has no known place")
        placed = starts[0]
        rows, cols = self.state.regions.of(value, self.values)
        open_root = placed.buffer.root if placed.buffer.fixed is None else None
        if open_root is not None and len(starts) == 1:
            buffer, start = (placed.buffer.space, id(open_root)), 0
        else:
            buffer, start = (placed.buffer.space, 0), placed.start
        slot = placed.buffer.space, placed.start, placed.end
        root = id(placed.buffer.root) if len(starts) == 1 else 0
        tile = replace(type.tile, valid=type.tile.shape)  # its layout
        return TilePart(buffer, start, tile, ZERO, ZERO, rows, cols, slot, root)

    def _subview(self, op: Operation, maker: Operation, tile: TileType) -> TilePart:
        parent = self._part(op, maker.operands[0])
        row, col = (self.values.number(v) for v in maker.group("offsets"))
        sizes = zip(tile.valid, sizes_of(Case(maker, self._profile)), strict=True)
        height, width = (number(size if valid is None else valid) for valid, size in sizes)
        rows, cols = stated_region(maker, self.values, (height, width))
        return replace(parent, row=parent.row + row, col=parent.col + col, rows=rows, cols=cols)

    # ---- reads and writes

    def _read(self, op: Operation, part: TilePart, guards: Guards) -> None:
        most = part.bytes(all=True)
        state = self.state
        line = as_line(part)
        assert most is not None
        reach = most << part.place - part.start
        is_lost = bool(state.lost.get(part.slot, 0) & reach)
        if not (is_lost or most & ~state.written.get(part.buffer, 0)):
            return
        if any(not lost & reach and covers(p, line, guards) for p, lost in state.parts.items()):
            return
        self._tell(op, _LOST if is_lost else "it may read bytes that were never written")

    def _tell(self, op: Operation, text: str) -> None:
        self.found.setdefault(op, text)

    def _look_twins(self, op: Operation, reads: Sequence[TilePart]) -> None:
        """Report two tiles of one address, each filled separately, that are used as two values."""
        wrote = self.state.wrote
        for a, b in combinations(reads, 2):
            fills = [wrote.get(part.root, frozenset[int]()) for part in (a, b)]
            if (
                a.slot == b.slot
                and a.root != b.root
                and all(fills)
                and len({*fills[0], *fills[1]}) > 1
            ):
                self._tell(op, "it reads two tiles of one place")

    def _write(self, op: Operation, part: TilePart, filled: TilePart | None) -> None:
        """A write to a part that may overwrite any byte of its tile, and fills some of it."""
        state = self.state
        state.wrote[part.root] = frozenset([id(op)])
        least = 0 if filled is None else filled.bytes(all=False)
        lost = state.lost.setdefault(part.slot, 0)
        reach = (1 << part.slot[2]) - (1 << part.place)
        for slot in state.lost:
            if are_two(slot, part.slot):
                state.lost[slot] |= reach
        for other in state.parts:
            if are_two(other.slot, part.slot):
                state.parts[other] |= reach
        if filled is None:
            return
        if least:
            state.written[part.buffer] = state.written.get(part.buffer, 0) | least
            state.lost[part.slot] = lost & ~(least << part.place - part.start)
        else:
            state.parts[as_line(filled)] = 0
