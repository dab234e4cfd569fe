"""Products of matrices as steps of the matrix unit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pto.core.dtypes import DType
from pto.core.tile import Tile
from pto.isa.cost.work import MatmulWork, Work
from pto.isa.meaning.handle.view import as_tile
from pto.isa.rules.rule import Case

_SIDE = 16
_K_BITS = 256  # of k that one step takes: 16 elements of f16, 32 of fp8, 64 of fp4


def product(case: Case) -> Callable[[list[Any]], Work] | None:
    """The work of a matmul, from the valid regions of tiles or from its size operands."""
    names = case.row.operand_names
    left = next((n for n in ("lhs", "a") if n in names), None)
    elem = None if left is None else case.elem(left)
    kind = None if elem is None else elem.dtype
    if left is None or kind is None:
        return None
    if case.tile(left) is not None:
        right = "rhs" if left == "lhs" else "b"
        at, to = names.index(left), names.index(right)
        types = case.type(left), case.type(right)

        def of_tiles(values: list[Any]) -> Work:
            a, b = as_tile(values[at], types[0]), as_tile(values[to], types[1])
            return _work(case, kind, *_sizes(a, b, kind))

        return of_tiles
    if not {"m", "n", "k"} <= set(names):
        return _packed(case, kind)
    m, n, k = (names.index(name) for name in "mnk")
    return lambda values: _work(case, kind, values[m], values[k], values[n])


def _sizes(a: Tile, b: Tile, kind: DType) -> tuple[int, int, int]:
    (m, k), (_, n) = a.get_valid(), b.get_valid()
    return m, k * kind.values_per_item, n


def _packed(case: Case, kind: DType) -> Callable[[list[Any]], Work] | None:
    """Sizes in one word: m, k and n of 12 bits each."""
    if "xt" not in case.row.operand_names:
        return None
    at = case.row.operand_names.index("xt")
    return lambda values: _work(
        case, kind, values[at] & 4095, values[at] >> 12 & 4095, values[at] >> 24 & 4095
    )


def _work(case: Case, kind: DType, m: int, k: int, n: int) -> Work:
    depth = max(1, _K_BITS * kind.values_per_item // (8 * kind.itemsize))
    steps = -(-m // _SIDE) * -(-k // depth) * -(-n // _SIDE)
    return MatmulWork(case.row.cost, steps, depth, kind.name)
