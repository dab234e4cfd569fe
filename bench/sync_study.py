"""Who orders pipes: the passes of PTOAS against `pto sync`, on random programs of an A3 core.

`python -m bench.sync_study PTOAS [COUNT] [SEED] [TURNS]` takes the path of a built `ptoas` (August
2026) and prints a table of docs/study.md; without the path it says so. A program loads, computes
and stores tiles of different sizes, with TURNS in a loop, and leaves addresses and flags to a
compiler. What comes out of each compiler is run on the same numbers in program order, and with
effects as late, as early and in random orders as the flags allow: other bytes are a race that
happens. The sanitizer names it.
"""

from __future__ import annotations

import random
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from pto.core.errors import PtoError
from pto.ir.graph import Module
from pto.ir.text.parser import parse
from pto.ir.text.printer import print_module
from pto.isa.row.attributes import Int
from pto.isa.row.types import TileBuf
from pto.observe.sanitize import sanitize
from pto.plan.memory import addressed
from pto.plan.sync import insert
from pto.run.launch.host import launch
from pto.target.profile import choose

DEVICE = "910b1"
SCHEDULES = ("late", "early", "random:1", "random:2", "random:3")
WAYS = {
    "InsertSync": ("--enable-insert-sync",),
    "graph solver": ("--enable-graph-sync-solver",),
}
_SIZES = ((8, 64), (16, 64), (16, 128), (32, 128), (64, 128))
_RECENT = 4  # tiles that later steps may still use
_UNARY, _BINARY = ("texp", "tabs", "trelu"), ("tadd", "tsub", "tmul", "tmax", "tmin")


@dataclass
class Draft:
    """A random program: tiles by shape, arrays it reads and one array a store."""

    rng: random.Random
    lines: list[str] = field(default_factory=list[str])
    shapes: list[tuple[int, int]] = field(default_factory=list[Any])  # of parameters
    tiles: list[tuple[str, tuple[int, int]]] = field(default_factory=list[Any])  # the last ones
    count: int = 0

    def name(self, word: str) -> str:
        self.count += 1
        return f"%{word}{self.count}"

    def tile(self, shape: tuple[int, int]) -> str:
        name = self.name("t")
        self.lines.append(f"{name} = pto.alloc_tile : {_tile(shape)}")
        return name

    def window(self, shape: tuple[int, int]) -> str:
        """A part of a parameter of its own that is this large."""
        n, (view, part) = len(self.shapes), (self.name("v"), self.name("p"))
        self.shapes.append(shape)
        rows, cols = (f"%c{k}" for k in shape)
        whole = f"shape = [{rows}, {cols}], strides = [{cols}, %c1]"
        piece = f"offsets = [%c0, %c0], sizes = [{rows}, {cols}]"
        self.lines.append(f"{view} = pto.make_tensor_view %a{n}, {whole} : {_view(shape)}")
        self.lines.append(
            f"{part} = pto.partition_view {view}, {piece} : {_view(shape)} -> {_part(shape)}"
        )
        return part

    def load(self, shape: tuple[int, int]) -> None:
        part, name = self.window(shape), self.tile(shape)
        self.lines.append(f"pto.tload ins({part} : {_part(shape)}) outs({name} : {_tile(shape)})")
        self.keep(name, shape)

    def keep(self, name: str, shape: tuple[int, int]) -> None:
        self.tiles = [*self.tiles, (name, shape)][-_RECENT:]

    def compute(self, shape: tuple[int, int]) -> None:
        known, rng = [name for name, size in self.tiles if size == shape], self.rng
        many, name = rng.random() < 0.6, self.tile(shape)
        sources = [rng.choice(known) for _ in range(2 if many else 1)]
        types = ", ".join([_tile(shape)] * len(sources))
        word = rng.choice(_BINARY if many else _UNARY)
        self.lines.append(
            f"pto.{word} ins({', '.join(sources)} : {types}) outs({name} : {_tile(shape)})"
        )
        self.keep(name, shape)

    def store(self, shape: tuple[int, int]) -> None:
        known = [name for name, size in self.tiles if size == shape]
        part, name = self.window(shape), self.rng.choice(known)
        self.lines.append(f"pto.tstore ins({name} : {_tile(shape)}) outs({part} : {_part(shape)})")


def _tile(shape: tuple[int, int]) -> str:
    return f"!pto.tile_buf<vec, {shape[0]}x{shape[1]}xf32>"


def _view(shape: tuple[int, int]) -> str:
    return f"!pto.tensor_view<{shape[0]}x{shape[1]}xf32>"


def _part(shape: tuple[int, int]) -> str:
    return f"!pto.partition_tensor_view<{shape[0]}x{shape[1]}xf32>"


def random_program(seed: int, steps: int = 32, turns: int = 0) -> tuple[str, list[tuple[int, int]]]:
    """The text, and the shapes of its arrays; with turns, all steps are in a loop."""
    draft = Draft(random.Random(seed))
    for _ in range(steps):
        kind = draft.rng.random()
        if kind < 0.35 or not draft.tiles:
            draft.load(draft.rng.choice(_SIZES))
        else:
            shape = draft.rng.choice(draft.tiles)[1]
            (draft.compute if kind < 0.7 else draft.store)(shape)
    for shape in {size: None for _, size in draft.tiles}:
        draft.store(shape)
    if turns:
        draft.lines = [f"scf.for %i = %c0 to %c{turns} step %c1 {{", *draft.lines, "}"]
    sizes = sorted({0, 1, turns} | {n for shape in draft.shapes for n in shape})
    constants = [f"%c{n} = arith.constant {n} : index" for n in sizes]
    params = ", ".join(f"%a{n}: !pto.ptr<f32>" for n in range(len(draft.shapes)))
    body = "\n    ".join([*constants, *draft.lines, "return"])
    head = 'module attributes {pto.target_arch = "a3"} {'
    return f"{head}\n  func.func @kernel({params}) {{\n    {body}\n  }}\n}}\n", draft.shapes


# ---- compilers


def by_ptoas(ptoas: Path, text: str, options: Sequence[str]) -> str:
    """The program as PTOAS places and orders it."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "in.pto"
        file.write_text(text)
        command = [str(ptoas), "--pto-arch=a3", *options, "--emit-pto-ir", str(file), "-o", "-"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr.strip()[:400])
    return done.stdout


def by_pto(text: str, ptoas: Path | None = None) -> str:
    """The program as `pto sync` places and orders it; with a path also through PTOAS, as it is."""
    chip = choose(device_name=DEVICE).profile
    made = print_module(addressed(insert(parse(text), chip), chip))
    return made if ptoas is None else by_ptoas(ptoas, made, ("--pto-level=level3",))


def placed(text: str) -> str:
    """The program with the addresses of `pto plan`, without flags."""
    return print_module(addressed(parse(text), choose(device_name=DEVICE).profile))


# ---- verdicts


@dataclass
class Verdict:
    races: list[str]  # what the sanitizer says, its errors about order
    schedule: str  # one that gives other bytes than program order, or ""
    waits: int
    barriers: int
    bytes: int  # of UB, up to the end of the last tile


def judged(text: str, shapes: Sequence[tuple[int, int]], seed: int = 0) -> Verdict:
    module = parse(text)
    watched = sanitize(module, args=_arrays(shapes, seed), profile="a2a3")
    races = [str(d.message) for d in watched.findings if d.severity == "error" and "-R" in d.code]
    names = [op.name for op in module.walk()]
    expected = _result(module, shapes, seed, "program")
    others = (s for s in SCHEDULES if _result(module, shapes, seed, s) != expected)
    waits, barriers = names.count("pto.wait_flag"), names.count("pto.barrier")
    return Verdict(races, next(others, ""), waits, barriers, _reach(module))


def _reach(module: Module) -> int:
    """The end of the last tile in UB."""
    ends = [0]
    for op in module.walk():
        place = op.operand("addr") if op.traits.allocates else None
        if place is not None and isinstance(type := op.results[0].type, TileBuf):
            number = getattr(place.owner, "attrs", {}).get("value")
            ends.append(type.tile.nbytes + (number.value if isinstance(number, Int) else 0))
    return max(ends)


def _arrays(shapes: Sequence[tuple[int, int]], seed: int) -> list[Any]:
    rng = np.random.default_rng(seed)
    return [rng.uniform(-2, 2, shape).astype(np.float32) for shape in shapes]


def _result(module: Module, shapes: Sequence[tuple[int, int]], seed: int, schedule: str) -> bytes:
    arrays = _arrays(shapes, seed)
    launch(module, args=arrays, profile="a2a3", schedule=schedule)
    return b"".join(each.tobytes() for each in arrays)


# ---- the table


def main(arguments: Sequence[str]) -> int:
    if not arguments:
        print("usage: python -m bench.sync_study PTOAS [COUNT] [SEED] [TURNS]")
        print("PTOAS is the path of a built ptoas; without one there is nothing to compare with.")
        return 2
    ptoas, count = Path(arguments[0]), int(arguments[1]) if len(arguments) > 1 else 40
    first = int(arguments[2]) if len(arguments) > 2 else 1
    turns = int(arguments[3]) if len(arguments) > 3 else 0
    found: dict[str, list[Verdict]] = {}
    for seed in range(first, first + count):
        text, shapes = random_program(seed, 12 if turns else 32, turns)
        for way, made in compiled(ptoas, text).items():
            verdict = judged(made, shapes, seed)
            found.setdefault(way, []).append(verdict)
            if verdict.races or verdict.schedule:
                print(f"{seed}: {way}: {verdict.schedule or 'no schedule'}: {verdict.races[:1]}")
    print("| orders by | programs | race | other bytes under a schedule | waits | barriers | UB |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for way, verdicts in found.items():
        n = len(verdicts)
        races, differ = (sum(bool(x) for x in xs) for xs in zip(*map(_both, verdicts), strict=True))
        means = (
            sum(v.waits for v in verdicts) / n,
            sum(v.barriers for v in verdicts) / n,
            sum(v.bytes for v in verdicts) / n / 1024,
        )
        waits, barriers, room = (f"{mean:.1f}" for mean in means)
        print(f"| {way} | {n} | {races} | {differ} | {waits} | {barriers} | {room} KB |")
    return 0


def _both(verdict: Verdict) -> tuple[bool, bool]:
    return bool(verdict.races), bool(verdict.schedule)


def compiled(ptoas: Path, text: str) -> dict[str, str]:
    """The program by every compiler that takes it."""
    made: dict[str, str] = {}
    for way, options in WAYS.items():
        try:
            made[way] = by_ptoas(ptoas, text, options)
            own = by_ptoas(ptoas, placed(text), ("--pto-level=level3", *options))
            made[f"{way}, addresses of pto plan"] = own
        except (PtoError, RuntimeError) as error:
            print(f"{way} stops: {error}")
    try:
        made["pto sync"] = by_pto(text)
        made["pto sync, then PTOAS"] = by_pto(text, ptoas)
    except (PtoError, RuntimeError) as error:
        print(f"pto sync stops: {error}")
    return made


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
