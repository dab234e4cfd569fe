"""A fix for a race that is offered only after it was tried: the flag or barrier that orders it.

It is put into the program, the program runs again, and what was put in is taken out. Only where
that run has no race and no flag more than before, and this race is gone, is there a suggestion.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from pto.core.errors import Diagnostic
from pto.ir.graph import Block, Operation
from pto.ir.parser import parse
from pto.isa.attributes import Enum

Rerun = Callable[[], list[Diagnostic]]
Insertion = tuple[Block, int, Operation]  # before this index


@dataclass(frozen=True, slots=True)
class Gap:
    """Two operations with no order between them."""

    earlier: Operation
    later: Operation
    source: str  # the pipe of the earlier
    target: str  # the pipe of the later
    in_scope: bool


def suggestion(gap: Gap, finding: Diagnostic, before: list[Diagnostic], rerun: Rerun) -> str | None:
    """Words for a fix that worked; None where none of those tried did."""
    for words, insertions in _candidates(gap):
        with _inserted(insertions):
            after = rerun()
        if _is_better(finding, before, after):
            return f"{words} (re-run: {_left(after)})"
    return None


def _is_better(finding: Diagnostic, before: list[Diagnostic], after: list[Diagnostic]) -> bool:
    known = {_key(d) for d in before}
    left = {_key(d) for d in after}
    errors = {_key(d) for d in after if d.severity == "error"}
    return _key(finding) not in left and errors <= known


def _key(d: Diagnostic) -> tuple[str, object, object]:
    other = d.notes[0].loc if d.notes else None
    return d.code, d.loc, other


def _left(after: list[Diagnostic]) -> str:
    races = sum(d.code.startswith("PTO-R") for d in after)
    return f"{races} race{'s' * (races != 1)}"


# ---- what may help


def _candidates(gap: Gap) -> Iterator[tuple[str, list[Insertion]]]:
    if gap.in_scope:
        block, at = _place(gap.later)
        yield (
            f'mem_bar "VST_VLD" before {_line(gap.later)}',
            [(block, at, _made('pto.mem_bar "VST_VLD"'))],
        )
        return
    places = _common(gap.earlier, gap.later)
    if gap.source == gap.target:
        block, at = places[1] if places else _place(_outside(gap.later))
        text = f"pto.barrier #pto.pipe<PIPE_{gap.source}>"
        yield f"barrier {gap.source} before {_line(block.ops[at])}", [(block, at, _made(text))]
        return
    if places is None:
        return
    (block, first), (_, second) = places
    after, before = _line(block.ops[first]), _line(block.ops[second])
    for number in _free_ids(gap):
        flag = f'["PIPE_{gap.source}", "PIPE_{gap.target}", "EVENT_ID{number}"]'
        # the later place first: the index of the earlier one then still holds
        insertions = [
            (block, second, _made(f"pto.wait_flag{flag}")),
            (block, first + 1, _made(f"pto.set_flag{flag}")),
        ]
        name = f"set_flag({gap.source}, {gap.target}, {number})"
        yield f"{name} after {after}, wait_flag before {before}", insertions


def _line(op: Operation) -> str:
    return f"line {op.loc.line}" if op.loc else op.name


def _place(op: Operation) -> tuple[Block, int]:
    block = op.parent
    if block is None:
        raise RuntimeError("an operation outside every block")
    return block, block.ops.index(op)


def _outside(op: Operation) -> Operation:
    """Flags and barriers of pipes stand outside vector scopes."""
    scopes = [a for a in op.ancestors() if a.name in ("pto.vecscope", "pto.strict_vecscope")]
    return scopes[-1] if scopes else op


def _common(
    earlier: Operation, later: Operation
) -> tuple[tuple[Block, int], tuple[Block, int]] | None:
    """Where both, or what holds them, stand in one block, the earlier first; None: nowhere."""
    above = {id(op.parent): op for op in (_outside(earlier), *_outside(earlier).ancestors())}
    for op in (_outside(later), *_outside(later).ancestors()):
        other = above.get(id(op.parent))
        if other is None or op.parent is None:
            continue
        first, second = _place(other), _place(op)
        return (first, second) if first[1] < second[1] else None
    return None


def _free_ids(gap: Gap) -> list[int]:
    """Ids no flag between these pipes has, the lowest only; all of them may be taken."""
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


def _made(text: str) -> Operation:
    module = parse(f"func.func @f() {{\n{text}\nreturn\n}}")
    return next(f for f in module.functions()).regions[0].block.ops[0]


@contextmanager
def _inserted(insertions: list[Insertion]) -> Generator[None]:
    for block, at, op in insertions:
        op.parent = block
        block.ops.insert(at, op)
    try:
        yield
    finally:
        for block, _, op in insertions:
            block.ops.remove(op)
