"""Control flow of a kernel: loops, branches, carried values, scopes and sections.

`for i in pto.range(n)` is a loop of the program; a Python loop is unrolled. A number or register
that changes from iteration to iteration, or in one branch only, is a `pto.carry`:

    total = pto.carry(0)
    for i in pto.range(n):
        total += i
    with pto.If(total.value > 10):
        total.set(10)
"""

from __future__ import annotations

import builtins
from collections.abc import Iterator
from math import prod
from typing import Any

from pto.core.dtypes import I1, I64
from pto.ir.builder import INDEX, new_block, scalar_type
from pto.ir.graph import Operation, Region, Value
from pto.isa.row.instr import Instr
from pto.isa.row.types import Scalar as ScalarType
from pto.isa.scalar.scope import SECTIONS, VECSCOPE
from pto.isa.scalar.structure import FOR, IF, YIELD
from pto.isa.scalar.unit import GET_BLOCK_IDX, GET_BLOCK_NUM, GET_SUBBLOCK_IDX, GET_SUBBLOCK_NUM
from pto.lang.call.bindings import Bindings, require_no_return
from pto.lang.call.place import assigned_names, here, mistake
from pto.lang.call.session import Handle, current
from pto.lang.trace import Trace
from pto.lang.values.linear import Linear
from pto.lang.values.operators import Operators
from pto.lang.values.registers import wrap
from pto.lang.values.scalars import Scalar, arith, as_value, cast_steps, is_number, type_of
from pto.lang.values.tiles import Tile

_I64 = scalar_type(I64)


class Carry(Operators):
    """A value that later iterations and code after a branch see changed."""

    def __init__(self, initial: Any) -> None:
        session = current()
        self._session = session
        if is_number(initial) and not session.eager:
            initial = session.scalar(as_value(initial, type_of(initial)))
        held = isinstance(initial, Handle) and not isinstance(initial, Tile)
        if not session.eager and not held:
            raise mistake(
                "PTO-T205",
                f"a number or a register is carried, not a {type(initial).__name__}",
                help="tiles are memory: what is written to one in a loop stays there",
            )
        self._value = initial
        self.name = (assigned_names() or ("carried",))[0]
        if isinstance(session, Trace):
            session.carries.append(self)

    @property
    def value(self) -> Any:
        """The value here."""
        return self._value

    def set(self, value: Any) -> None:
        """The value from here on; it keeps its type."""
        before = self._value
        if isinstance(before, Scalar):
            kind = before.scalar
            value = self._session.scalar(as_value(value, kind))
        elif isinstance(before, Handle) and getattr(value, "type", None) != before.type:
            raise mistake("PTO-T205", f"a carried {before!r} cannot become {value!r}")
        self._value = value

    def rebind(self, value: Value) -> None:
        """Name another value of the program."""
        self._value = wrap(value, self._session)

    def ir(self) -> Value:
        return self._value.value

    def operate(self, sign: str, a: Any, b: Any) -> Any:
        """There are none: what a carry holds is asked for."""
        raise mistake(
            "PTO-T205",
            f"`{sign}` of a carry: it is a place for a value, not the value",
            help=f"read it with {self.name}.value, change it with {self.name}.set() or +=",
        )

    def __lt__(self, other: Any) -> Any:
        return self.operate("<", self, other)

    def __le__(self, other: Any) -> Any:
        return self.operate("<=", self, other)

    def __gt__(self, other: Any) -> Any:
        return self.operate(">", self, other)

    def __ge__(self, other: Any) -> Any:
        return self.operate(">=", self, other)

    def __iadd__(self, other: Any) -> Carry:
        self.set(self._value + other)
        return self

    def __isub__(self, other: Any) -> Carry:
        self.set(self._value - other)
        return self

    def __imul__(self, other: Any) -> Carry:
        self.set(self._value * other)
        return self


def carry(initial: Any) -> Carry:
    """A value that changes inside loops and branches: read `.value`, write `.set()` or `+=`."""
    return Carry(initial)


def range(start: Any, stop: Any = None, step: Any = 1) -> Iterator[Any]:
    """A loop of the program: `for i in pto.range(n)`; bounds are Python numbers or Scalars."""
    session = current()
    low, high = (0, start) if stop is None else (start, stop)
    if is_number(step) and step < 1:
        raise mistake(
            "PTO-U220",
            f"pto.range counts upwards: the step is {step}",
            help="count up and subtract: for j in pto.range(n): i = n - 1 - j",
        )
    if not isinstance(session, Trace):
        yield from builtins.range(low, high, step)
        return
    yield from _loop(session, low, high, step)


def _loop(trace: Trace, low: Any, high: Any, step: Any) -> Iterator[Any]:
    kinds = [b.scalar for b in (low, high, step) if isinstance(b, Scalar)]
    kind = INDEX if not kinds or any(k != kinds[0] for k in kinds) else kinds[0]
    bounds = {
        name: as_value(bound, kind)
        for name, bound in (("lower", low), ("upper", high), ("step", step))
    }
    carried = list(trace.carries)
    inits = [c.ir() for c in carried]
    op = trace.append(FOR, {**bounds, "inits": inits})
    counter = (assigned_names() or ("i",))[0]
    args = [Value(kind, counter), *(Value(c.ir().type, c.name) for c in carried)]
    trace.open(op, args, loop=True)
    for each, arg in zip(carried, args[1:], strict=True):
        each.rebind(arg)
    bound = Bindings(loop=True)
    done = False
    try:
        yield Scalar[Any](args[0], trace, _steps(op, low, step))
        done = True
    finally:
        if not done:
            trace.broken(
                mistake(
                    "PTO-U206",
                    "a loop of the program was left with break, return or an exception",
                    help="every iteration is traced once: guard what follows with pto.If",
                )
            )
    bound.require_kept()
    _end_loop(trace, op, args, carried)


def _steps(op: Operation, low: Any, step: Any) -> Linear | None:
    """A counter is low plus a multiple of step, where Python knows both."""
    return Linear(low, {id(op): step}) if isinstance(low, int) and isinstance(step, int) else None


def _end_loop(trace: Trace, op: Operation, args: list[Value], carried: list[Carry]) -> None:
    """Carry what changed; what did not is the value from before the loop."""
    inits = op.group("inits")
    changed = [c.ir() is not arg for c, arg in zip(carried, args[1:], strict=True)]
    last = [c.ir() for c, new in zip(carried, changed, strict=True) if new]
    trace.append(YIELD, {"results": last})
    trace.close()
    steady = {
        id(arg): init for arg, init, new in zip(args[1:], inits, changed, strict=True) if not new
    }
    _substitute(op, steady)
    op.regions[0].block.args[:] = [args[0], *_kept(args[1:], changed)]
    first = _kept(inits, changed)
    op.operands = [*op.operands[:3], *first]
    op.segments = (1, 1, 1, len(first))
    names = [c.name for c, new in zip(carried, changed, strict=True) if new]
    op.results = [Value(v.type, n, op) for v, n in zip(first, names, strict=True)]
    results = iter(op.results)
    for each, init, new in zip(carried, inits, changed, strict=True):
        each.rebind(next(results) if new else init)


def _kept(values: list[Value], flags: list[bool]) -> list[Value]:
    return [v for v, keep in zip(values, flags, strict=True) if keep]


def _substitute(op: Operation, to: dict[int, Value]) -> None:
    if to:
        for inner in op.walk():
            inner.operands[:] = [to.get(id(v), v) for v in inner.operands]


# ---- branches


class If:
    """`with pto.If(condition):` what the program does where the condition holds."""

    def __init__(self, condition: Any) -> None:
        session = current()
        if not isinstance(session, Trace):
            raise mistake(
                "PTO-U207",
                "in eager mode conditions are plain numbers",
                help="write Python's `if`",
            )
        if isinstance(condition, bool):
            condition = session.scalar(session.constant(condition, scalar_type(I1)))
        truth = condition.type if isinstance(condition, Scalar) else None
        if not isinstance(truth, ScalarType) or truth.name != "i1":
            raise mistake(
                "PTO-T206",
                f"a condition is a comparison of numbers, got {condition!r}",
                help="write it out: pto.If(n > 0)",
            )
        self.trace = session
        session.idle_ifs[id(self)] = self, here()
        self._condition = condition
        self._op: Operation | None = None
        self._before: list[tuple[Carry, Value]] = []
        self._after: list[Value] = []
        self._bound = Bindings(loop=False)

    def __enter__(self) -> If:
        trace = self.trace
        require_no_return()
        trace.idle_ifs.pop(id(self), None)
        self._op = trace.append(IF, {"condition": self._condition.used()})
        self._before = [(c, c.ir()) for c in trace.carries]
        trace.open(self._op)
        self._bound = Bindings(loop=False)
        return self

    def __exit__(self, *exc: object) -> None:
        if exc[0] is None:
            self._bound.require_kept()
        self._after = [c.ir() for c, _ in self._before]
        self.trace.close()
        self._join(self._after, [v for _, v in self._before])
        self.trace.last_if = self

    def _join(self, then: list[Value], other: list[Value]) -> None:
        """Values that differ between the branches are results of the operation."""
        op = self._op
        if op is None:
            return
        differ = [a is not b for a, b in zip(then, other, strict=True)]
        trace = self.trace
        ends = [_kept(then, differ), _kept(other, differ)]
        if len(op.regions) < 2:
            if any(differ):
                new_block(op)
            else:
                op.regions.append(Region(op))
        for region, values in zip(op.regions, ends, strict=True):
            if region.blocks:
                block = region.block
                if block.ops and block.ops[-1].row is YIELD:
                    block.ops.pop()
                end = trace.builder.make(YIELD, {"results": values}, where=op.loc)
                end.parent = block
                block.ops.append(end)
        names = [c.name for (c, _), new in zip(self._before, differ, strict=True) if new]
        op.results = [Value(v.type, n, op) for v, n in zip(ends[0], names, strict=True)]
        results = iter(op.results)
        for (each, _), new, value in zip(self._before, differ, then, strict=True):
            each.rebind(next(results) if new else value)

    # ---- the other branch

    def open_else(self) -> None:
        self._bound = Bindings(loop=False)
        op = self._op
        if op is None:
            raise RuntimeError("the branch was never entered")
        op.regions[1:] = []
        for each, value in self._before:
            each.rebind(value)
        self.trace.open(op)

    def close_else(self) -> None:
        self._bound.require_kept()
        other = [c.ir() for c, _ in self._before]
        self.trace.close()
        self._join(self._after, other)


class Else:
    """`with pto.Else():` directly after a `with pto.If(...)`: what is done otherwise."""

    def __init__(self) -> None:
        session = current()
        found = session.last_if if isinstance(session, Trace) else None
        last = session.builder.block.ops[-1:] if isinstance(session, Trace) else []
        if found is None or not last or last[0].row is not IF:
            raise mistake(
                "PTO-U208",
                "pto.Else() stands directly after a `with pto.If(...)` block",
                help="put no instruction between the two blocks",
            )
        self._if: If = found

    def __enter__(self) -> Else:
        require_no_return()
        self._if.open_else()
        return self

    def __exit__(self, *exc: object) -> None:
        if exc[0] is None:
            self._if.close_else()


# ---- scopes and sections


class Scoped:
    """A region that is executed once: a vector scope, or the part of one side of a core."""

    def __init__(self, row: Instr) -> None:
        self._row = row

    def __enter__(self) -> Scoped:
        session = current()
        if isinstance(session, Trace):
            session.open(session.append(self._row))
        return self

    def __exit__(self, *exc: object) -> None:
        session = current()
        if isinstance(session, Trace):
            session.close(certain=True)


def vecscope() -> Scoped:
    """`with pto.vecscope():` vector micro-instructions on registers."""
    return Scoped(VECSCOPE)


def section_cube() -> Scoped:
    """`with pto.section_cube():` only the cube of a core executes this."""
    return Scoped(SECTIONS["cube"])


def section_vector() -> Scoped:
    """`with pto.section_vector():` only the vector sub-blocks of a core execute this."""
    return Scoped(SECTIONS["vector"])


# ---- where this code runs


def _query(row: Instr) -> Any:
    session, name = current(), row.mnemonic.removeprefix("get_")
    (value,) = session.emit(row, results=[_I64], names=[name])
    if session.eager:
        return session.scalar(value)
    ((cast, _),) = cast_steps(_I64, INDEX)
    names = assigned_names() or [name]
    (index,) = session.emit(cast, {"in": value}, results=[INDEX], names=names)
    return session.scalar(index)


def block_idx(axis: int | None = None) -> Any:
    """The number of this block, from 0; along one axis of the grid `kernel[x, y]`.

    Along axis 0 neighbours follow each other: block 1 of kernel[4, 3] is (1, 0).
    """
    if axis is None:
        return _query(GET_BLOCK_IDX)
    before, own = _extents(axis)
    number = arith("//", _query(GET_BLOCK_IDX), before)
    return number if own is None else number % own


def block_num(axis: int | None = None) -> Any:
    """How many blocks were launched; along one axis of the grid `kernel[x, y]`."""
    if axis is None:
        return _query(GET_BLOCK_NUM)
    before, own = _extents(axis)
    return arith("//", _query(GET_BLOCK_NUM), before) if own is None else own


def _extents(axis: int) -> tuple[Any, Any]:
    """Blocks of all axes before one, and of that one; None: whatever there are."""
    session = current()
    extents = [session.scalar(value) for value in session.grid()]
    if axis not in builtins.range(len(extents) + 1):
        raise mistake("PTO-U088", f"a grid has the axes 0, 1 and 2, not {axis!r}")
    return prod(extents[:axis]), extents[axis] if axis < len(extents) else None


def subblock_idx() -> Any:
    """The number of this vector sub-block of the core."""
    return _query(GET_SUBBLOCK_IDX)


def subblock_num() -> Any:
    """How many vector sub-blocks the core has."""
    return _query(GET_SUBBLOCK_NUM)
