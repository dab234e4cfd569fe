"""From an operation to its work: one maker for each group of classes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pto.isa.cost import moves, products, vectors
from pto.isa.cost.work import Cycles, TransferWork, Work
from pto.isa.meaning.handle.view import as_tile
from pto.isa.rules.rule import Case

Describe = Callable[[list[Any]], Work]

ORDERS = frozenset({"flag", "barrier", "semaphore"})
FIXED = frozenset({*ORDERS, "register", "free", "alu", "branch"})
RUN = frozenset({"queue", "remote"})  # classes with sizes known only at run time
REGISTERS = frozenset(
    {"lane", "lane_mul", "predicate", "reg_load", "reg_store", "reg_gather", "reg_fold", "scope"}
)


def work_of(case: Case) -> Describe | None:
    """A function from operands to the work of an operation; None if only a run can measure it."""
    name = case.row.cost
    if name in FIXED:
        fixed = Cycles(name)
        return lambda values: fixed
    if name in RUN or name in REGISTERS:
        return None
    return _MAKERS.get(name, vectors.tiles)(case)


def _img2col(case: Case) -> Describe | None:
    at, type = case.row.operand_names.index("dst"), case.type("dst")

    def work(values: list[Any]) -> Work:
        rows, cols = (tile := as_tile(values[at], type)).get_valid()
        return TransferWork("img2col", rows * cols * tile.type.itemsize, 1)

    return work


_MAKERS: dict[str, Callable[[Case], Describe | None]] = {
    "move": moves.described,
    "product": products.product,
    "img2col": _img2col,
}
