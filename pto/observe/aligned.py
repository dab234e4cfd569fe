"""Two programs side by side: which operation of one is which of the other, and which fences differ.

Operations that touch data and control flow are aligned in the order of the text, by name and types;
addresses, event ids and names of values may differ. A fence stands at a place between them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from difflib import SequenceMatcher

from pto.ir.graph import Module, Operation
from pto.isa.row import types as t
from pto.isa.row.flag import flag_of
from pto.isa.row.order import Barrier, OfBuffer, OfFlag, SetFlag
from pto.isa.row.pipe_of import pipe_of
from pto.isa.rules.rule import Case
from pto.target.facts import Profile
from pto.verify.functions import is_defined, name_of
from pto.verify.operation import constant

_PLACES = (t.Ptr, t.TileBuf, t.View, t.MemRef)
_DYNAMIC = -1  # an id that an operand gives


@dataclass(frozen=True, slots=True)
class Fence:
    """An operation that only orders: `place` counts the aligned operations before it."""

    op: Operation
    place: int
    word: str  # set_flag, wait_flag, barrier, ..
    pipes: tuple[str, ...]
    id: int

    @property
    def key(self) -> tuple[str, tuple[str, ...]]:
        return self.word, self.pipes

    def __str__(self) -> str:
        number = "" if self.id == _DYNAMIC else f", {self.id}"
        return f"{self.word}({', '.join(self.pipes)}{number})"


@dataclass(slots=True)
class _Text:
    """A function in the order of its text."""

    work: list[Operation] = field(default_factory=list[Operation])
    keys: list[str] = field(default_factory=list[str])
    fences: list[Fence] = field(default_factory=list[Fence])


@dataclass(frozen=True, slots=True)
class Moved:
    """A fence of which there is one in both programs, at another place."""

    first: Fence
    second: Fence


@dataclass(slots=True)
class Aligned:
    """What two programs have in common, and what only one of them has."""

    numbers: dict[int, int] = field(default_factory=dict[int, int])  # by id of an operation
    unlike: list[tuple[Operation | None, Operation | None]] = field(
        default_factory=list[tuple[Operation | None, Operation | None]]
    )
    lost: list[Fence] = field(default_factory=list[Fence])  # only in the first program
    fresh: list[Fence] = field(default_factory=list[Fence])  # only in the second
    moved: list[Moved] = field(default_factory=list[Moved])
    both: int = 0  # fences at the same place of both

    def number(self, op: Operation) -> int | None:
        """The same for an operation and its counterpart; None: it has none."""
        return self.numbers.get(id(op))


def align(first: Module, second: Module, profile: Profile) -> Aligned:
    """The functions of two modules, by name, or the only one of each."""
    found = Aligned()
    one, two = (_functions(module) for module in (first, second))
    if len(one) == len(two) == 1:
        two = dict(zip(one, two.values(), strict=True))
    for name in dict.fromkeys((*one, *two)):
        if name not in one or name not in two:
            found.unlike.append((one.get(name), two.get(name)))
        else:
            _align(_read(one[name], profile), _read(two[name], profile), found)
    return found


def _functions(module: Module) -> dict[str, Operation]:
    return {name_of(f): f for f in module.functions() if is_defined(f)}


def _align(one: _Text, two: _Text, found: Aligned) -> None:
    base = len(found.numbers)
    places: dict[int, int] = {}  # of the second text: where the same is in the first
    matcher = SequenceMatcher(a=one.keys, b=two.keys, autojunk=False)
    for tag, a, a_end, b, b_end in matcher.get_opcodes():
        if tag == "equal":
            for n in range(a_end - a):
                found.numbers[id(one.work[a + n])] = found.numbers[id(two.work[b + n])] = (
                    base + a + n
                )
                places[b + n] = a + n
        else:
            left, right = one.work[a:a_end], two.work[b:b_end]
            for n in range(max(len(left), len(right))):
                found.unlike.append((_at(left, n), _at(right, n)))
    places[len(two.work)] = len(one.work)
    moved = [
        Fence(f.op, places.get(f.place, -1), f.word, f.pipes, f.id) for f in two.fences
    ]  # at places of the first
    _match(one.fences, moved, found)


def _at(ops: list[Operation], n: int) -> Operation | None:
    return ops[n] if n < len(ops) else None


def _match(one: list[Fence], two: list[Fence], found: Aligned) -> None:
    """Pair fences at the same place, then those that stand elsewhere."""
    left = list(two)
    alone: list[Fence] = []
    for fence in one:
        other = next((f for f in left if (f.key, f.place) == (fence.key, fence.place)), None)
        if other is None:
            alone.append(fence)
        else:
            left.remove(other)
            found.both += 1
    for fence in alone:
        other = next((f for f in left if f.key == fence.key), None)
        if other is None:
            found.lost.append(fence)
        else:
            left.remove(other)
            found.moved.append(Moved(fence, other))
    found.fresh += left


# ---- reading a function


def _read(function: Operation, profile: Profile) -> _Text:
    text = _Text()
    for op in function.walk():
        if op is function or op.row is None:
            continue
        case = Case(op, op.row, profile, constant)
        if op.row.order is not None and op.row.order.is_fence:
            text.fences.append(_fence(op, case, len(text.work)))
        elif op.regions or _is_work(op, case):
            text.work.append(op)
            text.keys.append(_key(op))
    return text


def _is_work(op: Operation, case: Case) -> bool:
    """Whether an operation touches data: not whether it only names a place."""
    values = (*op.operands, *op.results)
    if not any(isinstance(v.type, _PLACES) for v in values) or op.traits.pure:
        return False
    return pipe_of(case) != "none" or case.row.family.section == "comm"


def _key(op: Operation) -> str:
    types = (str(v.type) for v in (*op.operands, *op.results) if isinstance(v.type, _PLACES))
    return " ".join((op.name, *types))


def _fence(op: Operation, case: Case, place: int) -> Fence:
    order, word = case.row.order, op.name.removeprefix("pto.")
    if isinstance(order, OfFlag):
        flag = flag_of(case)
        number = _DYNAMIC if op.operands else flag.id
        kind = "set_flag" if isinstance(order, SetFlag) else "wait_flag"
        return Fence(op, place, kind, (flag.src, flag.dst), number)
    if isinstance(order, Barrier | OfBuffer):
        return Fence(op, place, word, (pipe_of(case),), _DYNAMIC)
    return Fence(op, place, word, (), _DYNAMIC)
