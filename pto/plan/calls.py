"""Functions of a program: the call graph, the queue buffers that they share, those that a launch
runs, and the agents that run them: the cube, the vector sub-blocks, or one for the whole core."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from pto.core.errors import Diagnostic, Loc, PtoError, fail
from pto.ir.graph import Module, Operation, Value
from pto.ir.text.types import type_text
from pto.isa.meaning.scalar.unit import SUB_BLOCK_COUNT, SUB_BLOCK_INDEX
from pto.isa.order.queue_setup import IMPORT_BUFFER, RESERVE_BUFFER
from pto.isa.row import types as t
from pto.isa.row.attributes import Attribute, Int, Str, Symbol, word
from pto.isa.row.traits import Control
from pto.target.facts import Profile
from pto.verify.functions import entries

# PyPTO's name for the number of the vector sub-block; its compiler puts the number in each lane's
# code, so what a launch passes does not count.
SUBBLOCK = "__pypto_spmd_subblock_idx"
Call = tuple[Operation, Operation]  # the operation, the function it calls


class FunctionNames:
    """Functions by name, seen from a function: its own module first, then the whole program."""

    def __init__(self) -> None:
        self._modules: dict[Operation, dict[str, Operation]] = {}

    def find(self, symbol: Attribute | None, seen_from: Operation) -> Operation | None:
        if not isinstance(symbol, Symbol):
            return None
        name = symbol.name.rpartition("@")[2]
        around = list(seen_from.ancestors())
        for module in (around[:1], around[-1:]):
            function = self._within(module[0]).get(name) if module else None
            if function is not None and function.has_body:
                return function
        return None

    def _within(self, module: Operation) -> dict[str, Operation]:
        functions = self._modules.get(module)
        if functions is None:
            functions = {op.symbol: op for op in module.walk() if op.control is Control.FUNCTION}
            functions |= {op.symbol: op for op in module.regions[0].block.ops}
            self._modules[module] = functions
        return functions


def with_peers(functions: Iterable[Operation], names: FunctionNames) -> list[Operation]:
    """The functions, all that they call, and those that reserve queue buffers for any of these."""
    listed = dict.fromkeys(functions)
    waiting = list(listed)
    while waiting:
        function = waiting.pop()
        for op in function.walk():
            symbol = op.attrs.get("callee") or op.attrs.get("peer_func")
            other = names.find(symbol, function) if symbol else None
            if other is not None and other not in listed:
                listed[other] = None
                waiting.append(other)
    return list(listed)


def callees_first(
    functions: Iterable[Operation], names: FunctionNames
) -> Iterator[tuple[Operation, list[Call]]]:
    """Yield each function after its callees; iterative, since call chains may be long."""
    done: set[Operation] = set()
    for function in functions:
        path: dict[Operation, list[Call]] = {}
        waiting = [function]
        while waiting:
            top = waiting[-1]
            if top in path:
                waiting.pop()
                done.add(top)
                yield top, path.pop(top)
                continue
            if top in done:
                waiting.pop()
                continue
            path[top] = outgoing = list(calls(top, names))
            waiting += [callee for _, callee in outgoing if _is_new(callee, path, done)]


def _is_new(callee: Operation, path: Mapping[Operation, object], done: set[Operation]) -> bool:
    if callee in path:
        message = f"recursive function calls are not supported: @{callee.symbol} calls itself"
        raise fail("PTO-S104", message, loc=callee.loc)
    return callee not in done


def calls(function: Operation, names: FunctionNames) -> Iterator[Call]:
    """The calls in a function."""
    for op in function.walk():
        callee = names.find(op.attrs.get("callee"), function)
        if callee is not None:
            yield op, callee


def imports(
    functions: Iterable[Operation], names: FunctionNames
) -> Iterator[tuple[Operation, Operation]]:
    """Each import of a queue buffer with the operation that reserves it."""
    for function in functions:
        for op, peer in partners(function, names):
            yield op, _reserve(op, peer)


def partners(
    function: Operation, names: FunctionNames
) -> Iterator[tuple[Operation, Operation | None]]:
    """Each import of a queue buffer with the function at the other end; None if it is unknown."""
    for op in function.walk():
        if op.row is IMPORT_BUFFER:
            yield op, names.find(op.attrs.get("peer_func"), function)


def _reserve(op: Operation, peer: Operation | None) -> Operation:
    wanted = op.attrs.get("name")
    for other in peer.walk() if peer is not None else ():
        if other.row is RESERVE_BUFFER and other.attrs.get("name") == wanted:
            return other
    symbol = word(op.attrs, "peer_func")
    who = "its peer" if symbol is None else f"@{symbol}"
    buffer_text = f"'{wanted.value}'" if isinstance(wanted, Str) else "this name"
    raise fail("PTO-M127", f"'{op.name}' op: {who} reserves no buffer {buffer_text}", loc=op.loc)


SUB_BLOCKS = 2  # vector sub-blocks of a core (PTO manual, Target Profiles)


class SideFunction(NamedTuple):
    """A function, the side of the core that runs it, and how many agents that side is."""

    function: Operation
    name: str
    agents: int


def sides(kernels: Sequence[Operation], profile: Profile) -> list[SideFunction]:
    """Vector code alone runs on one sub-block a block; beside a cube, on all that take part."""
    names = FunctionNames()
    side_functions = [(f, side) for f in kernels for side in _sides_of(f, names)]
    mixed = {"cube", "vector"} <= {side for _, side in side_functions}
    vectors = _vectors(kernels, names, profile) if mixed else 1
    return [SideFunction(f, side, vectors if side == "vector" else 1) for f, side in side_functions]


def _sides_of(function: Operation, names: FunctionNames) -> list[str]:
    kind = function.side()
    if kind is not None:
        return [kind]
    has = {side for f in _reached([function], names) for side in _marks(f)}
    return sorted(has) or ["both"]


def _reached(functions: Sequence[Operation], names: FunctionNames) -> Iterator[Operation]:
    return (f for f, _ in callees_first(functions, names))


def _marks(function: Operation) -> Iterator[str]:
    kind = function.side()
    if kind is not None:
        yield kind
        return
    yield from (side for op in function.walk() if (side := op.own_side()))


def _vectors(kernels: Sequence[Operation], names: FunctionNames, profile: Profile) -> int:
    """The number of vector sub-blocks: both, unless every queue passes undivided tiles to one. A
    program that reads its sub-block number has both, as where PTOAS compiles it.
    """
    ops = [op for f in _reached(kernels, names) for op in f.walk()]
    asks = any(op.body in (SUB_BLOCK_INDEX, SUB_BLOCK_COUNT) for op in ops)
    splits = {
        split.value
        for op in ops
        if op.row.attr("split")
        if isinstance(split := op.attrs.get("split"), Int)
    }
    numbered = any(a.name == SUBBLOCK for f in kernels for a in f.regions[0].block.args)
    is_whole = splits == {0} and not asks and not numbered
    return profile.sync.whole_tile_vectors if is_whole else SUB_BLOCKS


def peers(function: Operation, module: Module) -> list[Operation]:
    """The function and those at the other ends of its queues, in program order."""
    functions = list(module.functions())
    names, near = FunctionNames(), {id(function)}
    links = [(id(f), id(other)) for f in functions for _, other in partners(f, names) if other]
    while more := {b for a, b in (*links, *((b, a) for a, b in links)) if a in near} - near:
        near |= more
    return [f for f in functions if id(f) in near]


def entry_functions(module: Module, entry: str | None) -> list[Operation]:
    """The function to run, with those at the other ends of its queues: they run together."""
    functions = [f for f in module.functions() if f.has_body]
    if not functions:
        loc = Loc(module.source.file, 1) if module.source.file else None
        raise fail("PTO-U030", "the program has no function", loc=loc)
    if entry is not None:
        chosen = [f for f in functions if f.symbol == entry]
        if not chosen:
            names = ", ".join(f"@{f.symbol}" for f in functions)
            raise fail("PTO-U030", f"there is no function @{entry}; the program has {names}")
        return chosen if len(chosen) > 1 else peers(chosen[0], module)
    candidates = entries(functions)
    if not candidates:
        candidates = [f for f in functions if f.side() is not None]
    if candidates and (
        {id(f) for f in candidates} <= {id(f) for f in peers(candidates[0], module)}
    ):
        return peers(candidates[0], module)
    if {f.side() for f in candidates} == {"cube", "vector"} and len(candidates) == 2:
        return candidates
    names = ", ".join(f"@{f.symbol}" for f in candidates or functions)
    raise PtoError(
        Diagnostic(
            "PTO-U031", f"which function is to run? The program has {names}", help="--entry NAME"
        )
    )


def names_of(args: Sequence[Value], names: Sequence[str]) -> Sequence[str]:
    """Which of a launch's arguments each parameter of a function gets."""
    arg_names = [a.name for a in args]
    return arg_names if set(arg_names) <= set(names) else names[: len(arg_names)]


def taken(functions: Sequence[Operation]) -> list[tuple[str, t.Type]]:
    """Names and types of the arguments of a launch, in order.

    Functions that run together share them: by position where they agree in number and types, else
    by name.
    """
    first = functions[0].regions[0].block.args
    types = {a.name: a.type for a in first}
    for function in functions[1:]:
        args = function.regions[0].block.args
        if [a.type for a in args] == [a.type for a in first]:
            continue
        for a in args:
            first_type = types.setdefault(a.name, a.type)
            if first_type != a.type:
                raise fail(
                    "PTO-U190",
                    f"%{a.name} is {type_text(first_type)} in one of the functions that run"
                    " together "
                    f"and {type_text(a.type)} in another",
                    loc=function.loc,
                )
    return list(types.items())
