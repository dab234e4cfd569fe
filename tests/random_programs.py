"""Random programs on both engines: the same bits, or the same finding.

    python -m tests.random_programs 20000 [--seed S] [--optimised N]

runs many and says how often each feature was drawn. Of vector programs, `tests/random_draft.py`
draws operands from a few tiles; `tests/random_cube.py` draws products and images,
`tests/random_agents.py` both sides of a core, `tests/random_values.py` registers, masks, logical
vectors and scalars, `tests/random_pointers.py` DMA and cube instructions by pointer, and
`tests/random_items.py` SIMT work items. LLVM optimises one program in ten, as for users; the others
skip that, which takes most of the time.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from pto.core import disk_cache as cache
from pto.core.errors import PtoError
from pto.core.memory import Space
from pto.ir.graph import Module
from pto.ir.text.printer import print_module
from pto.run.jit.llvm import native
from pto.run.launch.host import launch
from pto.run.launch.prepared import LaunchGrid
from pto.run.machine.core import Cluster
from tests import agreement
from tests.random_agents import agents_program
from tests.random_cube import CubeDraft
from tests.random_draft import Draft
from tests.random_items import item_program
from tests.random_pointers import PointerDraft
from tests.random_values import ValueDraft
from tests.random_writer import Program

_EVERY = 10  # programs for one that LLVM optimises


# name -> what draws a program of the kind, and how many of 1000 programs are of the kind
KINDS: dict[str, tuple[Callable[[random.Random], Program], int]] = {
    "queues": (agents_program, 30),
    "cube": (lambda rng: CubeDraft(rng).build(), 150),
    "tiles": (lambda rng: Draft(rng).build(), 470),
    "values": (lambda rng: ValueDraft(rng).build(), 250),
    "pointers": (lambda rng: PointerDraft(rng).build(), 100),
    "items": (item_program, 100),
}


def drawn(seed: int, kind: str = "") -> Program:
    """The program of a number, of one of `KINDS`."""
    rng = random.Random(seed)
    chosen = rng.choices(list(KINDS), [share for _, share in KINDS.values()])[0]
    return KINDS[kind or chosen][0](rng)


def outcome(
    module: Module, args: list[Any], engine: str, blocks: int = 1, *, buffers: bool = False
) -> tuple[str, Any]:
    """What a run gives: bytes, of buffers too if wanted, or its finding.

    In arrays one NaN is as good as another.
    """
    own = [a.copy() if isinstance(a, np.ndarray) else a for a in args]
    try:
        with np.errstate(all="ignore"), _cores() as cores:
            launch(module, args=own, engine=engine, blocks=blocks, check=False)
    except PtoError as error:
        return "finding", error.code
    arrays = [a for a in own if isinstance(a, np.ndarray)]
    for array in arrays:
        if (nan := array != array).any():
            array[nan] = np.nan
    local = [
        core.memory(space).data
        for cluster in cores[-1:]
        for core in cluster.agents
        for space in (Space if buffers else ())
        if space.is_local and getattr(core.profile.buffers, space.value)
    ]
    return "bytes", [a.tobytes() for a in (*arrays, *local)]


@contextmanager
def _cores() -> Iterator[list[Cluster]]:
    """The cores that launches make inside."""
    made: list[Cluster] = []
    plain = LaunchGrid.cluster

    def cluster(self: LaunchGrid, block: int = 0) -> Cluster:
        made.append(plain(self, block))
        return made[-1]

    LaunchGrid.cluster = cluster  # type: ignore[method-assign]
    try:
        yield made
    finally:
        LaunchGrid.cluster = plain  # type: ignore[method-assign]


def _differ_in_nans(first: tuple[str, Any], second: tuple[str, Any]) -> bool:
    """True if all that differs is the payload of NaNs.

    A tile that was never written, or that `tsubview` lays on a window, shows the bytes of another
    tile, which may have another type: two f16 NaNs, whose payload is not defined, are an ordinary
    number as f32. Bytes of a buffer have no type.
    """
    if first[0] != "bytes" or second[0] != "bytes":
        return False
    pairs = zip(first[1], second[1], strict=True)
    return not any(
        agreement.different(*(np.frombuffer(each, np.uint8) for each in pair)).any()
        for pair in pairs
    )


def attempt(seed: int, kind: str = "") -> tuple[str, str, set[str]]:
    """One program: what became of it, its text where that is wrong, and its features."""
    program = drawn(seed, kind)
    features, buffers = program.features, "buffers" in program.features
    try:
        first, second = (
            outcome(program.module, program.args, e, program.blocks, buffers=buffers)
            for e in ("reference", "jit")
        )
    except Exception:
        trace = traceback.format_exc(limit=-4)
        return "crash", f"{print_module(program.module)}\n{trace}", features
    is_seen = bool({"unwritten tile", "windows", "buffers"} & features)
    if first != second and not (is_seen and _differ_in_nans(first, second)):
        shown = [o if o[0] == "finding" else "bytes" for o in (first, second)]
        return "disagree", f"{print_module(program.module)}\n{shown}", features
    return ("agree" if first[0] == "bytes" else f"both {first[1]}"), "", features


@contextmanager
def quickly() -> Iterator[None]:
    """Compiled code as it is emitted, not optimised by LLVM, and not kept on disk."""
    kept = native.Target.optimises, cache.load, cache.store
    native.Target.optimises = False
    cache.load, cache.store = (lambda name: None), (lambda name, image: None)
    try:
        yield
    finally:
        native.Target.optimises, cache.load, cache.store = kept


def run(
    seeds: range, every: int = _EVERY, kind: str = ""
) -> Iterator[tuple[int, str, str, set[str]]]:
    """The outcome of each number."""
    for seed in seeds:
        if seed % every == 0:
            yield seed, *attempt(seed, kind)
        else:
            with quickly():
                yield seed, *attempt(seed, kind)


def _shown(counts: Counter[str]) -> str:
    return ", ".join(f"{name} {count}" for name, count in counts.most_common())


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.random_programs")
    parser.add_argument("count", type=int, help="programs to run")
    parser.add_argument("--seed", type=int, default=0, help="number of the first one")
    parser.add_argument("--optimised", type=int, default=_EVERY, help="one in so many")
    parser.add_argument("--kind", choices=KINDS, default="", help="only programs of this kind")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    outcomes, features, start = Counter[str](), Counter[str](), time.process_time()
    seeds = range(given.seed, given.seed + given.count)
    for done, (seed, what, why, shown) in enumerate(run(seeds, given.optimised, given.kind), 1):
        outcomes[what] += 1
        features.update(shown)
        if why:
            print(f"seed {seed}: {what}\n{why}", flush=True)
        if done % 500 == 0:
            print(
                f"{done} programs, {time.process_time() - start:.0f} s: {_shown(outcomes)}",
                flush=True,
            )
    print(f"outcomes: {_shown(outcomes)}\nfeatures: {_shown(features)}")
    return 1 if outcomes["disagree"] or outcomes["crash"] else 0


if __name__ == "__main__":
    sys.exit(main())
