"""The whole table: importing this module defines every row, so look rows up here."""

from __future__ import annotations

from importlib import import_module

from pto.isa import instr
from pto.isa.instr import Instr, lookup, suggest

__all__ = ["lookup", "rows", "suggest"]

# One file a family; each adds its rows when it is imported.
_FILES = """
    elementwise elementwise_scalar bitwise fused compare convert quant reduce expand partial
    sort gather gather_memory generate move rearrange extract img2col matmul fifo config debug
    collective view tile_handle window sync cross_core pipes scalar scope
    vector dma dma_config cube mad fixpipe simt simt_math simt_memory arith shared
"""

_ORDER = {file: n for n, file in enumerate(_FILES.split())}

for _file in _ORDER:
    import_module(f"pto.isa.{_file}")

_ROWS = tuple(sorted(instr.rows(), key=lambda row: _ORDER[row.file.split(".")[2]]))


def rows() -> tuple[Instr, ...]:
    """Every row, in the order of the files above, whoever imported what first."""
    return _ROWS
