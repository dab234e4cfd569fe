"""Operators of models and libraries as kernels of the expression language, one file each.

Every module has

- a docstring: the formula, and what bounds the operator on the hardware;
- kernels (`@pto.kernel`), at most 60 lines together, 120 for those of `LEVEL = 4`;
- `run`, a `@pto.operator`: NumPy arrays and attributes in, new NumPy arrays out;
- `reference`, the same function on exact values (f64, i64) by NumPy alone;
- `CASES`, calls on small arrays (`examples/operators/cases.py`), and `LEVEL`, its difficulty;
- optionally `inputs(arguments, random)`, which makes drawn arguments valid, for example indices
  that are all different.

They take arrays of any shape and of every element type of a case, and run on a2a3 and a5.
"""
