"""A tested fix for a race: the flag or barrier that orders it.

It is inserted into the program, the program runs again, and the insertion is removed. It is
suggested only if that run has no further race or flag error, and this race is gone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from pto.core.errors import Diagnostic
from pto.ir.graph import Operation
from pto.isa.row.attributes import Enum
from pto.isa.row.flag import Flag
from pto.isa.row.traits import Control
from pto.transform.edits import Edit, applied

Rerun = Callable[[], list[Diagnostic]]
Candidate = tuple[str, list[Edit]]  # description, edits


@dataclass(frozen=True, slots=True)
class Gap:
    """Two operations with no order between them."""

    earlier: Operation
    later: Operation
    source: str  # the pipe of the earlier
    target: str  # the pipe of the later
    barrier: str  # mem_bar that orders them, inside a vector scope

    def before(self, text: str) -> Edit:
        """An edit right before the later operation, outside vector scopes."""
        return Edit(_outside(self.later), False, text)


def suggestion(gap: Gap, finding: Diagnostic, before: list[Diagnostic], rerun: Rerun) -> str | None:
    """The description of a fix that worked; None if none did."""
    for words, edits in candidates(gap):
        with applied(edits):
            after = rerun()
        if _is_better(finding, before, after):
            return f"{words} (re-run: {_left(after)})"
    return None


def _is_better(finding: Diagnostic, before: list[Diagnostic], after: list[Diagnostic]) -> bool:
    keys_before = {_key(d) for d in before}
    left = {_key(d) for d in after}
    errors = {_key(d) for d in after if d.severity == "error"}
    return _key(finding) not in left and errors <= keys_before


def _key(d: Diagnostic) -> tuple[str, object, object]:
    other = d.notes[0].loc if d.notes else None
    return d.code, d.loc, other


def _left(after: list[Diagnostic]) -> str:
    races = sum(d.code.startswith("PTO-R") for d in after)
    return f"{races} race{'s' * (races != 1)}"


# ---- candidates


def candidates(gap: Gap) -> Iterator[Candidate]:
    """Flags and barriers that may order a gap."""
    if gap.barrier:
        text = f'mem_bar "{gap.barrier}"'
        yield f"{text} before {place_of(gap.later)}", [Edit(gap.later, False, f"pto.{text}")]
        return
    places = _common(gap.earlier, gap.later)
    if gap.source == gap.target:
        before = places[1] if places else _outside(gap.later)
        text = f"pto.barrier #pto.pipe<PIPE_{gap.source}>"
        yield f"barrier {gap.source} before {place_of(before)}", [Edit(before, False, text)]
        return
    if places is None:
        return
    first, second = places
    for number in _free_ids(gap):
        flag = Flag(gap.source, gap.target, number)
        if _index(first) < _index(second):
            yield _ordered(flag, first, second)
            continue
        yield from _carried(flag, first, second)


def _ordered(flag: Flag, first: Operation, second: Operation) -> Candidate:
    edits = [Edit(first, True, set_text(flag)), Edit(second, False, wait_text(flag))]
    return (
        f"set_flag{named(flag)} after {place_of(first)}, wait_flag before {place_of(second)}",
        edits,
    )


def _carried(flag: Flag, first: Operation, second: Operation) -> Iterator[Candidate]:
    """A flag between iterations of a loop: set before the first one, waited for after the last."""
    loop = first.parent_op
    if loop is None or loop.control is not Control.FOR:
        return
    words, edits = _ordered(flag, first, second)
    around = [Edit(loop, False, set_text(flag)), Edit(loop, True, wait_text(flag))]
    yield (
        f"{words}, primed before and drained after the loop of {place_of(loop)}",
        [*edits, *around],
    )


def set_text(flag: Flag) -> str:
    return f"pto.set_flag{_attributes(flag)}"


def wait_text(flag: Flag) -> str:
    return f"pto.wait_flag{_attributes(flag)}"


def _attributes(flag: Flag) -> str:
    return f'["PIPE_{flag.src}", "PIPE_{flag.dst}", "EVENT_ID{flag.id}"]'


def named(flag: Flag) -> str:
    return f"({flag.src}, {flag.dst}, {flag.id})"


def place_of(op: Operation) -> str:
    return f"line {op.loc.line}" if op.loc else op.name


def _index(op: Operation) -> int:
    ops = op.parent.ops if op.parent else []
    return next(i for i, candidate in enumerate(ops) if candidate is op)


def _outside(op: Operation) -> Operation:
    """The operation, or the vector scope around it: flags and barriers are outside of scopes."""
    scopes = list(op.around(Control.SCOPE))
    return scopes[-1] if scopes else op


def _common(earlier: Operation, later: Operation) -> tuple[Operation, Operation] | None:
    """Both operations, or their ancestors, in one block; None if there is no such block."""
    above = {id(op.parent): op for op in (_outside(earlier), *_outside(earlier).ancestors())}
    for op in (_outside(later), *_outside(later).ancestors()):
        other = above.get(id(op.parent))
        if other is not None and op.parent is not None:
            return other, op
    return None


def _free_ids(gap: Gap) -> list[int]:
    """The lowest id that no flag between these pipes uses; empty if all are used."""
    root = [gap.earlier, *gap.earlier.ancestors()][-1]
    used = {
        word.value
        for op in root.walk()
        if _word(op, "src_pipe") == gap.source and _word(op, "dst_pipe") == gap.target
        for word in [op.attrs.get("event_id")]
        if isinstance(word, Enum)
    }
    return [n for n in range(8) if f"EVENT_ID{n}" not in used][:1]


def _word(op: Operation, name: str) -> str:
    value = op.attrs.get(name)
    return value.value.removeprefix("PIPE_") if isinstance(value, Enum) else ""
