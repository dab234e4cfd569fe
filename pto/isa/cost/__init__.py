"""The amount of work of an instruction on a chip: bytes, fractals, repeats. Cycles: `target`.

A row names its cost class (`Instr.cost`). This package computes the work of a class from the types
of the operands and, at run time, from their shapes and addresses.
"""
