"""`--on`: where the work of a command is done. Verbs that have it work alike everywhere."""

from __future__ import annotations

import argparse
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from itertools import groupby

from pto.core.render import Piece
from pto.run.launch import place as places

RIGHTS = """
The {what} of the checkout are executed with your rights, in child processes with limits of time.
That contains accidents, not malice: run a checkout that you trust.
"""
_ON = "do the work on a cluster: ray, or ray://HOST:10001; default: PTO_ON, else here"


def add_on(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--on", metavar="WHERE", default="", help=_ON)


@contextmanager
def chosen(args: argparse.Namespace) -> Generator[None]:
    """The place that a command line asks for, while its command runs."""
    where = getattr(args, "on", "")
    if not where:
        yield
        return
    from pto.cluster.on import on  # only here: others need no cluster

    with on(where):
        yield


def moved() -> list[Piece]:
    """What the last launch has cost in bytes, if it was done elsewhere."""
    found = getattr(places.current(), "moved", None)
    return [("dim", f"  on a cluster: {found[-1]}\n")] if found else []


def by_node(done: Sequence[tuple[str, float]]) -> list[Piece]:
    """How many cases each node has run, and in how many seconds; nothing where all ran here."""
    out: list[Piece] = []
    for node, cases in groupby(sorted(done), key=lambda each: each[0]):
        seconds = [took for _, took in cases]
        if node:
            out.append(("dim", f"  {node}: {len(seconds)} cases, {sum(seconds):.1f} s\n"))
    return out
