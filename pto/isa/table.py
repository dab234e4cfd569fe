"""Importing this module fills the table with every row."""

from __future__ import annotations

from pto.isa import elementwise, shared

SECTIONS = (elementwise, shared)
