"""Verdicts about kernels: `pto judge TASK CANDIDATE`.

A task (`task.py`) has arguments, cases and a reference. A candidate is untrusted: it is traced in a
confined process (`tracer.py`, `confine.py`) that has shapes and no data, and all that leaves that
process is programs (`programs.py`). The judge draws the values afterwards, runs the programs
(`judge.py`, `correct.py`, `checks.py`) and reports a `Judgement` (`judgement.py`).
"""
