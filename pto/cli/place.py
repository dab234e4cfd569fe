"""The effect of `--on`: a command runs on this machine or on a cluster, with the same results."""

from __future__ import annotations

import argparse
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from itertools import groupby

from pto.core.render import Piece
from pto.run.launch import place as places

RIGHTS = """
The {what} of the checkout are executed with your rights, in child processes with a time limit.
That is no protection from malicious code: run only a checkout that you trust.
"""


@contextmanager
def chosen(args: argparse.Namespace) -> Generator[None]:
    """A context in which the command runs on the cluster that `--on` names."""
    where = getattr(args, "on", "")
    if not where:
        yield
        return
    from pto.cluster.on import on  # only here: most commands need no cluster

    with on(where):
        yield


def moved() -> list[Piece]:
    """A line with the bytes that the last launch moved, if it ran on a cluster."""
    found = getattr(places.current(), "moved", None)
    return [("dim", f"  on a cluster: {found[-1]}\n")] if found else []


def by_node(done: Sequence[tuple[str, float]]) -> list[Piece]:
    """The cases and seconds of each node; empty if all cases ran on this machine."""
    out: list[Piece] = []
    for node, cases in groupby(sorted(done), key=lambda each: each[0]):
        seconds = [took for _, took in cases]
        if node:
            out.append(("dim", f"  {node}: {len(seconds)} cases, {sum(seconds):.1f} s\n"))
    return out
