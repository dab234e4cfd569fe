"""The whole table: importing this module defines every row, so look rows up here."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module

from pto.isa.row import instr
from pto.isa.row.instr import Instr, lookup, suggest

__all__ = ["lookup", "rows", "suggest"]

# One file a family; each adds its rows when it is imported.
_FILES = """
    tile: elementwise elementwise_scalar bitwise fused compare convert quant reduce expand partial
        sort gather gather_memory generate move rearrange extract img2col convolution matmul
    order: queue
    handle: config
    tile: debug
    memory: collective
    handle: view tile window
    order: flags fence cross_core queue_setup
    scalar: unit scope
    vector: load store unaligned materialize arithmetic compare convert reduce rearrange special
        histogram predicate raw
    vmi: eltwise shape convert memory
    memory: dma registers
    cube: load mad fixpipe
    simt: launch math memory
    scalar: arith structure
"""


def _modules() -> Iterator[str]:
    folder = ""
    for word in _FILES.split():
        if word.endswith(":"):
            folder = word.removesuffix(":")
        else:
            yield f"pto.isa.{folder}.{word}"


_ORDER = {module: n for n, module in enumerate(_modules())}

for _module in _ORDER:
    import_module(_module)

_ROWS = tuple(sorted(instr.rows(), key=lambda row: _ORDER[row.home[0]]))


def rows() -> tuple[Instr, ...]:
    """Every row, in the order of the files above, independent of the order of imports."""
    return _ROWS
