"""The call graph, and the functions that reserve queue buffers which other functions import."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from pto.core.errors import fail
from pto.ir.graph import Operation
from pto.isa.order.queue_setup import IMPORT_BUFFER, RESERVE_BUFFER
from pto.isa.row.attributes import Attribute, Str, Symbol
from pto.isa.row.traits import Control
from pto.verify.functions import is_defined, name_of

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
            found = self._within(module[0]).get(name) if module else None
            if found is not None and is_defined(found):
                return found
        return None

    def _within(self, module: Operation) -> dict[str, Operation]:
        known = self._modules.get(module)
        if known is None:
            known = {name_of(op): op for op in module.walk() if op.control is Control.FUNCTION}
            known |= {name_of(op): op for op in module.regions[0].block.ops}
            self._modules[module] = known
        return known


def with_peers(functions: Iterable[Operation], names: FunctionNames) -> list[Operation]:
    """The functions, all that they call, and those that reserve queue buffers for any of these."""
    found = dict.fromkeys(functions)
    waiting = list(found)
    while waiting:
        function = waiting.pop()
        for op in function.walk():
            symbol = op.attrs.get("callee") or op.attrs.get("peer_func")
            other = names.find(symbol, function) if symbol else None
            if other is not None and other not in found:
                found[other] = None
                waiting.append(other)
    return list(found)


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
            calls = list(_calls(top, names))
            path[top] = calls
            waiting += [callee for _, callee in calls if _is_new(callee, path, done)]


def _is_new(callee: Operation, path: Mapping[Operation, object], done: set[Operation]) -> bool:
    if callee in path:
        message = f"recursive function calls are not supported: @{name_of(callee)} calls itself"
        raise fail("PTO-S104", message, loc=callee.loc)
    return callee not in done


def _calls(function: Operation, names: FunctionNames) -> Iterator[Call]:
    for op in function.walk():
        callee = names.find(op.attrs.get("callee"), function)
        if callee is not None:
            yield op, callee


def imports(
    functions: Iterable[Operation], names: FunctionNames
) -> Iterator[tuple[Operation, Operation]]:
    """Each import of a queue buffer with the operation that reserves it."""
    for function in functions:
        for op in function.walk():
            if op.row is IMPORT_BUFFER:
                yield op, _reserve(op, names.find(op.attrs.get("peer_func"), function))


def _reserve(op: Operation, peer: Operation | None) -> Operation:
    wanted = op.attrs.get("name")
    for other in peer.walk() if peer is not None else ():
        if other.row is RESERVE_BUFFER and other.attrs.get("name") == wanted:
            return other
    symbol = op.attrs.get("peer_func")
    who = f"@{symbol.name}" if isinstance(symbol, Symbol) else "its peer"
    what = f"'{wanted.value}'" if isinstance(wanted, Str) else "this name"
    raise fail("PTO-M127", f"'{op.name}' op: {who} reserves no buffer {what}", loc=op.loc)
