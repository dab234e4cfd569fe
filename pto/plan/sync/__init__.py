"""Synchronisation for programs without any: flags and barriers that order their pipes.

effects -> tree -> fences (by static clocks) -> ids -> rewrite; `insert` runs them all.
"""
