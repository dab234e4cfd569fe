"""Launches of work items in compiled code, and instructions of work items by the scalar unit."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from pto.core.errors import PtoError
from pto.ir.graph import Operation, Value
from pto.isa.meaning.kinds import Cooperative, ItemLaunch
from pto.isa.meaning.memory import registers
from pto.isa.meaning.simt.items import WARP, Pointers, Size
from pto.isa.row import types as t
from pto.isa.row.attributes import integer
from pto.isa.row.traits import Control
from pto.isa.rules.simt import MAX_ITEMS
from pto.run.jit.emit.handle.view import wide_number
from pto.run.jit.emit.operation import KINDS, OpContext
from pto.run.jit.emit.simt.body import CLOCKS, Body
from pto.run.jit.emit.simt.phases import ItemSlot, Phases, pointer_to
from pto.run.jit.ir import kinds
from pto.run.jit.ir.kinds import certain, unsupported_if
from pto.run.jit.llvm.value import TRUE, Val
from pto.run.jit.runtime.context import Context
from pto.run.jit.runtime.values import Lowered, ScalarValue
from pto.run.reference import simt
from pto.run.reference.code import located
from pto.run.reference.group import ItemGroup

_INDEX = t.Scalar("index", None)


def _launch(s: OpContext) -> Sequence[Lowered]:
    how = certain(s.e.compiler.launched(s.op), ItemLaunch)
    region = s.op.regions[0] if s.op.regions else s.e.compiler.callee(s.op).regions[0]
    size, given = _size(s, how)
    total = _total(s, size)
    if not s.op.regions:
        for arg, value in zip(region.block.args, given, strict=True):
            s.e.bind(arg, pointer_to(s.e.value(value)))
    body = _body(s, size, total, list(_reached(s, region.block.ops)))
    body.run(region.block)
    body.p.flush()
    return []


def _alone(s: OpContext) -> Sequence[Lowered]:
    """A work item of its own: what the scalar unit does with such an instruction."""
    body = _body(s, (1, 1, 1), 1, [s.op])
    body.p.wanted = {id(result) for result in s.op.results}
    body.operation(s.op)
    body.p.flush()
    return [body.p.single(result) for result in s.op.results]


def _body(s: OpContext, size: Sequence[Val], total: Val, ops: Sequence[Operation]) -> Body:
    if s.e.live_in is not None:
        for op in ops:
            s.e.live_in.pointers(op)
    phases = Phases(s, size, total, ops)
    phases.fault = lambda op: _call(s, phases, op, ends=True)
    clock = any(op.body in CLOCKS for op in ops)
    return Body(s.e, phases, lambda op: _call(s, phases, op), clock)


def _reached(s: OpContext, ops: Sequence[Operation], depth: int = 0) -> Iterator[Operation]:
    """The operations of a launch, called functions too."""
    for op in (inner for outer in ops for inner in outer.walk()):
        yield op
        if op.control is Control.CALL and depth < WARP:
            callee = s.e.compiler.callee(op)
            yield from _reached(s, callee.regions[0].block.ops, depth + 1)


# ---- how many


def _size(s: OpContext, how: ItemLaunch) -> tuple[list[Val], Sequence[Value]]:
    """Work items in x, y and z, and the arguments of the entry."""
    x = s.x
    if how.sizes == "attributes":
        return [integer(s.op.attrs, f"dim{d}") or 0 for d in "XYZ"], []
    if how.sizes == "stored":
        words = [s.register(registers.LAUNCH_SIZE, n) for n in range(4)]
        s.fault_unless(x.compare("ne", words[0], 0))
        return list(words[1:]), s.op.operands
    return [wide_number(s, s.e.value(value)) for value in s.op.operands[:3]], s.op.operands[3:]


def _total(s: OpContext, size: Sequence[Val]) -> Val:
    x = s.x
    guard = TRUE
    total = 1
    for each in size:
        guard = guard & x.compare("ult", x.sub(each, 1), MAX_ITEMS)
        total = x.mul(total, each)
    guard = guard & x.compare("sle", total, MAX_ITEMS)
    s.fault_unless(guard)
    return total


# ---- what Python does for the active items

_WORK_ITEMS = "work items have no lowering of it"


def _call(s: OpContext, phases: Phases, op: Operation, *, ends: bool = False) -> None:
    """The reference step of an instruction, on values of all items; it may only say what is
    wrong."""
    e, offset = s.e, s.e.reserved
    placed: list[tuple[Lowered, int]] = []

    def put(native: Lowered) -> int:
        nonlocal offset
        e.put(native, offset)
        placed.append((native, offset))
        offset += native.nbytes
        return len(placed) - 1

    sizes = [put(ScalarValue((n,), _INDEX)) for n in phases.size]
    ins = list[tuple[Value, int, ItemSlot | None]]()
    for value in {id(v): v for v in op.operands}.values():
        kept = phases.kept.get(id(value))
        number = ScalarValue((kept.memory or 0,), _INDEX) if kept else e.value(value)
        ins.append((value, put(number), kept))
    outs = [(r, phases.kept[id(r)]) for r in ([] if ends else op.results)]
    unsupported_if(
        any(kept.memory is not None for _, kept in outs), "Python gives work items a pointer"
    )
    step, mask = simt.step_of(e.compiler, op), phases.mask

    def run(context: Context, frame: memoryview) -> None:
        found = [native.decode(frame, at, context) for native, at in placed]
        size, scratch = Size(*(found[n] for n in sizes)), context.items
        bits = np.unpackbits(scratch[mask : mask + MAX_ITEMS // 8], bitorder="little")
        group = ItemGroup(context.core, size, np.flatnonzero(bits[: size.items]), op=op)
        values = {
            id(v): simt.everywhere(found[n], v.type, size)
            if kept is None
            else _taken(context, kept, v.type, found[n], size.items)
            for v, n, kept in ins
        }
        try:
            step(group, values)
        except PtoError as error:
            raise located(error, op) from None
        if ends:
            raise RuntimeError(f"compiled code refused {op!r}, which the reference accepts")
        context.core.cluster.fallbacks[op.name, _WORK_ITEMS] += 1
        for result, kept in outs:
            _put(context, kept, values[id(result)])

    e.call(run, offset - e.reserved)
    if ends:
        s.x.jump("failed")
        s.x.label(s.x.fresh("never"))


def _taken(context: Context, kept: ItemSlot, type: t.Type, memory: int, items: int) -> Any:
    """The stored value of all items, in the form of the reference engine."""
    raw = context.items[kept.offset :]
    if kept.item == kinds.BOOL:
        return np.unpackbits(raw[: MAX_ITEMS // 8], bitorder="little")[:items].astype(np.bool_)
    many = items * kept.count
    found = raw[: many * kept.item.itemsize].view(kept.item)
    if kept.memory is not None:
        return Pointers(context.memory(memory), found.copy(), kept.dtype)
    found = found.view(simt.kind_in(type)).copy()
    return found.reshape(items, kept.count) if isinstance(type, t.Vector) else found


def _put(context: Context, kept: ItemSlot, value: Any) -> None:
    raw = np.ascontiguousarray(value)
    raw = np.packbits(raw, bitorder="little") if kept.item == kinds.BOOL else raw.view(np.uint8)
    context.items[kept.offset : kept.offset + raw.size] = raw.reshape(-1)


KINDS[ItemLaunch] = _launch
KINDS[Cooperative] = _alone
