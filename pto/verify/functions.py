"""Functions and regions: names, calls, entry points, terminators, values carried by control flow,
where an operation may be placed, and whether flags order it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from types import UnionType

from pto.core.errors import Diagnostic, Note
from pto.ir.graph import Module, Operation, Value
from pto.ir.text.types import type_text
from pto.isa.row.attributes import integer, word
from pto.isa.row.instr import Instr
from pto.isa.row.order import Barrier, FullFence, MemoryBarrier, Within, WriteBack
from pto.isa.row.traits import Control
from pto.isa.row.types import Function, Struct, Type
from pto.isa.scalar.structure import CONDITION, RETURN, YIELD

SIMT_ENTRY = "pto.simt_entry"
_SIMT_LIMITS = {"pto.simt_max_threads": 2048, "pto.simt_max_regs": 128}


def check(module: Module) -> list[Diagnostic]:
    findings: list[Diagnostic] = []
    for holder in _modules(module.op):
        functions = [op for op in holder.regions[0].block.ops if op.control is Control.FUNCTION]
        by_name = {f.symbol: f for f in functions}
        findings += [*_duplicates(functions), *_entries(functions), *_structs(functions)]
        findings += [*_simt_limits(functions), *_calls(functions, by_name)]
    for op in module.walk():
        if op.regions:
            findings += [*_terminator(op), *_nested(op)]
    return findings


def _nested(op: Operation) -> Iterator[Diagnostic]:
    around = op.parent_op
    if op.control is Control.FUNCTION and around and around.control is not Control.MODULE:
        message = f"@{op.symbol} is inside '{around.name}': a function must be in a module"
        yield Diagnostic("PTO-S108", message, op.loc, help="move it out; calls name it anywhere")


def _modules(op: Operation) -> Iterator[Operation]:
    if op.control is Control.MODULE:
        yield op
        for inner in op.regions[0].block.ops:
            yield from _modules(inner)


def entries(functions: Sequence[Operation]) -> list[Operation]:
    """Functions marked as entries; without marks, the only function, if it has no results."""
    defined = [f for f in functions if f.has_body]
    marked = [f for f in defined if {"pto.entry", "pto.aicore", "pto.kernel"} & f.attrs.keys()]
    if marked:
        return marked
    return defined if len(defined) == 1 and not defined[0].signature.results else []


def _duplicates(functions: Sequence[Operation]) -> Iterator[Diagnostic]:
    first: dict[str, Operation] = {}
    for f in functions:
        name = f.symbol
        if first.setdefault(name, f) is not f:
            note = Note("the first one is here", first[name].loc)
            message = f"two functions have the name @{name}"
            yield Diagnostic("PTO-S100", message, f.loc, notes=(note,))


def _entries(functions: Sequence[Operation]) -> Iterator[Diagnostic]:
    for f in entries(functions):
        results = f.signature.results
        if results:
            listed = _listed(results)
            message = f"PTO entry functions must return void: @{f.symbol} returns {listed}"
            yield Diagnostic("PTO-S101", message, f.loc)


def _simt_limits(functions: Sequence[Operation]) -> Iterator[Diagnostic]:
    for f in functions:
        for key, most in _SIMT_LIMITS.items():
            if key not in f.attrs:
                continue
            number = integer(f.attrs, key) or 0
            if SIMT_ENTRY not in f.attrs:
                message = f"'{key}' is only allowed on functions marked '{SIMT_ENTRY}'"
                yield Diagnostic("PTO-S098", message, f.loc)
            elif not 1 <= number <= most:
                message = f"'{key}' must be from 1 to {most}, got {number}"
                yield Diagnostic("PTO-S098", message, f.loc)


def _structs(functions: Sequence[Operation]) -> Iterator[Diagnostic]:
    """A struct is on the stack of the function that declares it, so it must not leave it."""
    for f in functions:
        signature = f.signature
        for verb, types in (("takes", signature.inputs), ("returns", signature.results)):
            structs = [type_text(type) for type in types if isinstance(type, Struct)]
            if structs:
                who = f"@{f.symbol} {verb} {structs[0]}"
                message = f"{who}, and a struct cannot leave its function"
                yield Diagnostic("PTO-T110", message, f.loc)


def _calls(functions: Sequence[Operation], by_name: dict[str, Operation]) -> Iterator[Diagnostic]:
    graph: dict[str, list[tuple[str, Operation]]] = {}
    for f in functions:
        edges = graph.setdefault(f.symbol, [])
        for op in f.walk():
            if op.control is not Control.CALL:
                continue
            name = word(op.attrs, "callee") or ""
            target = by_name.get(name)
            if target is None:
                yield op.finding("PTO-S102", f"calls @{name}, which this module does not define")
                continue
            edges.append((name, op))
            actual, wanted = Function(_types(op.operands), _types(op.results)), target.signature
            if actual != wanted:
                types = f"it is {type_text(wanted)}, the call is {type_text(actual)}"
                yield op.finding("PTO-S103", f"expects the type of @{name}: {types}")
            yield from _results_elsewhere(op, target.side())
    yield from _recursion(graph)


def _results_elsewhere(call: Operation, side: str | None) -> Iterator[Diagnostic]:
    """Uses of a result outside the side of the core that runs the function: no value is there."""
    users = [user for value in call.results for user in value.uses]
    for user in (user for user in users if side is not None and user.side() != side):
        where = f"uses what @{word(call.attrs, 'callee')} returns on the {side} side alone"
        yield user.finding("PTO-S114", where, help=f"put the use into code of the {side} side")


def _types(values: Sequence[Value]) -> tuple[Type, ...]:
    return tuple(v.type for v in values)


def _listed(types: Sequence[Type]) -> str:
    return ", ".join(map(type_text, types)) or "nothing"


def _recursion(graph: dict[str, list[tuple[str, Operation]]]) -> Iterator[Diagnostic]:
    """Find call cycles, depth first and without Python recursion: call chains may be long."""
    done: set[str] = set()
    for root in graph:
        path: list[str] = []
        stack: list[tuple[str, int]] = [(root, 0)]
        while stack:
            name, edge = stack.pop()
            if edge == 0:
                if name in done:
                    continue
                path.append(name)
            edges = graph.get(name, [])
            if edge == len(edges):
                done.add(name)
                path.pop()
                continue
            stack.append((name, edge + 1))
            callee, call = edges[edge]
            if callee in path:
                cycle = " -> ".join(f"@{n}" for n in [*path[path.index(callee) :], callee])
                message = f"recursive function calls are not supported: {cycle}"
                yield Diagnostic("PTO-S104", message, call.loc)
            elif callee not in done:
                stack.append((callee, 0))


def _terminator(op: Operation) -> Iterator[Diagnostic]:
    """Regions of functions and scf operations must end with their terminator."""
    results = _types(op.results)
    if op.control is Control.FUNCTION and op.has_body:
        yield from _ends_with(op, 0, RETURN, op.signature.results, "the function returns")
    elif op.control is Control.FOR:
        yield from _ends_with(op, 0, YIELD, results, "the loop carries")
        yield from _carried(op, op.operands[3:], op.regions[0].block.args[1:])
    elif op.control is Control.IF:
        if op.results and not all(region.blocks for region in op.regions):
            yield op.finding("PTO-S106", "with results needs an else region")
            return
        for n in (n for n, region in enumerate(op.regions) if region.blocks):
            yield from _ends_with(op, n, YIELD, results, f"{op.name} gives")
    elif op.control is Control.WHILE:
        yield from _while(op)
    elif op.control is Control.REGION:
        yield from _ends_with(op, 0, YIELD, results, "the region gives")


def _while(op: Operation) -> Iterator[Diagnostic]:
    before, after = op.regions[0].block, op.regions[1].block
    yield from _carried(op, op.operands, before.args)
    last, results = before.ops[-1] if before.ops else None, _types(op.results)
    if last is None or last.control is not Control.CONDITION:
        yield op.finding("PTO-S105", f"must end its test in {CONDITION.name}")
    elif _types(last.operands[1:]) != results or _types(after.args) != results:
        agree = f"gives {_listed(results)}, and its condition and body must agree"
        yield replace(op.finding("PTO-S107", agree), loc=last.loc)
    yield from _ends_with(op, 1, YIELD, _types(before.args), "the loop carries")


def _ends_with(
    op: Operation, region: int, end: Instr, wanted: Sequence[Type], rule: str
) -> Iterator[Diagnostic]:
    ops = op.regions[region].block.ops
    last = ops[-1] if ops else None
    if last is None or last.control is not end.body:
        yield op.finding("PTO-S105", f"must end in {end.name}")
    elif _types(last.operands) != tuple(wanted):
        got = f"gives {_listed(_types(last.operands))}, but {rule} {_listed(wanted)}"
        yield Diagnostic("PTO-S107", f"'{end.name}' op {got}", last.loc)


def _carried(op: Operation, inits: Sequence[Value], args: Sequence[Value]) -> Iterator[Diagnostic]:
    if _types(inits) != _types(args):
        counts = f"starts {len(inits)} carried values and its body takes {len(args)}"
        yield op.finding("PTO-S107", counts)


_OUTSIDE = ("outside vecscope", "simt entry")
SIDES = ("cube", "vector", "cube or vector")
# The unit each side of a core lacks: pipes of the other side (PTO manual, Target Profiles: Core).
_ONLY_CUBE = frozenset(("M", "MTE1", "FIX"))
_ONLY_VECTOR = frozenset(("V",))


def check_places(module: Module) -> list[Diagnostic]:
    findings: list[Diagnostic] = []
    _visit(module.op, None, None, findings)
    return findings


def _visit(op: Operation, scope: Operation | None, side: str | None, out: list[Diagnostic]) -> None:
    found = misplaced(op, scope, side)
    if found is not None:
        out.append(found)
    inner_scope = op if op.control is Control.SCOPE else scope
    inner_side = op.own_side() or side
    if op.control is Control.FUNCTION:
        inner_scope = None
    for region in op.regions:
        for block in region.blocks:
            for child in block.ops:
                _visit(child, inner_scope, inner_side, out)


def misplaced(op: Operation, scope: Operation | None, side: str | None) -> Diagnostic | None:
    """The finding about an operation in this vector scope, on this side of a core."""
    row = op.row
    if op.control is Control.SCOPE and scope is not None:
        return op.finding("PTO-S110", "cannot stand inside another vector scope")
    around = next(op.around(Control.SECTION), None) if op.control is Control.SECTION else None
    if around is not None:
        return op.finding("PTO-S111", f"cannot stand inside {around.name}")
    if row.scope == "vecscope" and scope is None and not _in_scope_function(op):
        where = "must be inside pto.vecscope or pto.strict_vecscope"
        help = "put pto.vecscope around it; newer compilers insert the scope themselves"
        return op.finding("PTO-S112", where, "warning", help=help)
    if scope is not None and (row.scope in _OUTSIDE or _orders_pipes(row)):
        return op.finding("PTO-S113", f"must be outside {scope.name}")
    return _on_side(op, row, side)


def _orders_pipes(row: Instr) -> bool:
    """True for flags and barriers between pipes: a vector scope is a single task of the vector
    pipe, so they cannot be inside."""
    order = row.order
    return isinstance(order, WriteBack) or (
        order is not None and order.is_fence and not isinstance(order, MemoryBarrier)
    )


def _in_scope_function(op: Operation) -> bool:
    """Functions that a compiler inlines into a vector scope may hold its instructions."""
    function = next(op.around(Control.FUNCTION), None)
    return function is not None and any(
        key.startswith("pto.tilelang") or key == "pto.simt_entry" for key in function.attrs
    )


def _on_side(op: Operation, row: Instr, side: str | None) -> Diagnostic | None:
    if row.scope in SIDES and side not in row.scope.split():
        where = f"which is the {side} side" if side else "and its side is not declared"
        return op.finding("PTO-S114", f"must be in a {row.scope} kernel or section, {where}")
    pipe = row.pipe if isinstance(row.pipe, str) else ""
    foreign = _ONLY_CUBE if side == "vector" else _ONLY_VECTOR if side == "cube" else frozenset()
    if pipe not in foreign:
        return None
    lacks = f"runs on pipe {pipe}, which the {side} side of a core does not have"
    return op.finding("PTO-S114", lacks)


# ---- order


def first_order(functions: Sequence[Operation]) -> Operation | None:
    """The first flag, barrier, event or buffer id; None if there is none."""
    return _first(functions, MemoryBarrier | FullFence)


def first_flag(functions: Sequence[Operation]) -> Operation | None:
    """The first flag, event or buffer id, which inserted flags could conflict with."""
    return _first(functions, MemoryBarrier | Barrier)


def _first(functions: Sequence[Operation], but: UnionType) -> Operation | None:
    for op in (op for function in functions for op in function.walk()):
        order = op.order
        if isinstance(order, Within) and not isinstance(order, but):
            return op
    return None
