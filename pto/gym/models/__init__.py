"""Kernels of whole models, as PyPTO exports them: found, given data, run on both engines, judged.

Upstream's validation scripts set scalars, sizes and tolerances. They run in a process of their own,
as the scripts of PTO-Gym do, and nothing of them is stored here.
"""
