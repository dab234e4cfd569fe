"""Branches of the program: traces both blocks and joins the variables that they bind."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager
from typing import Any

from pto.core.errors import Diagnostic
from pto.ir.graph import Block, Operation, Region, Value
from pto.isa.scalar.structure import IF, YIELD
from pto.lang.call.place import KernelError, assigned_names, mistake, raised_at
from pto.lang.front.contents import contents, require_contents
from pto.lang.front.values import (
    BOOLEAN,
    MISSING,
    UNSET,
    Expression,
    Key,
    Unjoinable,
    Values,
    VariableSlots,
    ahead_of,
    alike,
    buffer,
    common_kind,
    copy,
    has_returned,
    is_plain,
    is_register,
    is_same,
    kind_of,
    name_of,
    parts,
    require_one_tile_type,
    with_parts,
    words,
)
from pto.lang.trace import Trace
from pto.lang.values.operators import operations
from pto.lang.values.registers import wrap
from pto.lang.values.scalars import Scalar, as_value
from pto.lang.values.tiles import Tile, same_region
from pto.transform.tidy import computes_number

_FEW = 8  # operations that are executed either way rather than branched around


def branch(
    test: Scalar[object],
    blocks: Sequence[Callable[[], object]],
    slots: VariableSlots,
    live: Iterable[str],
) -> object:
    """Emit an scf.if; `live` are the variables that are read after it. Returns the value of the
    executed block, if both have one."""
    trace = test.home
    assert isinstance(trace, Trace)
    op = trace.append(IF, {"condition": test.used()})
    before = slots.read()
    state = contents((*blocks, *slots.blocks), trace)
    branch_blocks: list[Block] = []
    ends: list[Values] = []
    for run in blocks:
        branch_blocks.append(trace.open(op))
        with unbroken(trace):
            result = run()
        ends.append({**slots.read(), Expression.RESULT: result})
        slots.write(before)
        trace.close()
        require_contents(trace, state)
    joined = _Join(trace, op, branch_blocks).values(
        before, ends, {*live, Expression.RESULT} | slots.always
    )
    slots.write(joined)
    return joined.get(Expression.RESULT)


@contextmanager
def unbroken(trace: Trace) -> Generator[None]:
    """A context that fails the whole trace if a block is left by an exception."""
    try:
        yield
    except SystemExit as left:
        message = "the process would end in a branch or loop of the program, which is traced even"
        help = "the program does not end the process: write `assert condition, message`"
        diagnostic = Diagnostic(
            "PTO-U206", f"{message} if it will not run", raised_at(left), help=help
        )
        raise KernelError(diagnostic) from left
    except Exception:
        trace.broken(
            mistake(
                "PTO-U206",
                "an exception left a branch or loop of the program while it was traced",
                help="decide what can fail before the branch: the program has no exceptions",
            )
        )
        raise


class _Join:
    """Gives each variable one value after a branch."""

    def __init__(self, trace: Trace, op: Operation, blocks: Sequence[Block]) -> None:
        self._trace = trace
        self._op = op
        self._blocks = blocks
        self._names: list[str] = []
        self._pairs: list[list[Value]] = [[], []]  # what the blocks yield
        self._has_copies = False
        self._chosen = (assigned_names() or ("chosen",))[0]  # the value of an expression

    def values(self, before: Values, ends: Sequence[Values], live: set[Key]) -> Values:
        makers: dict[Key, Callable[[], object]] = {}
        for key in ends[0]:
            a, b = (_end(key, end) for end in ends)
            if key not in live and not is_same(a, b):
                makers[key] = lambda: MISSING
                continue
            name = name_of(key) or getattr(key, "name", self._chosen)
            try:
                makers[key] = self._value(name, a, b, before.get(key))
            except Unjoinable as why:
                makers[key] = self._unbound(key, name, str(why))
        results = self._finish()
        self._results = iter(results)
        return {key: make() for key, make in makers.items()}

    def _unbound(self, key: Key, name: str, why: str) -> Callable[[], object]:
        line = getattr(self._op.loc, "line", "?")
        reason = f"after the branch on line {line} {why}"
        if name_of(key) is None:
            raise mistake("PTO-U217", f"`{name}` has no one value: {reason}", help=_HELP)
        self._trace.unbound[name] = reason
        return lambda: MISSING

    def _value(
        self, name: str, a: object, b: object, before: object = None
    ) -> Callable[[], object]:
        if is_same(a, b):
            return lambda: a
        read = [end for end in (a, b) if end is not UNSET]  # a result that is not set yet
        if a is MISSING or b is MISSING:
            if len(read) == 1:
                return lambda: MISSING
            raise Unjoinable("it is bound only where one of the branches is taken")
        inner = _pairs(a, b)
        if inner is not None:
            makers = [self._value(name, x, y) for x, y in inner]
            return lambda: with_parts(read[0], [make() for make in makers])
        if all(isinstance(end, Tile) for end in read):
            return self._tile(name, (a, b), before)
        if all(map(is_plain, read)):
            zero = False if kind_of(read[0]) == BOOLEAN else 0
            return self._number(name, *(zero if end is UNSET else end for end in (a, b)))
        if len(read) == 1:
            if is_register(read[0]):
                raise Unjoinable("one branch returns a register, and what follows returns another")
            return lambda: read[0]
        if is_register(a) and is_register(b) and a.type == b.type:
            return self._yielded(name, a.used(), b.used())
        raise Unjoinable(f"it is {words(a)} or {words(b)}")

    def _tile(self, name: str, ends: Sequence[Any], before: object) -> Callable[[], object]:
        """One buffer for both tiles; no copy where the block leaves the result of a function
        unset."""
        tiles: list[Tile] = [end for end in ends if end is not UNSET]
        require_one_tile_type(tiles[0], tiles[-1])
        with ahead_of(self._trace, self._op):
            joined = buffer(self._trace, tiles[0], name)
            region, other = tiles[0].known_region, tiles[-1].known_region
            is_known = same_region(region, other) and all(isinstance(n, int) for n in region)
            if is_known and len(tiles) == 2 and not joined.fixed:
                self._trace.set_region(joined, *region)
        for block, source in zip(self._blocks, ends, strict=True):
            if source is not UNSET:
                with self._trace.inside(block):
                    copy(self._trace, joined, source)
        joined.is_filled = all(tile.is_filled for tile in tiles)
        self._has_copies = True
        if isinstance(before, Tile):
            self._trace.hints.append((joined.value, before.value))
        return lambda: joined

    def _number(self, name: str, a: object, b: object) -> Callable[[], object]:
        kind = common_kind(a, b)
        values: list[Value] = []
        for block, number in zip(self._blocks, (a, b), strict=True):
            with self._trace.inside(block):
                values.append(as_value(number, kind))
        return self._yielded(name, *values)

    def _yielded(self, name: str, a: Value, b: Value) -> Callable[[], object]:
        self._names.append(name)
        for pair, value in zip(self._pairs, (a, b), strict=True):
            pair.append(value)
        return lambda: wrap(next(self._results), self._trace)

    # ---- the operation

    def _finish(self) -> list[Value]:
        """Yield the values that differ; remove an empty branch, replace a short one by selects."""
        op, blocks = self._op, self._blocks
        types = [v.type for v in self._pairs[0]]
        work = [inner for block in blocks for inner in block.ops]
        simple = all(computes_number(inner) for inner in work) and len(work) <= _FEW
        if simple and all(hasattr(t, "dtype") for t in types) and not self._has_copies:
            return self._selected()
        for block, values in zip(blocks, self._pairs, strict=True):
            end = self._trace.builder.make(YIELD, {"results": values}, where=op.loc)
            block.append(end)
        if not types and len(blocks[1].ops) == 1:
            op.regions[1] = Region(op)
        op.results = [Value(t, n, op) for t, n in zip(types, self._names, strict=True)]
        return op.results

    def _selected(self) -> list[Value]:
        """Compute both blocks without a branch, and select between their values."""
        op = self._op
        for inner in [inner for block in self._blocks for inner in block.ops]:
            inner.move_before(op)
        op.erase()
        chosen: list[Value] = []
        for name, a, b in zip(self._names, *self._pairs, strict=True):
            chosen.append(self._choice(name, op.operands[0], a, b))
        return chosen

    def _choice(self, name: str, test: Value, a: Value, b: Value) -> Value:
        if a is b:
            return a
        if a.type == BOOLEAN and (b is test or _constant(b) is False):
            return self._operation("&", name, test, a)
        if a.type == BOOLEAN and (a is test or _constant(a) is True):
            return self._operation("|", name, test, b)
        return self._operation("select", name, test, a, b)

    def _operation(self, sign: str, name: str, *values: Value) -> Value:
        if values[0] is values[1] and len(values) == 2:
            return values[0]
        row = operations(sign, *(v.type for v in values))[0]
        operands = dict(zip(row.operand_names, values, strict=True))
        kind = values[-1].type
        return self._trace.emit(row, operands, results=[kind], names=[name])[0]


def _pairs(a: object, b: object) -> list[tuple[object, object]] | None:
    """The elements of two tuples or lists; beside an unset result, each is unset."""
    if a is UNSET or b is UNSET:
        inner = parts(b if a is UNSET else a)
        return None if inner is None else [(a, x) if a is UNSET else (x, b) for x in inner]
    return list(zip(parts(a) or (), parts(b) or (), strict=True)) if alike(a, b) else None


def _end(key: Key, values: Values) -> object:
    """The value of a variable after a block; a placeholder that is never read if it has none and
    its function has returned."""
    return UNSET if values[key] is MISSING and has_returned(key, values) else values[key]


def _constant(value: Value) -> object:
    maker = value.maker
    if maker is None or not maker.traits.constant:
        return None
    return getattr(maker.attrs.get("value"), "value", None)


_HELP = "bind it to a number, a register or a tile of one type in both branches"
