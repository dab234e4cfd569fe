"""Graphs of tasks: whole models as kernels, tensors and edges.

`model` is the data. Front ends build it: `orchestration` from C++, `scene` from a scene test,
`python` from calls of Python kernels. `schedule`, `races`, `dry`, `diff` and `timing` act on it and
know none of the front ends. No kernel-level module imports this package.
"""
