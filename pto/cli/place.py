"""The effect of `--on`: a command runs on this machine or on a cluster, with the same results."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from pto.core.render import Piece

RIGHTS = """
The {what} of the checkout are executed with your rights, in child processes with a time limit.
That is no protection from malicious code: run only a checkout that you trust.
"""


def by_node(done: Sequence[tuple[str, float]]) -> list[Piece]:
    """The cases and seconds of each node; empty if all cases ran on this machine."""
    out: list[Piece] = []
    for node, cases in groupby(sorted(done), key=lambda each: each[0]):
        seconds = [took for _, took in cases]
        if node:
            out.append(("dim", f"  {node}: {len(seconds)} cases, {sum(seconds):.1f} s\n"))
    return out
