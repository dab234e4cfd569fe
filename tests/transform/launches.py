"""Runs of a program as it is and after passes of a schedule, and natural kernels to try them on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import pto
from pto.ir.graph import Module, Operation
from pto.ir.text.printer import print_module
from pto.run.launch.host import launch
from pto.transform.pass_result import PassResult
from pto.transform.schedule import ProgramLaunch, scheduled, step
from pto.transform.strides import counted_loops

ENGINES = ("reference", "jit")
Args = Sequence[Any]


@pto.kernel(profile="a2a3")
def gemm(
    a: pto.Global[pto.f16],
    b: pto.Global[pto.f16],
    c: pto.Global[pto.f32],
    m: int = 32,
    n: int = 48,
    k: int = 16,
) -> None:
    columns = pto.cdiv(b.shape[1], n)
    i, j = pto.block_idx() // columns * m, pto.block_idx() % columns * n
    acc = pto.zeros(m, n, pto.f32, role="acc")
    for at in pto.range(0, a.shape[1], k):
        acc += pto.load(a[i:, at:], m, k) @ pto.load(b[at:, j:], k, n)
    pto.store(c[i:, j:], acc)


@pto.kernel(profile="a2a3")
def rows(
    x: pto.Global[pto.f32], y: pto.Global[pto.f32], n: pto.Scalar[pto.i32], step: int = 8
) -> None:
    """Every block walks through its share of n rows, a number that is known when it runs."""
    for i in pto.range(pto.block_idx() * step, n, pto.block_num() * step):
        tile = pto.load(x[i:, :], step, 64)
        pto.store(y[i:, :], tile - pto.max(tile, axis=1))


@pto.kernel(profile="a2a3")
def tiles(x: pto.Global[pto.f32], y: pto.Global[pto.f32], step: int = 8) -> None:
    """Every block has its own rows."""
    i = pto.block_idx() * step
    tile = pto.load(x[i:, :], step, 64)
    pto.store(y[i:, :], pto.exp(tile) * tile)


def matrices(m: int, k: int, n: int) -> list[Any]:
    random = np.random.default_rng(m + 2 * k + 3 * n)
    a, b = random.standard_normal((m, k)), random.standard_normal((k, n))
    return [a.astype(np.float16), b.astype(np.float16), random.standard_normal((m, n), np.float32)]


def scheduled_by(
    module: Module, blocks: int, passes: str
) -> tuple[ProgramLaunch, list[PassResult]]:
    """The program after passes given as text: `longer=4 slots=2`."""
    launch, changes = scheduled(
        ProgramLaunch(module, blocks), [step(word) for word in passes.split()]
    )
    return launch, [change for each in changes for change in each]


def results(module: Module, args: Args, blocks: int, engine: str) -> list[bytes]:
    """The bytes of all arrays after a run on copies."""
    copies = [each.copy() if isinstance(each, np.ndarray) else each for each in args]
    launch(module, args=copies, blocks=blocks, engine=engine, coverage=False)
    return [each.tobytes() for each in copies if isinstance(each, np.ndarray)]


def has_equal_bits(before: Module, after: ProgramLaunch, args: Args, blocks: int) -> bool:
    """True if both programs leave the same bytes, on both engines."""
    wanted = results(before, args, blocks, "reference")
    return all(results(after.module, args, after.blocks, engine) == wanted for engine in ENGINES)


def count(module: Module, name: str) -> int:
    """How often an operation occurs in the text of a program."""
    return print_module(module).count(f"pto.{name} ")


def loops(module: Module) -> list[Operation]:
    """The counted loops of a program with one function, inner ones first."""
    (function,) = module.functions()
    return counted_loops(function)
