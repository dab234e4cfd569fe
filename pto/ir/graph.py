"""Programs as data: Module > Operation > Region > Block > Operation, joined by SSA values.

A value lists the operations that use it. `Block.append`, `insert` and `set_ops`, `Operation.erase`
and `set_operands` keep the lists right; nothing else changes a program (`tests/ir/test_uses.py`).

There is ONE Operation class for every dialect; its row in the ISA table defines what it does.
"""

from __future__ import annotations

import gc
from bisect import bisect_right
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from pto.core.errors import Diagnostic, Loc, Note, Severity
from pto.isa.row.attributes import Attribute, Bool, Enum, Int, OfType, integer, word
from pto.isa.row.instr import UNLISTED, Instr
from pto.isa.row.traits import Control, Traits
from pto.isa.row.types import Function, Type

if TYPE_CHECKING:
    from pto.isa.row.order import Order


class Source:
    """A source text; computes lines and columns from offsets on demand.

    If the text is a part of a file, `first` lines of the file precede it.
    """

    __slots__ = ("_starts", "file", "first", "text")

    def __init__(self, file: str, text: str, first: int = 0) -> None:
        self.file = file
        self.text = text
        self.first = first
        self._starts: list[int] | None = None

    def loc(self, start: int, end: int | None = None) -> Loc:
        if self._starts is None:
            self._starts = [0]
            self._starts += [i + 1 for i, ch in enumerate(self.text) if ch == "\n"]
        row = bisect_right(self._starts, start) - 1
        col = start - self._starts[row] + 1
        return Loc(
            self.file, self.first + row + 1, col, None if end is None else col + max(1, end - start)
        )


class Span:
    """A range of offsets in a source; the `Loc` is computed on demand."""

    __slots__ = ("end", "source", "start")

    def __init__(self, source: Source, start: int, end: int) -> None:
        self.source = source
        self.start = start
        self.end = end

    @property
    def loc(self) -> Loc:
        return self.source.loc(self.start, self.end)


class Value:
    """One SSA value: a result of an operation or an argument of a block."""

    __slots__ = ("name", "owner", "type", "uses")

    def __init__(self, type: Type, name: str, owner: Operation | Block | None = None) -> None:
        self.type = type
        self.name = name  # as written, without the %; printing keeps it where it is unique
        self.owner = owner
        self.uses: list[Operation] = []  # operations in blocks, each once for each operand

    def replace_all_uses(self, by: Value) -> None:
        """Let every operation that uses this value use another one."""
        for op in self.uses:
            op.operands = [by if v is self else v for v in op.operands]
        by.uses, self.uses = by.uses + self.uses, []

    @property
    def maker(self) -> Operation | None:
        """The operation that gives this value; None for an argument of a block."""
        return self.owner if isinstance(self.owner, Operation) else None

    def origin(self, passes: Callable[[Operation], bool]) -> Value:
        """The value that this one is derived from by operations for which `passes` holds, each of
        which derives its result from its first operand."""
        value = self
        while (op := value.maker) is not None and op.operands and passes(op):
            value = op.operands[0]
        return value

    @property
    def literal(self) -> int | None:
        """The number of an integer constant; None for any other value."""
        maker = self.maker
        constant = maker is not None and maker.traits.constant
        return integer(maker.attrs, "value") if maker and constant else None

    @property
    def number(self) -> int | None:
        """The number of an integer constant, also through casts that keep it; else None."""
        maker = self.maker
        while maker is not None and maker.traits.same_number:
            maker = maker.operands[0].maker
        if maker is None or not maker.traits.constant:
            return None
        number = maker.attrs.get("value")
        return int(number.value) if isinstance(number, Int | Bool) else None

    def __repr__(self) -> str:
        return f"%{self.name}: {self.type}"


class Operation:
    """One operation: name, operands, attributes, results, regions and its location."""

    __slots__ = (
        "attrs",
        "name",
        "operands",
        "parent",
        "regions",
        "results",
        "row",
        "segments",
        "where",
    )

    def __init__(
        self,
        name: str,
        row: Instr = UNLISTED,
        operands: list[Value] | None = None,
        attrs: dict[str, Attribute] | None = None,
        where: Span | Loc | None = None,
    ) -> None:
        self.name = name
        self.row = row
        self.operands: list[Value] = [] if operands is None else operands
        self.attrs: dict[str, Attribute] = {} if attrs is None else attrs
        self.results: list[Value] = []
        self.regions: list[Region] = []
        self.segments: tuple[int, ...] | None = None  # operands taken by each operand of the row
        self.parent: Block | None = None
        self.where = where

    @classmethod
    def of(
        cls,
        row: Instr,
        operands: list[Value] | None = None,
        attrs: dict[str, Attribute] | None = None,
        where: Span | Loc | None = None,
    ) -> Operation:
        """An operation of a row of the table."""
        return cls(row.name, row, operands, attrs, where)

    @property
    def loc(self) -> Loc | None:
        return self.where.loc if isinstance(self.where, Span) else self.where

    @property
    def parent_op(self) -> Operation | None:
        return self.parent.region.owner if self.parent else None

    @property
    def home(self) -> Block:
        """The block that contains it."""
        if self.parent is None:
            raise RuntimeError(f"{self!r} stands in no block")
        return self.parent

    def new_region(self) -> Region:
        """A further region, without blocks."""
        self.regions.append(Region(self))
        return self.regions[-1]

    def new_result(self, type: Type, name: str = "") -> Value:
        """A further result."""
        self.results.append(Value(type, name, self))
        return self.results[-1]

    def set_operand(self, number: int, value: Value) -> None:
        self.set_operands([*self.operands[:number], value, *self.operands[number + 1 :]])

    def set_operands(self, operands: Sequence[Value]) -> None:
        """Replace all operands; their number per operand of the row stays."""
        if self.parent is not None:
            _unlink(self)
        self.operands = list(operands)
        if self.parent is not None:
            _link(self)

    def set_group(self, name: str, values: Sequence[Value]) -> None:
        """Bind operand `name` of the row to these values, whatever it was bound to."""
        groups = {
            operand_name: self.group(operand_name) for operand_name in self.row.operand_names
        } | {name: values}
        self.set_operands([v for group in groups.values() for v in group])
        if not self.row.fixed_operands:
            self.segments = tuple(map(len, groups.values()))

    def erase(self) -> None:
        """Remove it from its block. An operation with regions is destroyed with its contents."""
        self.home.ops.remove(self)
        for op in self.walk():
            _unlink(op)
        self.parent = None

    def move_before(self, other: Operation) -> None:
        self._move(other, 0)

    def move_after(self, other: Operation) -> None:
        self._move(other, 1)

    def _move(self, other: Operation, behind: int) -> None:
        self.home.ops.remove(self)
        self.parent = other.home
        self.parent.ops.insert(self.parent.ops.index(other) + behind, self)

    def ancestors(self) -> Iterator[Operation]:
        """The operations around this one, innermost first."""
        op = self.parent_op
        while op is not None:
            yield op
            op = op.parent_op

    @property
    def body(self) -> Any:
        """The definition of its effect, from its row."""
        return self.row.body

    @property
    def order(self) -> Order | None:
        """Its effect on the order of pipes, agents and ranks, from its row."""
        return self.row.order

    def given(self, *roles: str) -> list[Value]:
        """The operands with one of these roles."""
        return [v for o in self.row.operands if o.role in roles for v in self.group(o.name)]

    @property
    def traits(self) -> Traits:
        return self.row.traits

    @property
    def control(self) -> Control | None:
        """How it decides what runs next; None for an operation that does work."""
        return self.row.control

    @property
    def is_loop(self) -> bool:
        return self.control in (Control.FOR, Control.WHILE)

    @property
    def is_terminator(self) -> bool:
        return self.control is not None and self.control.is_terminator

    def around(self, *kinds: Control) -> Iterator[Operation]:
        """The operations around this one that are control flow of these kinds, innermost first."""
        return (op for op in self.ancestors() if op.control in kinds)

    def loops(self) -> list[Operation]:
        """The counted loops around this one, outermost first."""
        return list(self.around(Control.FOR))[::-1]

    def side(self) -> str | None:
        """cube or vector, if a section, the function or its module declares it."""
        sides = (op.own_side() for op in (self, *self.ancestors()))
        return next((side for side in sides if side), None)

    @property
    def symbol(self) -> str:
        """The name of a function or module; empty if it has none."""
        return word(self.attrs, "sym_name") or ""

    @property
    def signature(self) -> Function:
        """The types of a function's parameters and results."""
        declared = self.attrs.get("function_type")
        type = declared.type if isinstance(declared, OfType) else None
        return type if isinstance(type, Function) else Function((), ())

    @property
    def has_body(self) -> bool:
        """True unless it is a declaration."""
        return bool(self.regions and self.regions[0].blocks)

    def own_side(self) -> str | None:
        """The side of a core (cube or vector) that this operation itself declares for its body."""
        kind = self.attrs.get("pto.kernel_kind")
        return kind.value if isinstance(kind, Enum) else self.traits.side or None

    def walk(self) -> Iterator[Operation]:
        """This operation and everything inside it, in program order."""
        todo: list[Operation] = [self]
        while todo:
            op = todo.pop()
            yield op
            for region in reversed(op.regions) if op.regions else ():
                for block in reversed(region.blocks):
                    todo += reversed(block.ops)

    def blocks(self) -> list[Block]:
        """The blocks of its regions."""
        return [block for region in self.regions for block in region.blocks]

    def group(self, name: str) -> list[Value]:
        """The values bound to operand `name` of the row; empty when it is optional and absent."""
        index = self.row.places.get(name)
        if index is None:
            return []
        if self.segments is None:
            return self.operands[index : index + 1]
        start = sum(self.segments[:index])
        return self.operands[start : start + self.segments[index]]

    def operand(self, name: str) -> Value | None:
        """The one value bound to operand `name`, or None."""
        values = self.group(name)
        return values[0] if values else None

    def next_reader(self, name: str) -> Operation | None:
        """The operation that reads operand `name` after this one, before it is written again."""
        value = self.operand(name)
        (*_, outermost) = (self, *self.ancestors())
        is_later = False
        for op in outermost.walk():
            if is_later and value in op.given("in", "inout"):
                return op
            if is_later and value in op.given("out") and op.home is self.home:
                return None
            is_later = is_later or op is self
        return None

    def finding(
        self,
        code: str,
        words: str,
        severity: Severity = "error",
        notes: tuple[Note, ...] = (),
        help: str | None = None,
    ) -> Diagnostic:
        """A finding about this operation; `words` follow its name."""
        return Diagnostic(code, f"'{self.name}' op {words}", self.loc, severity, notes, help)

    def __repr__(self) -> str:
        return f"<{self.name} at {self.loc}>"


def _link(op: Operation) -> None:
    for value in op.operands:
        value.uses.append(op)


def _unlink(op: Operation) -> None:
    for value in op.operands:
        value.uses.remove(op)


class Block:
    """A straight sequence of operations with arguments."""

    __slots__ = ("args", "ops", "region")

    def __init__(self, region: Region) -> None:
        self.region = region
        self.args: list[Value] = []
        self.ops: list[Operation] = []

    def append(self, op: Operation) -> None:
        self.ops.append(op)
        op.parent = self
        _link(op)

    def insert(self, at: int, *ops: Operation) -> None:
        """Insert detached operations before the one at a position."""
        self.ops[at:at] = ops
        for op in ops:
            op.parent = self
            _link(op)

    def set_ops(self, ops: Iterable[Operation]) -> None:
        """Reorder, erase and add operations at once."""
        new = list(ops)
        for op in set(self.ops).difference(new):
            op.parent = None
            for child in op.walk():
                _unlink(child)
        added = set(new).difference(self.ops)
        self.ops = new
        for op in added:
            op.parent = self
            _link(op)


class Region:
    """The body of an operation. Structured control flow: one block, or none for a declaration."""

    __slots__ = ("blocks", "owner")

    def __init__(self, owner: Operation) -> None:
        self.owner = owner
        self.blocks: list[Block] = []

    @property
    def block(self) -> Block:
        return self.blocks[0]


class Module:
    """A parsed program: the outermost module operation and the text it came from."""

    __slots__ = ("op", "source")

    def __init__(self, op: Operation, source: Source) -> None:
        self.op = op
        self.source = source

    def walk(self) -> Iterator[Operation]:
        return self.op.walk()

    def functions(self) -> Iterator[Operation]:
        """The functions of this module and of modules inside it, in program order."""
        todo = [self.op]
        while todo:
            op = todo.pop()
            if op.control is Control.FUNCTION:
                yield op
                continue
            for region in reversed(op.regions):
                for block in reversed(region.blocks):
                    todo += [inner for inner in reversed(block.ops) if inner.regions]


@contextmanager
def no_collection() -> Generator[None]:
    """Pause the garbage collector: on a large program it takes a third of the time, for nothing."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
