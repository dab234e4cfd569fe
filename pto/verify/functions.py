"""Functions and regions: names, calls, entry points, terminators, values carried by control flow,
where an operation may be placed, and whether flags order it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from types import UnionType

from pto.core.errors import Diagnostic, Note
from pto.ir.graph import Module, Operation, Value
from pto.ir.text.types import type_text
from pto.isa.row.attributes import Int, OfType, Str, Symbol
from pto.isa.row.instr import Instr
from pto.isa.row.order import Barrier, FullFence, MemoryBarrier, Within, WriteBack
from pto.isa.row.traits import Control
from pto.isa.row.types import Function, Struct, Type
from pto.isa.scalar.structure import CONDITION, RETURN, YIELD

SIMT_ENTRY = "pto.simt_entry"
_SIMT_LIMITS = {"pto.simt_max_threads": 2048, "pto.simt_max_regs": 128}


def check(module: Module) -> list[Diagnostic]:
    found: list[Diagnostic] = []
    for holder in _modules(module.op):
        functions = [op for op in holder.regions[0].block.ops if op.control is Control.FUNCTION]
        by_name = {name_of(f): f for f in functions}
        found += _duplicates(functions)
        found += _entries(functions) + _structs(functions)
        found += _simt_limits(functions)
        found += _calls(functions, by_name)
    for op in module.walk():
        if op.control is not None:
            found += _terminator(op)
            found += _nested(op)
    return found


def _nested(op: Operation) -> list[Diagnostic]:
    around = op.parent_op
    if op.control is not Control.FUNCTION or around is None or around.control is Control.MODULE:
        return []
    message = f"@{name_of(op)} is inside '{around.name}': a function must be in a module"
    return [Diagnostic("PTO-S108", message, op.loc, help="move it out; calls name it anywhere")]


def _modules(op: Operation) -> Iterator[Operation]:
    if op.control is Control.MODULE:
        yield op
        for inner in op.regions[0].block.ops:
            yield from _modules(inner)


def name_of(function: Operation) -> str:
    name = function.attrs.get("sym_name")
    return name.value if isinstance(name, Str) else ""


def signature_of(function: Operation) -> Function:
    type = function.attrs.get("function_type")
    if isinstance(type, OfType) and isinstance(type.type, Function):
        return type.type
    return Function((), ())


def is_defined(function: Operation) -> bool:
    return bool(function.regions and function.regions[0].blocks)


def entries(functions: Sequence[Operation]) -> list[Operation]:
    """Functions marked as entries; without marks, the only function, if it has no results."""
    defined = [f for f in functions if is_defined(f)]
    marked = [f for f in defined if {"pto.entry", "pto.aicore", "pto.kernel"} & f.attrs.keys()]
    if marked:
        return marked
    return defined if len(defined) == 1 and not signature_of(defined[0]).results else []


def _duplicates(functions: Sequence[Operation]) -> list[Diagnostic]:
    first: dict[str, Operation] = {}
    found: list[Diagnostic] = []
    for f in functions:
        name = name_of(f)
        if name in first:
            note = Note("the first one is here", first[name].loc)
            message = f"two functions have the name @{name}"
            found.append(Diagnostic("PTO-S100", message, f.loc, notes=(note,)))
        first.setdefault(name, f)
    return found


def _entries(functions: Sequence[Operation]) -> list[Diagnostic]:
    found: list[Diagnostic] = []
    for f in entries(functions):
        results = signature_of(f).results
        if results:
            listed = ", ".join(map(type_text, results))
            message = f"PTO entry functions must return void: @{name_of(f)} returns {listed}"
            found.append(Diagnostic("PTO-S101", message, f.loc))
    return found


def _simt_limits(functions: Sequence[Operation]) -> Iterator[Diagnostic]:
    for f in functions:
        for key, most in _SIMT_LIMITS.items():
            value = f.attrs.get(key)
            if value is None:
                continue
            number = value.value if isinstance(value, Int) else 0
            if SIMT_ENTRY not in f.attrs:
                message = f"'{key}' is only allowed on functions marked '{SIMT_ENTRY}'"
                yield Diagnostic("PTO-S098", message, f.loc)
            elif not 1 <= number <= most:
                message = f"'{key}' must be from 1 to {most}, got {number}"
                yield Diagnostic("PTO-S098", message, f.loc)


def _structs(functions: Sequence[Operation]) -> list[Diagnostic]:
    """A struct is on the stack of the function that declares it, so it must not leave it."""
    found: list[Diagnostic] = []
    for f in functions:
        signature = signature_of(f)
        for what, types in (("takes", signature.inputs), ("returns", signature.results)):
            structs = [type_text(type) for type in types if isinstance(type, Struct)]
            if structs:
                message = (
                    f"@{name_of(f)} {what} {structs[0]}, and a struct cannot leave its function"
                )
                found.append(Diagnostic("PTO-T110", message, f.loc))
    return found


def _calls(functions: Sequence[Operation], by_name: dict[str, Operation]) -> list[Diagnostic]:
    found: list[Diagnostic] = []
    graph: dict[str, list[tuple[str, Operation]]] = {}
    for f in functions:
        edges = graph.setdefault(name_of(f), [])
        for op in f.walk():
            if op.control is not Control.CALL:
                continue
            callee = op.attrs.get("callee")
            name = callee.name if isinstance(callee, Symbol) else ""
            target = by_name.get(name)
            if target is None:
                message = f"'{op.name}' op calls @{name}, which this module does not define"
                found.append(Diagnostic("PTO-S102", message, op.loc))
                continue
            edges.append((name, op))
            found += _call_types(op, name, signature_of(target))
    return found + _recursion(graph)


def _call_types(op: Operation, name: str, wanted: Function) -> list[Diagnostic]:
    actual = Function(_types(op.operands), _types(op.results))
    if actual == wanted:
        return []
    shown = f"it is {type_text(wanted)}, the call is {type_text(actual)}"
    return [Diagnostic("PTO-S103", f"'{op.name}' op expects the type of @{name}: {shown}", op.loc)]


def _types(values: Sequence[Value]) -> tuple[Type, ...]:
    return tuple(v.type for v in values)


def _recursion(graph: dict[str, list[tuple[str, Operation]]]) -> list[Diagnostic]:
    """Find call cycles, depth first and without Python recursion: call chains may be long."""
    found: list[Diagnostic] = []
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
                found.append(Diagnostic("PTO-S104", message, call.loc))
            elif callee not in done:
                stack.append((callee, 0))
    return found


def _terminator(op: Operation) -> list[Diagnostic]:
    """Regions of functions and scf operations must end with their terminator."""
    if op.control is Control.FUNCTION and is_defined(op):
        return _ends_with(op, 0, RETURN, signature_of(op).results, "the function returns")
    if op.control is Control.FOR:
        return [
            *_ends_with(op, 0, YIELD, _types(op.results), "the loop carries"),
            *_carried(op, op.operands[3:], op.regions[0].block.args[1:]),
        ]
    if op.control is Control.IF:
        if op.results and not all(region.blocks for region in op.regions):
            message = f"'{op.name}' op with results needs an else region"
            return [Diagnostic("PTO-S106", message, op.loc)]
        wanted = _types(op.results)
        return [
            d
            for n, region in enumerate(op.regions)
            if region.blocks
            for d in _ends_with(op, n, YIELD, wanted, f"{op.name} gives")
        ]
    if op.control is Control.WHILE:
        return _while(op)
    if op.control is Control.REGION:
        return _ends_with(op, 0, YIELD, _types(op.results), "the region gives")
    return []


def _while(op: Operation) -> list[Diagnostic]:
    before, after = op.regions[0].block, op.regions[1].block
    found = _carried(op, op.operands, before.args)
    last = before.ops[-1] if before.ops else None
    if last is None or last.control is not Control.CONDITION:
        message = f"'{op.name}' op must end its test in {CONDITION.name}"
        found.append(Diagnostic("PTO-S105", message, op.loc))
    elif _types(last.operands[1:]) != _types(op.results) or _types(after.args) != _types(
        op.results
    ):
        shown = ", ".join(map(type_text, _types(op.results))) or "nothing"
        message = f"'{op.name}' op gives {shown}, and its condition and body must agree"
        found.append(Diagnostic("PTO-S107", message, last.loc))
    wanted = _types(before.args)
    return found + _ends_with(op, 1, YIELD, wanted, "the loop carries")


def _ends_with(
    op: Operation, region: int, end: Instr, wanted: Sequence[Type], what: str
) -> list[Diagnostic]:
    ops = op.regions[region].block.ops
    last = ops[-1] if ops else None
    if last is None or last.control is not end.body:
        return [Diagnostic("PTO-S105", f"'{op.name}' op must end in {end.name}", op.loc)]
    actual = _types(last.operands)
    if actual == tuple(wanted):
        return []
    given, expected = (", ".join(map(type_text, x)) or "nothing" for x in (actual, wanted))
    message = f"'{end.name}' op gives {given}, but {what} {expected}"
    return [Diagnostic("PTO-S107", message, last.loc)]


def _carried(op: Operation, inits: Sequence[Value], args: Sequence[Value]) -> list[Diagnostic]:
    if _types(inits) == _types(args) and len(args) == len(inits):
        return []
    message = f"'{op.name}' op starts {len(inits)} carried values and its body takes {len(args)}"
    return [Diagnostic("PTO-S107", message, op.loc)]


_OUTSIDE = ("outside vecscope", "simt entry")
SIDES = ("cube", "vector", "cube or vector")
# The unit each side of a core lacks: pipes of the other side (PTO manual, Target Profiles: Core).
_ONLY_CUBE = frozenset(("M", "MTE1", "FIX"))
_ONLY_VECTOR = frozenset(("V",))


def check_places(module: Module) -> list[Diagnostic]:
    found: list[Diagnostic] = []
    _visit(module.op, None, None, found)
    return found


def _visit(op: Operation, scope: Operation | None, side: str | None, out: list[Diagnostic]) -> None:
    out += _misplaced(op, scope, side)
    inner_scope = op if op.control is Control.SCOPE else scope
    inner_side = op.own_side() or side
    if op.control is Control.FUNCTION:
        inner_scope = None
    for region in op.regions:
        for block in region.blocks:
            for child in block.ops:
                _visit(child, inner_scope, inner_side, out)


def _misplaced(op: Operation, scope: Operation | None, side: str | None) -> list[Diagnostic]:
    row = op.row
    if row is None:
        return []
    if op.control is Control.SCOPE and scope is not None:
        return [
            _finding("PTO-S110", op, f"'{op.name}' op cannot stand inside another vector scope")
        ]
    around = next(op.around(Control.SECTION), None) if op.control is Control.SECTION else None
    if around is not None:
        return [_finding("PTO-S111", op, f"'{op.name}' op cannot stand inside {around.name}")]
    if row.scope == "vecscope" and scope is None and not _in_scope_function(op):
        message = f"'{op.name}' op must be inside pto.vecscope or pto.strict_vecscope"
        help = "put pto.vecscope around it; newer compilers insert the scope themselves"
        return [Diagnostic("PTO-S112", message, op.loc, severity="warning", help=help)]
    if scope is not None and (row.scope in _OUTSIDE or _orders_pipes(row)):
        return [_finding("PTO-S113", op, f"'{op.name}' op must be outside {scope.name}")]
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


def _on_side(op: Operation, row: Instr, side: str | None) -> list[Diagnostic]:
    if row.scope in SIDES and side not in row.scope.split():
        where = f"which is the {side} side" if side else "and its side is not declared"
        message = f"'{op.name}' op must be in a {row.scope} kernel or section, {where}"
        return [_finding("PTO-S114", op, message)]
    pipe = row.pipe if isinstance(row.pipe, str) else ""
    foreign = _ONLY_CUBE if side == "vector" else _ONLY_VECTOR if side == "cube" else frozenset()
    if pipe not in foreign:
        return []
    message = f"'{op.name}' op runs on pipe {pipe}, which the {side} side of a core does not have"
    return [_finding("PTO-S114", op, message)]


def _finding(code: str, op: Operation, message: str) -> Diagnostic:
    return Diagnostic(code, message, op.loc)


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
