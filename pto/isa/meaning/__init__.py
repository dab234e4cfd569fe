"""Meanings: the code that executes each instruction, one file per family.

A row names its meaning. `kinds.py` defines the kinds of meaning, `lanes.py` the primitives of lane
functions, and `machine.py` the interface of the core that executes a meaning.
"""
