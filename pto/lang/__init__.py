"""Kernels in Python: `@kernel` traces a function into a program; every instruction is a function.

Nothing here knows an instruction by name: functions, their order of operands, docstrings and stubs
come from the rows of `pto.isa`.
"""
