"""Operations before a compiled region that are emitted once more inside it.

They only name a place: constants, tiles that the planner placed, views. A region that gets them as
arguments would compute with addresses and sizes that are not known when it is compiled, which takes
five times the code.
"""

from __future__ import annotations

from collections.abc import Sequence

from pto.ir.graph import Operation, Value
from pto.isa.meaning import Do
from pto.isa.meaning.handle.view import ALLOC_TILE, PARTITION, SET_VALID, TENSOR_VIEW
from pto.isa.row import types as t


def changed_tiles(function: Operation) -> set[int]:
    """The ids of tiles with an address or a valid region that an operation sets."""
    found: set[int] = set()
    for op in function.walk():
        if op.body is SET_VALID:
            found.add(id(op.operands[0]))
        elif isinstance(op.body, Do) and op.body.binds:
            found |= {id(value) for value in op.group(op.body.binds)}
    return found


def repeated(inner: Sequence[Operation], changed: set[int]) -> list[Operation]:
    """The operations with results that `inner` uses and does not define, in order of their
    dependences."""
    made = {id(r) for op in inner for r in op.results}
    made |= {id(a) for op in inner for r in op.regions for b in r.blocks for a in b.args}
    found: dict[int, Operation] = {}
    for op in inner:
        for value in op.operands:
            if id(value) not in made and isinstance(value.type, t.TileBuf | t.View):
                _add(value, changed, found)
    return list(found.values())


def _add(value: Value, changed: set[int], found: dict[int, Operation]) -> bool:
    """True if a value can be defined again; adds its operations to `found`."""
    op = value.maker
    if op is None:
        return isinstance(value.type, t.Ptr)  # an argument of the function
    if id(op) in found or op.traits.constant:
        found[id(op)] = op
        return True
    is_tile = op.body is ALLOC_TILE and op.operand("addr") is None and id(value) not in changed
    if not is_tile and op.body not in (TENSOR_VIEW, PARTITION):
        return False
    own: dict[int, Operation] = {}
    if not all(_add(each, changed, own) for each in op.operands):
        return False
    found |= own
    found[id(op)] = op
    return True
