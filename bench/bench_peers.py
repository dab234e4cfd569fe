"""Whole workloads beside NumPy, our own C where there is a compiler, and torch where installed.

Everything in one process with one thread each, in rounds that take turns: the least processor time
counts, so that other work on the machine does not. Each is called three times in a row: what the
one before has left in the caches does not count either. The tables of README.md and
docs/speed.md are made here.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from bench.measure import Rows

_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "PTO_THREADS")
ONE_THREAD = dict.fromkeys(_THREADS, "1")
ROUNDS, TIMES = 15, 3
Work = dict[str, Callable[[], object]]


def least(work: Work, rounds: int = ROUNDS) -> dict[str, float]:
    """Processor seconds of each."""
    best = dict.fromkeys(work, float("inf"))
    for call in work.values():
        call()  # compiles, fills caches
    for _ in range(rounds):
        for name, call in work.items():
            for _ in range(TIMES):
                began = time.process_time()
                call()
                best[name] = min(best[name], time.process_time() - began)
    return best


def run() -> Rows:
    rows: Rows = []
    found = measured()
    into(SPEED, found)
    into(README, {name: found[name] for name in FRONT})
    for name, took in found.items():
        ours = took.pop("pto")
        beside = ", ".join(f"{ours / other:.2f} x {peer}" for peer, other in took.items())
        rows.append((name, ours * 1e3, f"ms: {beside}"))
    return rows


def measured() -> dict[str, dict[str, float]]:
    """In a process of its own: how many threads a library has is settled when it is loaded."""
    command = [sys.executable, "-m", "bench.peer_workloads"]
    env = {**os.environ, **ONE_THREAD}
    done = subprocess.run(command, env=env, check=True, stdout=subprocess.PIPE, text=True)
    return json.loads(done.stdout.splitlines()[-1])


# ---- the tables of the pages

README = Path(__file__).parent.parent / "README.md"
SPEED = README.parent / "docs" / "speed.md"
FRONT = (  # workloads of the README
    "softmax of 64,000 rows of 128, f32",
    "layer norm of 4,096 rows of 1,024, f32",
    "attention, 2,048 tokens, depth 64",
    "1024x1024x1024, f32",
)
BEGIN, END = "<!-- bench -->", "<!-- end of bench -->"


def table(found: dict[str, dict[str, float]]) -> str:
    peers = ("NumPy", "C -O3", "torch")
    lines = [f"| what | pto | {' | '.join(peers)} |", "| --- |" + " --- |" * (1 + len(peers))]
    for name, took in found.items():
        cells = [_shown(took.get(peer)) for peer in ("pto", *peers)]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _shown(seconds: float | None) -> str:
    if seconds is None:
        return "–"
    unit, scale = ("ms", 1e3) if seconds >= 1e-3 else ("us", 1e6)
    return f"{seconds * scale:.3g} {unit}"


def into(page: Path, found: dict[str, dict[str, float]]) -> None:
    head, _, rest = page.read_text().partition(BEGIN)
    page.write_text(f"{head}{BEGIN}\n{table(found)}\n{END}{rest.partition(END)[2]}")


if __name__ == "__main__":
    for name, value, unit in run():
        print(f"{name:<46} {value:>12,.2f} {unit}")
