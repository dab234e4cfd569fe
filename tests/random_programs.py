"""Random programs on both engines: the same bits, or the same finding.

    python -m tests.random_programs 20000 [--seed S] [--optimised N]

runs many and says how often each feature was drawn. Of vector programs, `tests/random_draft.py`
draws operands from a few tiles; `tests/random_cube.py` draws products, images and queues;
`tests/random_values.py` draws registers, masks, logical vectors and scalars. LLVM optimises one
program in ten, as for users; the others skip that, which takes most of the time.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from pto.core.errors import PtoError
from pto.ir.graph import Module
from pto.ir.text.printer import print_module
from pto.run.jit.llvm import cache, native
from pto.run.launch.host import launch
from tests.random_cube import CubeDraft, queue_program
from tests.random_draft import Draft
from tests.random_values import ValueDraft
from tests.random_writer import Program

_EVERY = 10  # programs for one that LLVM optimises


def drawn(seed: int) -> Program:
    """The program of a number."""
    rng = random.Random(seed)
    kind = rng.random()
    if kind < 0.03:
        return queue_program(rng)
    if kind > 0.75:
        return ValueDraft(rng).build()
    return (CubeDraft if kind < 0.18 else Draft)(rng).build()


def outcome(module: Module, args: list[Any], engine: str, blocks: int = 1) -> tuple[str, Any]:
    """What a run gives: bytes, any NaN as good as another, or its finding."""
    own = [a.copy() if isinstance(a, np.ndarray) else a for a in args]
    try:
        with np.errstate(all="ignore"):
            launch(module, args=own, engine=engine, blocks=blocks, check=False)
    except PtoError as error:
        return "finding", error.code
    arrays = [a for a in own if isinstance(a, np.ndarray)]
    for array in arrays:
        if (nan := array != array).any():
            array[nan] = np.nan
    return "bytes", [a.tobytes() for a in arrays]


def _differ_in_nans(first: tuple[str, Any], second: tuple[str, Any]) -> bool:
    """True if all that differs is the payload of f16 NaNs.

    A tile that was never written, or that `tsubview` lays on a window, shows the bytes of another
    tile, which may have another type: two f16 NaNs, whose payload is not defined, are an ordinary
    number as f32.
    """
    if first[0] != "bytes" or second[0] != "bytes":
        return False
    changed = [(x, y) for x, y in zip(first[1], second[1], strict=True) if x != y]
    if any(len(x) % 2 for x, _ in changed):
        return False
    for pair in changed:
        a, b = (np.frombuffer(each, np.float16) for each in pair)
        differ = a.view(np.uint16) != b.view(np.uint16)
        if not (np.isnan(a) & np.isnan(b))[differ].all():
            return False
    return True


def attempt(seed: int) -> tuple[str, str, set[str]]:
    """One program: what became of it, its text where that is wrong, and its features."""
    program = drawn(seed)
    given = program.module, program.args
    try:
        first, second = (outcome(*given, e, program.blocks) for e in ("reference", "jit"))
    except Exception:
        trace = traceback.format_exc(limit=-4)
        return "crash", f"{print_module(program.module)}\n{trace}", program.features
    is_seen = bool({"unwritten tile", "windows"} & program.features)
    if first != second and not (is_seen and _differ_in_nans(first, second)):
        shown = [o if o[0] == "finding" else "bytes" for o in (first, second)]
        return "disagree", f"{print_module(program.module)}\n{shown}", program.features
    return ("agree" if first[0] == "bytes" else f"both {first[1]}"), "", program.features


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


def run(seeds: range, every: int = _EVERY) -> Iterator[tuple[int, str, str, set[str]]]:
    """The outcome of each number."""
    for seed in seeds:
        if seed % every == 0:
            yield seed, *attempt(seed)
        else:
            with quickly():
                yield seed, *attempt(seed)


def _shown(counts: Counter[str]) -> str:
    return ", ".join(f"{name} {count}" for name, count in counts.most_common())


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.random_programs")
    parser.add_argument("count", type=int, help="programs to run")
    parser.add_argument("--seed", type=int, default=0, help="number of the first one")
    parser.add_argument("--optimised", type=int, default=_EVERY, help="one in so many")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    outcomes, features, start = Counter[str](), Counter[str](), time.process_time()
    seeds = range(given.seed, given.seed + given.count)
    for done, (seed, what, why, shown) in enumerate(run(seeds, given.optimised), 1):
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
