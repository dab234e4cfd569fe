"""Properties of a program for all sizes, blocks and iterations, from formulas instead of a run."""
