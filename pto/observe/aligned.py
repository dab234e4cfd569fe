"""Alignment of two programs: pairs of equal operations, and fences that differ.

Operations on data and control flow are aligned in the order of the text, by name and types;
addresses, event ids and names of values may differ. A fence has a position between them.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from difflib import SequenceMatcher

from pto.ir.graph import Module, Operation
from pto.isa.row import types as t
from pto.isa.row.flag import flag_of
from pto.isa.row.order import Barrier, OfBuffer, OfFlag, SetFlag
from pto.isa.row.pipe_of import pipe_of
from pto.isa.rules.rule import Case
from pto.target.facts import Profile

_DYNAMIC = -1  # an id from an operand


@dataclass(frozen=True, slots=True)
class AlignedFence:
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
    fences: list[AlignedFence] = field(default_factory=list[AlignedFence])


@dataclass(frozen=True, slots=True)
class MovedFence:
    """A fence that both programs have, at different positions."""

    first: AlignedFence
    second: AlignedFence


@dataclass(slots=True)
class Aligned:
    """The operations and fences that two programs share, and those that only one has."""

    numbers: dict[int, int] = field(default_factory=dict[int, int])  # by id of an operation
    unlike: list[tuple[Operation | None, Operation | None]] = field(
        default_factory=list[tuple[Operation | None, Operation | None]]
    )
    lost: list[AlignedFence] = field(
        default_factory=list[AlignedFence]
    )  # only in the first program
    fresh: list[AlignedFence] = field(default_factory=list[AlignedFence])  # only in the second
    moved: list[MovedFence] = field(default_factory=list[MovedFence])
    both: int = 0  # fences at the same position of both

    def number(self, op: Operation) -> int | None:
        """A number that an operation shares with its counterpart; None if it has none."""
        return self.numbers.get(id(op))


def align(first: Module, second: Module, profile: Profile) -> Aligned:
    """The functions of two modules, by name, or the only one of each."""
    aligned = Aligned()
    one, two = (_functions(module) for module in (first, second))
    if len(one) == len(two) == 1:
        two = dict(zip(one, two.values(), strict=True))
    for name in dict.fromkeys((*one, *two)):
        if name not in one or name not in two:
            aligned.unlike.append((one.get(name), two.get(name)))
        else:
            _align(_read(one[name], profile), _read(two[name], profile), aligned)
    return aligned


def _functions(module: Module) -> dict[str, Operation]:
    return {f.symbol: f for f in module.functions() if f.has_body}


def _align(one: _Text, two: _Text, aligned: Aligned) -> None:
    base = len(aligned.numbers)
    places: dict[int, int] = {}  # position in the second text -> position in the first
    matcher = SequenceMatcher(a=one.keys, b=two.keys, autojunk=False)
    for tag, a, a_end, b, b_end in matcher.get_opcodes():
        if tag == "equal":
            for n in range(a_end - a):
                aligned.numbers[id(one.work[a + n])] = aligned.numbers[id(two.work[b + n])] = (
                    base + a + n
                )
                places[b + n] = a + n
        else:
            left, right = one.work[a:a_end], two.work[b:b_end]
            for n in range(max(len(left), len(right))):
                aligned.unlike.append((_at(left, n), _at(right, n)))
    places[len(two.work)] = len(one.work)
    moved = [replace(f, place=places.get(f.place, -1)) for f in two.fences]  # in the first
    _match(one.fences, moved, aligned)


def _at(ops: list[Operation], n: int) -> Operation | None:
    return ops[n] if n < len(ops) else None


def _match(one: list[AlignedFence], two: list[AlignedFence], aligned: Aligned) -> None:
    """Pair fences at the same position, then those at different positions."""
    left = list(two)
    alone: list[AlignedFence] = []
    for fence in one:
        other = next((f for f in left if (f.key, f.place) == (fence.key, fence.place)), None)
        if other is None:
            alone.append(fence)
        else:
            left.remove(other)
            aligned.both += 1
    for fence in alone:
        other = next((f for f in left if f.key == fence.key), None)
        if other is None:
            aligned.lost.append(fence)
        else:
            left.remove(other)
            aligned.moved.append(MovedFence(fence, other))
    aligned.fresh += left


# ---- reading a function


def _read(function: Operation, profile: Profile) -> _Text:
    text = _Text()
    for op in function.walk():
        if op is function:
            continue
        case = Case(op, profile)
        if op.row.order is not None and op.row.order.is_fence:
            text.fences.append(_fence(op, case, len(text.work)))
        elif op.regions or _is_work(op, case):
            text.work.append(op)
            text.keys.append(_key(op))
    return text


def _is_work(op: Operation, case: Case) -> bool:
    """True if an operation accesses data, rather than naming a location."""
    values = (*op.operands, *op.results)
    if not any(isinstance(v.type, t.PLACES) for v in values) or op.traits.pure:
        return False
    return pipe_of(case) != "none" or case.row.family.section == "comm"


def _key(op: Operation) -> str:
    types = (str(v.type) for v in (*op.operands, *op.results) if isinstance(v.type, t.PLACES))
    return " ".join((op.name, *types))


def _fence(op: Operation, case: Case, position: int) -> AlignedFence:
    order, word = case.row.order, op.name.removeprefix("pto.")
    if isinstance(order, OfFlag):
        flag = flag_of(case)
        number = _DYNAMIC if op.operands else flag.id
        kind = "set_flag" if isinstance(order, SetFlag) else "wait_flag"
        return AlignedFence(op, position, kind, (flag.src, flag.dst), number)
    if isinstance(order, Barrier | OfBuffer):
        return AlignedFence(op, position, word, (pipe_of(case),), _DYNAMIC)
    return AlignedFence(op, position, word, (), _DYNAMIC)
