"""The whole table: importing this module defines every row, so look rows up here."""

from __future__ import annotations

from pto.isa import elementwise, shared
from pto.isa.instr import lookup, rows, suggest

SECTIONS = (elementwise, shared)
__all__ = ["SECTIONS", "lookup", "rows", "suggest"]
