"""Order of straight programs, judged by the facts of `tests/known/pipes_headers.py`.

Neither the pipes of rows nor the sanitizer take part: pipes come from the table, and what comes
after what is reckoned here, by one vector of numbers for each pipe. An access is ordered after an
earlier one of pipe q where the number that its own pipe knows of q has reached it.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from pto.ir.graph import Module, Operation, Value
from pto.isa.row import types as t
from pto.isa.row.attributes import Enum
from tests.known import pipes_headers as facts

_ONE_PIPE = {name: pipe for pipe, names in facts.ONE_PIPE.items() for name in names.split()}
_IN_ORDER = {"a2a3": ("S",), "a5": ("S", "V")}  # pipes that see their own accesses at once
Clock = dict[str, int]


class Place(NamedTuple):
    """Bytes of a buffer; of global memory a whole argument."""

    buffer: str
    start: int
    end: int

    def meets(self, other: Place) -> bool:
        return self.buffer == other.buffer and self.start < other.end and other.start < self.end


class Race(NamedTuple):
    earlier: str
    later: str
    buffer: str


@dataclass
class Replay:
    """One agent: what each pipe has done and knows, and every access so far."""

    arch: str
    done: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    known: dict[str, Clock] = field(default_factory=lambda: defaultdict(lambda: defaultdict(int)))
    flags: dict[tuple[str, str, str], deque[Clock]] = field(
        default_factory=lambda: defaultdict(deque)
    )
    accesses: list[tuple[str, int, Place, bool, Operation]] = field(default_factory=list)
    races: list[Race] = field(default_factory=list[Race])

    def told(self, pipe: str) -> Clock:
        """What holds when all earlier work of a pipe is done."""
        return {**self.known[pipe], pipe: self.done[pipe]}

    def hear(self, pipe: str, clock: Clock) -> None:
        for other, number in clock.items():
            self.known[pipe][other] = max(self.known[pipe][other], number)

    def run(self, op: Operation) -> None:
        name = op.name.removeprefix("pto.")
        if name in ("set_flag", "wait_flag"):
            src, dst = (_word(op, f"{end}_pipe") for end in ("src", "dst"))
            key = (src, dst, str(op.attrs["event_id"]))
            if name == "set_flag":
                self.issue(src)
                self.flags[key].append(self.told(src))
            else:
                self.issue(dst)
                self.hear(dst, self.flags[key].popleft())
        elif name == "barrier":
            pipe = _word(op, "pipe")
            for each in list(self.done) if pipe == "ALL" else [pipe]:
                self.hear(each, self.told(each))
                for other in list(self.done) if pipe == "ALL" else ():
                    self.hear(each, self.told(other))
        else:
            self.work(op)

    def issue(self, pipe: str) -> None:
        """The scalar unit hands work out after all it has waited for, not after its own stores."""
        if pipe != "S":
            self.hear(pipe, {p: n for p, n in self.known["S"].items() if p != "S"})

    def work(self, op: Operation) -> None:
        before = list(self.accesses)
        for step in steps_of(op, self.arch):
            if isinstance(step, str):
                src, dst = step.split(">")
                self.hear(dst, self.told(src))
                continue
            pipe, places = step
            self.issue(pipe)
            self.done[pipe] += 1
            for place, writes in places:
                self.look(before, pipe, place, writes, op)
                self.accesses.append((pipe, self.done[pipe], place, writes, op))
            if pipe in _IN_ORDER[self.arch]:
                self.known[pipe][pipe] = self.done[pipe]

    def look(
        self,
        before: list[tuple[str, int, Place, bool, Operation]],
        pipe: str,
        place: Place,
        writes: bool,
        op: Operation,
    ) -> None:
        for other, time, there, wrote, earlier in before:
            clash = (writes or wrote) and place.meets(there)
            if clash and time > self.known[pipe][other]:
                self.races.append(Race(earlier.name, op.name, place.buffer))


Step = str | tuple[str, list[tuple[Place, bool]]]


def steps_of(op: Operation, arch: str) -> Iterator[Step]:
    """The course of an instruction by the table; nothing for one that touches no memory."""
    row = op.row
    name = op.name.removeprefix("pto.")
    fact = next((f for f in facts.SEVERAL if _is_about(f, op, name, arch)), None)
    if row is None or (fact is None and name not in _ONE_PIPE and name != "tstore"):
        return
    if fact is None:
        idle = name in facts.IDLE[arch].split()
        used = [o for o in row.operands if not (o.role == "tmp" and idle)]
        places = [(p, o.role != "in") for o in used for p in _places(op, o.name)]
        yield (_ONE_PIPE.get(name, "MTE3"), places)  # tstore of vec
        return
    for word in fact.course.split():
        if ">" in word:
            if "~" not in word:
                yield word
            continue
        text, _, writes = fact.touches[int(word) - 1].partition(">")
        pipe, *reads = text.split()
        yield (
            pipe,
            [(p, False) for n in reads for p in _places(op, n)]
            + [(p, True) for n in writes.split() for p in _places(op, n)],
        )


def _is_about(fact: facts.Fact, op: Operation, name: str, arch: str) -> bool:
    if fact.name != name or arch not in fact.profiles.split():
        return False
    for key, wanted in fact.when.items():
        if key.endswith("@"):
            if _role(op, key[:-1]) != wanted:
                return False
        elif isinstance(wanted, bool):
            if bool(op.group(key)) is not wanted:
                return False
        elif _word(op, key, "undefined") != wanted:
            return False
    return True


def _word(op: Operation, name: str, default: str = "") -> str:
    value = op.attrs.get(name)
    return value.value.removeprefix("PIPE_") if isinstance(value, Enum) else default


def _role(op: Operation, name: str) -> str:
    types = [v.type for v in op.group(name)]
    return types[0].tile.role.value if types and isinstance(types[0], t.TileBuf) else ""


def _places(op: Operation, name: str) -> list[Place]:
    return [place for value in op.group(name) if (place := _place(value)) is not None]


def _place(value: Value) -> Place | None:
    """A tile lies where its allocation says, a view is all of the argument it is made from."""
    if isinstance(value.type, t.TileBuf):
        maker = value.maker
        assert maker is not None, "tiles of these programs are allocated"
        address = maker.operands[0].number
        assert address is not None, "with an address"
        return Place("ub", address, address + value.type.tile.nbytes)
    if not isinstance(value.type, t.View):
        return None
    while value.maker is not None:
        value = value.maker.operands[0]
    return Place(value.name, 0, 1)


def races(module: Module, arch: str) -> list[Race]:
    """What the table of facts leaves unordered in a straight program."""
    (function,) = [f for f in module.functions() if f.regions]
    replay = Replay(arch)
    for op in function.regions[0].block.ops:
        replay.run(op)
    return replay.races
