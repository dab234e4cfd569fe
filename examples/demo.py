"""`make demo`: flash attention checked on two targets, run on two engines, sanitized, broken."""

from __future__ import annotations

from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import numpy.typing as npt
from rich.box import SIMPLE
from rich.console import Console
from rich.padding import Padding
from rich.syntax import Syntax
from rich.table import Table
from rich.text import Text

import pto
from examples import flash_attention as attention
from pto.core import render
from pto.ir.text.parser import parse
from pto.ir.text.printer import print_module
from pto.observe import sanitize
from pto.plan.sync import insert
from pto.run.launch.engine import ENGINES
from pto.target import profile
from pto.verify import verify

TARGETS = attention.PROFILES
KEYS = 128
BLOCKS = KEYS // attention.ROWS
FILE = "attention.pto"


def arguments() -> list[npt.NDArray[Any]]:
    """Queries, keys (transposed), values, room for the result and for queues."""
    q, k, v = np.random.default_rng(17).standard_normal((3, KEYS, attention.DEPTH))
    room = BLOCKS * 2 * attention.SLOTS * attention.SLOT // 4
    return [
        q.astype(np.float16),
        np.ascontiguousarray(k.T).astype(np.float16),
        v.astype(np.float16),
        np.zeros((KEYS, attention.DEPTH), np.float32),
        np.zeros(room, np.float32),
    ]


def by_numpy(arrays: list[npt.NDArray[Any]]) -> npt.NDArray[np.float64]:
    q, kt, v = (a.astype(np.float64) for a in arrays[:3])
    scores = q @ kt / np.sqrt(attention.DEPTH)
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    return weights / weights.sum(axis=1, keepdims=True) @ v


def program(target: str) -> pto.Module:
    kernel = attention.flash_attention.on(target)
    return kernel.module(*arguments(), target == "a2a3")


# ---- the steps


def show_kernel(out: Console) -> None:
    text = print_module(program("a5"))
    count = sum("pto." in line for line in text.split("\n"))
    step(out, "A kernel in Python", "examples/flash_attention.py")
    out.print(
        "  The cube multiplies, two vector sub-blocks do the softmax, tiles go between them in"
    )
    out.print("  queues. How the vector side sends its weights to the cube:")
    out.print(Padding(Syntax(source_of("def send"), "python", background_color="default"), (1, 4)))
    out.print(f"  It traces to {count} lines of .pto text, which any PTO tool reads.")


def source_of(start: str) -> str:
    """The function that begins so, from the file of the kernel."""
    text = Path(attention.__file__).read_text("utf-8")
    return text[text.index(f"\n{start}") :].split("\n\n\n")[0].strip()


def check(out: Console) -> None:
    step(out, "Legal?", "every instruction, type, layout and size, by target (pto check)")
    for target in TARGETS:
        facts = profile(target)
        found = verify(program(target), facts)
        verdict = f"{len(found)} findings" if found else "accepted"
        out.print(f"  {target:5} {facts.title:32} [bold]{verdict}[/]")


def run(out: Console) -> None:
    step(out, "Right?", "on both engines, against NumPy in f64; the first run of jit compiles")
    table = Table(box=SIMPLE, pad_edge=False)
    for head in ("target", "engine", "first run", "next run", "largest error", "bits"):
        table.add_column(head, justify="right" if "run" in head or "error" in head else "left")
    wanted: bytes | None = None
    for target in TARGETS:
        for engine in sorted(ENGINES, reverse=True):  # reference first
            made, times = timed(target, engine)
            error = abs(made - by_numpy(arguments())).max()
            same = "the same" if wanted in (None, made.tobytes()) else "others"
            wanted = wanted or made.tobytes()
            table.add_row(target, engine, *(f"{t:.2f} s" for t in times), f"{error:.0e}", same)
    out.print(Padding(table, (0, 1)))


def timed(target: str, engine: str) -> tuple[npt.NDArray[np.float32], list[float]]:
    kernel = attention.flash_attention.on(target)
    times: list[float] = []
    arrays = arguments()
    for _ in range(2):
        arrays, begun = arguments(), perf_counter()
        kernel.run(*arrays, target == "a2a3", blocks=BLOCKS, engine=engine)
        times.append(perf_counter() - begun)
    return arrays[3], times


def watch(out: Console) -> str:
    """Put in the flags that a compiler would, and have the sanitizer judge them."""
    step(out, "Free of races?", "pipes run in parallel on the hardware: flags must order them")
    text = ""
    for target in TARGETS:
        text = print_module(insert(program(target), profile(target)))
        begun = perf_counter()
        errors = errors_of(text)
        seconds = perf_counter() - begun
        fences = sum(any(word in line for word in FENCES) for line in text.split("\n"))
        out.print(
            f"  {target:5} {fences} flags and barriers put in (pto sync), sanitizer:"
            f" [bold]{len(errors)} errors[/] in {seconds:.1f} s"
        )
    return text


FENCES = ("set_flag", "wait_flag", "barrier")


def errors_of(text: str) -> list[pto.Diagnostic]:
    verdict = sanitize(parse(text, FILE), args=arguments(), blocks=BLOCKS)
    return [finding for finding in verdict.findings if finding.severity == "error"]


def break_flag(out: Console, text: str) -> None:
    step(out, "Broken on purpose", "one wait is taken out; a run in program order never notices")
    lines = text.split("\n")
    pipes = "PIPE_M>, #pto.pipe<PIPE_FIX>"  # the product is complete before it is pushed
    at = next(n for n, line in enumerate(lines) if "wait_flag" in line and pipes in line)
    out.print(Text(f"  - {lines[at].strip()}", "red"))
    show(out, [*lines[:at], *lines[at + 1 :]])


def break_queue(out: Console) -> None:
    step(out, "Broken otherwise", "a slot of the queue is given back before its tile is read")
    lines = print_module(program("a5")).split("\n")
    free = next(n for n, line in enumerate(lines) if "tfree_from_aic" in line)
    out.print(Text(f"  {lines[free].strip()}, one line too early", "red"))
    lines[free - 1], lines[free] = lines[free], lines[free - 1]
    show(out, lines)


def show(out: Console, lines: list[str]) -> None:
    """The first error, its lines cut to the width of a terminal."""
    found = errors_of("\n".join(lines))
    short = "\n".join(f"{line[:84]}..." if len(line) > 84 else line for line in lines)
    out.print()
    for line in render.text(found[:1], render.Sources({FILE: short})).rstrip().split("\n"):
        out.print(Text(f"  {line}", "bold red" if line.startswith("error") else ""))
    if len(found) > 1:
        out.print(f"  ... and {len(found) - 1} more")


def step(out: Console, title: str, what: str) -> None:
    out.print(f"\n[bold cyan]{title}[/] [dim]{what}[/]")


def main() -> None:
    out = Console(highlight=False, soft_wrap=True)
    begun = perf_counter()
    show_kernel(out)
    check(out)
    run(out)
    ordered = watch(out)
    break_flag(out, ordered)
    break_queue(out)
    seconds = perf_counter() - begun
    out.print(f"\n{seconds:.0f} s. Next: docs/tutorial.md, pto --help, make docs, make test")


if __name__ == "__main__":
    main()
