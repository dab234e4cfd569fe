"""Synchronisation for programs without any: flags and barriers that order their pipes.

storage, outside -> effects -> tree -> place (walk, shadow, clocks) -> ids -> rewrite; `program.py`
runs them all.
"""

from pto.plan.sync.program import insert, ordered

__all__ = ["insert", "ordered"]
