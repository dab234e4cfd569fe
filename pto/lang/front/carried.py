"""Loop-carried variables: numbers become carried values of the loop, tiles become buffers.

If the body binds a tile variable to another tile, the variable needs a buffer, and the body is
traced again with it; also if the valid region of a buffer changes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from pto.ir.graph import Block, Operation, Value
from pto.isa.row.types import Scalar as ScalarType
from pto.lang.call.misused import RESULT
from pto.lang.call.place import mistake
from pto.lang.front.contents import contents, require_contents
from pto.lang.front.values import (
    MISSING,
    UNSET,
    Key,
    Unjoinable,
    Values,
    VariableSlots,
    ahead_of,
    buffer,
    common_kind,
    copy,
    is_plain,
    is_register,
    is_same,
    kind_of,
    leaves,
    name_of,
    rebuilt,
    require_one_tile_type,
    same_structure,
    words,
)
from pto.lang.trace import Trace
from pto.lang.values.registers import wrap
from pto.lang.values.scalars import Scalar, as_value, is_number
from pto.lang.values.tiles import Tile, same_region

Place = tuple[Key, int]  # a variable, and which of its parts


class TraceAgain(BaseException):
    """Raised to trace the body again: a tile needs a buffer, or fewer assumptions about it. Not an
    Exception, so that user code does not catch it."""

    def __init__(self, slot: Place, kind: str) -> None:
        super().__init__()
        self.place = slot
        self.what = kind


@dataclass(slots=True)
class Assumed:
    """The assumptions about tiles that the body binds."""

    buffer: set[Place] = field(default_factory=set[Place])  # they have their own buffer
    region: set[Place] = field(default_factory=set[Place])  # their region is dynamic
    unfilled: set[Place] = field(default_factory=set[Place])  # not constant in all elements


@dataclass(slots=True, eq=False)
class CarriedValue:
    """One carried number, register or tile, or a value that must not change."""

    place: Place
    name: str
    before: Any
    inside: Any
    args: list[Value] = field(default_factory=list[Value])  # one a region
    ends: list[Value] = field(default_factory=list[Value])  # what each region ends with

    @property
    def is_changed(self) -> bool:
        return any(end is not arg for end, arg in zip(self.ends, self.args, strict=True))


class CarriedLoop:
    """The variables of one loop while its regions are traced."""

    first: Callable[[], object] | None = None  # whether the iteration is the first, in its body

    def __init__(
        self, trace: Trace, slots: VariableSlots, names: set[Key], assumed: Assumed, regions: int
    ) -> None:
        self.counts = regions == 1  # `for`
        self.trace = trace
        self.slots = slots
        self.assumed = assumed
        self.before = slots.read()
        names = names | slots.always
        self._held = contents(slots.blocks, trace)
        self.leaves: dict[Key, list[CarriedValue]] = {}
        self.late = [k for k, v in self.before.items() if _has_none(v) and k in names]
        self.lost: dict[Key, str] = {}
        self._steady: dict[Value, Value] = {}  # arguments that no iteration changes: their value
        self._found: Values = {}  # values of variables that only the body binds
        for key in self.before:
            if key in names and key not in self.late:
                values = leaves(self.before[key])
                self.leaves[key] = [self._leaf((key, n), v, regions) for n, v in enumerate(values)]

    def _leaf(self, place: Place, value: object, regions: int) -> CarriedValue:
        name = place[0] if isinstance(place[0], str) else place[0].name
        leaf = CarriedValue(place, name, value, value)
        if is_plain(value):
            leaf.args = [Value(kind_of(value), name) for _ in range(regions)]
            if is_number(value):
                self.trace.loosen(leaf.args)
        elif is_register(value):
            leaf.args = [Value(value.type, name) for _ in range(regions)]
        elif isinstance(value, Tile) and place in self.assumed.buffer:
            leaf.inside = self._buffer(name, value)
            if place in self.assumed.region:
                leaf.inside.known_region = (None, None)
            if place in self.assumed.unfilled:
                leaf.inside.is_filled = False
            if value.filled_if or place in self.assumed.unfilled:
                leaf.inside.filled_if = self._filled_if(value)
        return leaf

    def _filled_if(self, before: Tile) -> Callable[[], object] | None:
        """The condition under which a tile that was filled before the loop is so in its body: in
        the first iteration. None for `while`, which does not count."""

        def first() -> object:
            assert self.first is not None
            outer = None if before.filled_if is None else before.filled_if()
            return self.first() if outer is None else self.first() & outer

        return first if self.counts else None

    def _buffer(self, name: str, value: Tile) -> Tile:
        copied = buffer(self.trace, value, name)
        copy(self.trace, copied, value)
        return copied

    @property
    def carried(self) -> list[CarriedValue]:
        return [leaf for leaves in self.leaves.values() for leaf in leaves if leaf.args]

    def bind(self, region: int) -> None:
        """Bind the variables to the arguments of a region."""
        values = dict(self.before)
        for key, leaves_of in self.leaves.items():
            for leaf in leaves_of:
                if leaf.args:
                    leaf.inside = wrap(leaf.args[region], self.trace)
            values[key] = rebuilt(values[key], iter([leaf.inside for leaf in leaves_of]))
        self.slots.write(values)

    # ---- the end of a region

    def collect(self, region: int) -> None:
        """Record the variables at the end of a region; copy tiles to their buffers."""
        now = self.slots.read()
        moves: list[tuple[Tile, Tile]] = []
        for key, leaves_of in self.leaves.items():
            try:
                if not same_structure(now[key], self.before[key]):
                    raise _differ(self.before[key], now[key])
                for leaf, value in zip(leaves_of, leaves(now[key]), strict=True):
                    self._end(leaf, value, region, moves)
            except Unjoinable as why:
                name = key if isinstance(key, str) else key.name
                raise mistake(
                    "PTO-U217",
                    f"`{name}` cannot be carried by the program's loop: {why}",
                    help="bind it to a number, a register or a tile of one type before the loop and"
                    " in it",
                ) from None
        for key in self.late:
            if not _has_none(now[key]):
                self._add_late(key, now[key])
        self._move(moves)

    def _end(
        self, leaf: CarriedValue, value: object, region: int, moves: list[tuple[Tile, Tile]]
    ) -> None:
        if leaf.args:
            leaf.ends.append(self._end_value(leaf, value, region))
        elif isinstance(leaf.before, Tile) and isinstance(value, Tile):
            if value is not leaf.inside:
                self._end_tile(leaf, value)
                moves.append((leaf.inside, value))
        elif not is_same(leaf.inside, value):
            raise _differ(leaf.inside, value)

    def _end_value(self, leaf: CarriedValue, value: object, region: int) -> Value:
        arg = leaf.args[region]
        if is_register(value) and value.type == arg.type:
            return value.used()
        if not is_plain(value) or not isinstance(arg.type, ScalarType):
            raise _differ(leaf.before, value)
        if isinstance(value, Scalar) and value.value is arg:
            return arg
        if is_number(leaf.before) and kind_of(value) != arg.type:
            self.trace.tighten(arg, common_kind(leaf.before, value))
        kind = arg.type
        if common_kind(leaf.inside, value) != kind and kind.is_float:  # integers change their width
            raise _differ(leaf.inside, value)
        return as_value(value, kind)

    def _end_tile(self, leaf: CarriedValue, value: Tile) -> None:
        require_one_tile_type(leaf.before, value)
        place, trace = leaf.place, self.trace
        if place not in self.assumed.buffer:
            raise TraceAgain(place, "buffer")
        inside: Tile = leaf.inside
        region = trace.region(value)
        if place not in self.assumed.region and not same_region(inside.known_region, region):
            raise TraceAgain(place, "region")
        full = value.is_filled or same_region(region, value.shape)
        if inside.is_filled and not full:
            raise TraceAgain(place, "unfilled")

    def _move(self, moves: list[tuple[Tile, Tile]]) -> None:
        """Emit parallel copies: a source that an earlier copy overwrites is saved first."""
        trace, targets = self.trace, {dst for dst, _ in moves}
        saved: dict[Tile, Tile] = {}
        for src in dict.fromkeys(src for _, src in moves):
            if src in targets:
                saved[src] = buffer(trace, src, f"{src.value.name}_kept")
                copy(trace, saved[src], src)
        for dst, src in moves:
            filled = dst.is_filled
            copy(trace, dst, saved.get(src, src))
            dst.is_filled = filled

    # ---- variables that only the body binds

    def _add_late(self, key: Key, value: object) -> None:
        try:
            for leaf in leaves(value):
                if isinstance(leaf, Tile):
                    require_one_tile_type(leaf, leaf)
                elif not is_plain(leaf):
                    raise Unjoinable(f"it is {words(value)} inside the loop only")
            self._found[key] = value
        except Unjoinable as why:
            self.lost[key] = str(why)

    def carry_late(self, op: Operation, blocks: Sequence[Block], *, runs: bool) -> None:
        """Carry variables that only the body binds; their initial values are never read. If the
        body may not run, these are only results of functions."""
        for key, value in self._found.items():
            if (runs and key in self.late) or name_of(key) == RESULT:
                parts = enumerate(leaves(value))
                self.leaves[key] = [self._late((key, n), v, op, blocks) for n, v in parts]
                self.before[key] = value

    def _late(
        self, place: Place, value: object, op: Operation, blocks: Sequence[Block]
    ) -> CarriedValue:
        leaf = CarriedValue(place, str(name_of(place[0])), value, value)
        if isinstance(value, Tile):
            self._late_tile(leaf, value, op, blocks[-1])
            return leaf
        kind = kind_of(value)
        leaf.args = [Value(kind, leaf.name, block) for block in blocks]
        leaf.before = False if kind.name == "i1" else 0.0 if kind.is_float else 0
        with self.trace.inside(blocks[-1], certain=True):
            leaf.ends = [*leaf.args[:-1], as_value(value, kind)]
        return leaf

    def _late_tile(self, leaf: CarriedValue, part: Tile, op: Operation, block: Block) -> None:
        with ahead_of(self.trace, op):
            leaf.inside = buffer(self.trace, part, leaf.name)
        with self.trace.inside(block):
            copy(self.trace, leaf.inside, part)

    # ---- after the loop

    def finish(self, blocks: Sequence[Block]) -> list[CarriedValue]:
        """Remove arguments that no iteration changes; returns the remaining carried values."""
        changed = [leaf for leaf in self.carried if leaf.is_changed]
        for leaf in self.carried:
            if not leaf.is_changed:
                self._steady.update(dict.fromkeys(leaf.args, self.init(leaf)))
        for arg, value in self._steady.items():
            arg.replace_all_uses(value)
        for leaf in changed:
            leaf.ends = [self.final(value) for value in leaf.ends]
        args = {arg for leaf in self.carried for arg in leaf.args}
        for n, block in enumerate(blocks):
            first = [arg for arg in block.args if arg not in args]
            block.args[:] = [*first, *(leaf.args[n] for leaf in changed)]
        return changed

    def final(self, value: Value) -> Value:
        """A value of the body, with arguments removed by `finish` replaced."""
        return self._steady.get(value, value)

    def init(self, leaf: CarriedValue) -> Value:
        """The value before the first iteration."""
        kind = leaf.args[0].type
        return as_value(leaf.before, kind) if isinstance(kind, ScalarType) else leaf.before.used()

    def after(
        self, changed: Sequence[CarriedValue], results: Sequence[Value], live: set[Key]
    ) -> None:
        """Bind the variables to their values after the loop."""
        require_contents(self.trace, self._held)
        result_of = {leaf.place: value for leaf, value in zip(changed, results, strict=True)}
        end, values = self.slots.read(), dict(self.before)
        for leaf in (leaf for leaves_of in self.leaves.values() for leaf in leaves_of):
            if isinstance(leaf.inside, Tile):
                leaf.inside.filled_if = None  # the counter ends with the loop
        for key, leaves_of in self.leaves.items():
            parts: list[object] = []
            for leaf in leaves_of:
                if leaf.place in result_of:
                    parts.append(wrap(result_of[leaf.place], self.trace))
                else:
                    parts.append(leaf.inside if isinstance(leaf.inside, Tile) else leaf.before)
            values[key] = rebuilt(values[key], iter(parts))
        for key, value in end.items():
            if key not in self.leaves and not is_same(value, self.before[key]):
                values[key] = MISSING
                name = name_of(key)
                if name is not None and (key in live or key in self.slots.always):
                    why = self.lost.get(key) or "it is bound only inside it, and it may not run"
                    self.trace.unbound[name] = f"after the loop {why}"
        self.slots.write(values)


def _differ(before: object, after: object) -> Unjoinable:
    return Unjoinable(f"it is {words(before)}, then {words(after)}")


def _has_none(value: object) -> bool:
    return value is MISSING or value is UNSET
