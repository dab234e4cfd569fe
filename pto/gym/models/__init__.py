"""Kernels of whole models, as PyPTO exports them: found, given data, run on both engines, judged.

Upstream's validation scripts say what scalars, sizes and tolerances are; they run as `pto gym` runs
scripts, in a process of their own, and nothing of them is kept here.
"""
