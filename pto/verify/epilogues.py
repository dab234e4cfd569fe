"""Checks queues that convert accumulators (`acc_push_epilogue`): modes, types, both ends."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from pto.core.errors import Diagnostic
from pto.ir.graph import Module, Operation
from pto.isa.handle.config import SET_QUANT_SCALAR, SET_QUANT_VECTOR
from pto.isa.row.attributes import Raw, integer
from pto.isa.row.order import Pop, Push
from pto.isa.row.types import TileBuf
from pto.target.facts import Profile
from pto.verify.pipes import Key, buffers, is_end

_CODE = "PTO-D116"
# PTOAS include/PTO/IR/PTOAttrs.td (2026-08): the pushed type, and the types that may be popped.
_BYTES = ("si8", "ui8")
_MODES: dict[str, tuple[str, tuple[str, ...]]] = {
    "f32_f16": ("f32", ("f16",)),
    "f32_bf16": ("f32", ("bf16",)),
    "req8_scalar": ("i32", _BYTES),
    "req8_vec": ("i32", ("si8",)),
    "deqf16_scalar": ("i32", ("f16",)),
    "deqf16_vec": ("i32", ("f16",)),
    "qf322b8_pre_scalar": ("f32", _BYTES),
    "qf322b8_pre_vec": ("f32", ("si8",)),
    "qf322f16_pre_scalar": ("f32", ("f16",)),
    "qf322bf16_pre_scalar": ("f32", ("bf16",)),
    "qs322bf16_pre_scalar": ("i32", ("bf16",)),
    "qs322bf16_pre_vec": ("i32", ("bf16",)),
    "qf322hif8_pre_scalar": ("f32", ("!pto.hif8",)),
    "qf322fp8_pre_scalar": ("f32", ("f8E4M3FN", "f8E4M3")),
}
_NO_CONVERT = "no_convert"  # f32 or i32, as they are
_LAYOUTS = {"nz2nd": "ND", "nz2dn": "DN", "nz2nz": "NZ"}
_RELUS = ("no_relu", "normal_relu")
_BY_WORD = {"scalar": SET_QUANT_SCALAR, "vec": SET_QUANT_VECTOR}
_TEXT = re.compile(r"layout\s*=\s*(\w+)\s*,\s*quant\s*=\s*(\w+)\s*,\s*relu\s*=\s*(\w+)")


@dataclass(frozen=True, slots=True)
class EpilogueEnd:
    """One end of a queue, and its pushes or pops."""

    op: Operation
    keys: frozenset[Key]
    written: tuple[str, ...]  # layout, quant, relu; nothing: it leaves accumulators alone
    moves: tuple[Operation, ...]  # pushes or pops

    def says(self, words: str) -> Diagnostic:
        return self.op.finding(_CODE, words)


def check(module: Module, profile: Profile) -> Iterator[Diagnostic]:
    ends: list[EpilogueEnd] = []
    for function in module.functions():
        ops = list(function.walk())
        mine = [_end(op, ops, function) for op in ops if is_end(op) and not op.results]
        yield from _set_for(ops, mine)
        for end in mine:
            yield from (*_known(end, profile), *_fits(end), *_scaled(end))
        ends += mine
    yield from _agree(ends)


def _end(op: Operation, ops: list[Operation], function: Operation) -> EpilogueEnd:
    written = op.attrs.get("acc_push_epilogue")
    words = _TEXT.search(written.text) if isinstance(written, Raw) else None
    keys = frozenset(key for key, _ in buffers(op, function))
    moves = [m for m in ops if isinstance(m.order, Push | Pop) and _id(m) == _id(op)]
    return EpilogueEnd(op, keys, words.groups() if words else (), tuple(moves))


def _id(op: Operation) -> int:
    return integer(op.attrs, "id") or 0


def _known(end: EpilogueEnd, profile: Profile) -> Iterator[Diagnostic]:
    if not end.written:
        return
    if not end.keys:
        where = "pto.reserve_buffer or pto.import_reserved_buffer"
        yield end.says(f"expects c2v_consumer_buf to come from {where} with acc_push_epilogue")
    layout, quant, relu = end.written
    for word, words in ((layout, _LAYOUTS), (quant, (*_MODES, _NO_CONVERT)), (relu, _RELUS)):
        if word not in words:
            yield end.says(f"expects one of {', '.join(words)}: it is {word}")
    if quant.startswith(profile.lacks_fixpipe_modes):
        yield end.says(f"expects a mode that {profile} has: {quant} is for a5")


def _elem(op: Operation) -> str:
    values = [*op.results, *op.operands]
    types = [v.type for v in values if isinstance(v.type, TileBuf)]
    return types[0].elem.name if types else ""


def _fits(end: EpilogueEnd) -> Iterator[Diagnostic]:
    """Pushed and popped element types must be those of the mode."""
    if not end.written or end.written[1] not in (*_MODES, _NO_CONVERT):
        return
    layout, quant, _ = end.written
    pushed, popped = _MODES.get(quant, ("", ()))
    for move in end.moves:
        elem, pushes = _elem(move), isinstance(move.order, Push)
        wanted = ("f32", "i32") if quant == _NO_CONVERT else (pushed,) if pushes else popped
        if elem and elem not in wanted:
            way = "pushes" if pushes else "pops"
            yield move.finding(_CODE, f"{way} {elem}, {quant} has {' or '.join(wanted)}")
    pops = [m for m in end.moves if isinstance(m.order, Pop)]
    if end.op.side() != "vector":
        return
    if not pops:
        yield end.says("nothing pops from this queue, so its type is not known")
    if len({m.results[0].type for m in pops if m.results}) > 1:
        yield end.says("expects all pops of this queue to give one type of tile")
    for type in [m.results[0].type for m in pops if m.results][:1]:
        if not isinstance(type, TileBuf):
            continue
        actual, slot = type.tile.layout.name, integer(end.op.attrs, "slot_size") or 0
        if layout in _LAYOUTS and actual != _LAYOUTS[layout]:
            yield end.says(f"expects {layout} tiles at the other end: they are {actual}")
        if slot < type.tile.nbytes:
            yield end.says(f"expects slots of {type.tile.nbytes} bytes or more: they have {slot}")


def _scaled(end: EpilogueEnd) -> Iterator[Diagnostic]:
    """A push that scales must follow, in the same block, the operation that sets its scale."""
    quant = end.written[1] if end.written else ""
    rows = [row for word, row in _BY_WORD.items() if quant.endswith(f"_{word}")]
    for op in end.moves:
        if not isinstance(op.order, Push) or op.parent is None:
            continue
        before = op.parent.ops[: op.parent.ops.index(op)]
        for row in rows:
            if not any(b.row is row and _id(b) == _id(op) for b in before):
                yield op.finding(_CODE, f"scales without a preceding {row.name} of its queue")


def _set_for(ops: list[Operation], ends: list[EpilogueEnd]) -> Iterator[Diagnostic]:
    """A scale must be set for a queue with a matching mode."""
    for op in ops:
        word = next((w for w, row in _BY_WORD.items() if op.row is row), None)
        if word is None or "id" not in op.attrs or not ends:
            continue
        queue = next((e for e in ends if _id(e.op) == _id(op)), None)
        quant = queue.written[1] if queue and queue.written else _NO_CONVERT
        if queue is None or (queue.written and not quant.endswith(f"_{word}")):
            why = f"there is no queue {_id(op)}" if queue is None else f"its queue has {quant}"
            yield op.finding(_CODE, f"expects a queue that scales by a {word}: {why}")


def _agree(ends: list[EpilogueEnd]) -> Iterator[Diagnostic]:
    """Both ends must declare the same mode; without a conversion, the same element type."""
    for cube in (e for e in ends if e.op.side() == "cube"):
        for other in (e for e in ends if e.op.side() == "vector" and e.keys & cube.keys):
            if cube.written != other.written:
                one, two = (", ".join(e.written) or "nothing" for e in (cube, other))
                yield cube.says(f"expects the other end to do the same: {one} and {two}")
            elif cube.written and cube.written[1] == _NO_CONVERT:
                elems = {_elem(m) for m in (*cube.moves, *other.moves)} - {""}
                if len(elems) > 1:
                    types = " and ".join(sorted(elems))
                    yield other.says(f"expects elements that stay as they are: they are {types}")
