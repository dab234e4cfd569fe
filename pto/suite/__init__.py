"""Test suites of other projects: cases, one pool of processes that runs them, results, a table.

`gym`, `cxx` and `graphs` say what the cases of their suites are and how one is run.
"""
