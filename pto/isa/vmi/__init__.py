"""Logical vectors of any length (`pto.vmi`), which a compiler spreads over registers."""
