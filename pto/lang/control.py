"""Control flow of a kernel: loops, branches, scopes and sections.

`for i in pto.range(n)` is a loop of the program; a loop over a Python iterable is unrolled. The
front end (`lang/front`) rewrites Python statements:

    total = 0
    for i in pto.range(n):
        total += i
    if total > 10:
        total = 10
"""

from __future__ import annotations

import builtins
import sys
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from math import prod
from typing import NoReturn

from pto.core.dtypes import I32, I64
from pto.ir.builder import INDEX, scalar_type
from pto.ir.graph import Value
from pto.isa.row.instr import Instr
from pto.isa.row.types import Scalar as ScalarType
from pto.isa.scalar.scope import SECTIONS, VECSCOPE
from pto.isa.scalar.structure import FOR, IF, YIELD
from pto.isa.scalar.unit import GET_BLOCK_IDX, GET_BLOCK_NUM, GET_SUBBLOCK_IDX, GET_SUBBLOCK_NUM
from pto.lang.call.bindings import Bindings
from pto.lang.call.place import assigned_names, is_loop, mistake
from pto.lang.call.rewritten import DONE
from pto.lang.call.session import current
from pto.lang.trace import Trace
from pto.lang.values.scalars import (
    Extent,
    Scalar,
    arith,
    as_value,
    because,
    cast_steps,
    is_number,
)

_I64 = scalar_type(I64)
_COUNTERS = {_I64, scalar_type(I32)}
Block = Callable[[], None]


# ---- loops


@dataclass(frozen=True, slots=True)
class Range:
    """A loop of the program: `for i in pto.range(n)`."""

    trace: Trace
    lower: Extent
    upper: Extent
    step: Extent

    @property
    def kind(self) -> ScalarType:
        """The type of the counter: i32 or i64 if all bounds that are not Python numbers share
        it, else index. A loop compares signed numbers, and narrow ones wrap at its end."""
        bounds = (self.lower, self.upper, self.step)
        kinds = {b.scalar for b in bounds if isinstance(b, Scalar)}  # pyright: ignore[reportUnknownMemberType]
        return kinds.pop() if len(kinds) == 1 and kinds <= _COUNTERS else INDEX

    @property
    def runs(self) -> bool:
        """True if there is certainly at least one iteration."""
        is_constant = isinstance(self.lower, int) and isinstance(self.upper, int)
        return is_constant and self.lower < self.upper

    def bounds(self, kind: ScalarType) -> dict[str, Value]:
        """The operands of a loop with a counter of this type."""
        return {n: as_value(getattr(self, n), kind) for n in ("lower", "upper", "step")}

    @contextmanager
    def body(self) -> Generator[Scalar[object]]:
        """A loop without carried values: the context traces its body once."""
        counter = Value(self.kind, "i")
        op = self.trace.append(FOR, {**self.bounds(self.kind), "inits": []})
        self.trace.open(op, [counter], loop=True)
        yield Scalar[object](counter, self.trace)
        self.trace.append(YIELD, {"results": []})
        self.trace.close()

    def __iter__(self) -> Iterator[Scalar[object]]:
        """Iterate in a `for` statement that is not rewritten: the body is traced once."""
        frame = sys._getframe(1)  # pyright: ignore[reportPrivateUsage]
        if frame.f_code in DONE or not is_loop(frame):
            self._refuse()
        return self._traced_once()

    def _refuse(self, *args: object) -> NoReturn:
        raise mistake(
            "PTO-U224",
            "pto.range is a loop of the program; its numbers are known only at run time"
            + because(),
            help="write `for i in pto.range(n):`, also in a generator that a `for` statement of the"
            " kernel iterates over; Python's range counts in comprehensions, enumerate(), zip() and"
            " reversed()",
        )

    __len__ = __contains__ = __getitem__ = __reversed__ = _refuse

    def _traced_once(self) -> Iterator[Scalar[object]]:
        bound, done = Bindings(self.trace), False
        with self.body() as counter:
            try:
                yield counter
                done = True
            finally:
                if not done:
                    self.trace.broken(
                        mistake(
                            "PTO-U206",
                            "a loop of the program was left with break, return or an exception, in"
                            f" a function that is not rewritten: {bound.reason}",
                            help="put the function into a file: its source is needed",
                        )
                    )
            bound.require_kept()


def range(start: Extent, stop: Extent = None, step: Extent = 1) -> Iterable[Extent]:
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
        return builtins.range(low, high, step)
    loop = Range(session, low, high, step)
    for bound in (low, high, step):
        as_value(bound, loop.kind)  # raises for a bound that is not a number
    return loop


def repeat(start: Extent, stop: Extent, body: Callable[[Extent], None]) -> None:
    """A loop of the program without carried values: `body(i)` for each number, traced once."""
    session = current()
    if not isinstance(session, Trace):
        for i in builtins.range(start, stop):
            body(i)
        return
    with Range(session, start, stop, 1).body() as counter:
        body(counter)


def static_range(*bounds: int) -> builtins.range:
    """Python's range, as Triton calls it: a loop over it is unrolled while the kernel is traced."""
    return builtins.range(*bounds)


# ---- branches


def branch(condition: Scalar[object], then: Block, orelse: Block | None = None) -> None:
    """A branch of the program without results: `then` if the condition holds, else `orelse`."""
    trace = condition.home
    if not isinstance(trace, Trace):
        raise RuntimeError("a branch outside a trace")
    op = trace.append(IF, {"condition": condition.used()})
    for block in (then, orelse):
        if block is None:
            op.new_region()
            continue
        trace.open(op)
        block()
        trace.append(YIELD, {"results": []})
        trace.close()


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


def _query(row: Instr) -> Scalar[object]:
    session, name = current(), row.mnemonic.removeprefix("get_")
    (value,) = session.emit(row, results=[_I64], names=[name])
    if session.eager:
        return session.scalar(value)
    ((cast, _),) = cast_steps(_I64, INDEX)
    names = assigned_names() or [name]
    (index,) = session.emit(cast, {"in": value}, results=[INDEX], names=names)
    return session.scalar(index)


def block_idx(axis: int | None = None) -> Scalar[object]:
    """The number of this block, from 0; along one axis of the grid `kernel[x, y]`.

    Along axis 0 neighbours follow each other: block 1 of kernel[4, 3] is (1, 0).
    """
    if axis is None:
        return _query(GET_BLOCK_IDX)
    before, extent = _extents(axis)
    number = arith("//", _query(GET_BLOCK_IDX), before)
    return number if extent is None else number % extent


def block_num(axis: int | None = None) -> Scalar[object]:
    """How many blocks were launched; along one axis of the grid `kernel[x, y]`."""
    if axis is None:
        return _query(GET_BLOCK_NUM)
    before, extent = _extents(axis)
    return arith("//", _query(GET_BLOCK_NUM), before) if extent is None else extent


def _extents(axis: int) -> tuple[Extent, Extent]:
    """The number of blocks along all axes before `axis`, and along `axis`; None if not known."""
    session = current()
    extents = [session.scalar(value) for value in session.grid()]
    if axis not in builtins.range(len(extents) + 1):
        raise mistake("PTO-U088", f"a grid has the axes 0, 1 and 2, not {axis!r}")
    return prod(extents[:axis]), extents[axis] if axis < len(extents) else None


def subblock_idx() -> Scalar[object]:
    """The number of this vector sub-block of the core."""
    return _query(GET_SUBBLOCK_IDX)


def subblock_num() -> Scalar[object]:
    """How many vector sub-blocks the core has."""
    return _query(GET_SUBBLOCK_NUM)
