"""Stages across cores: what moved, by counting pushes, pops and loops; equal bits, order, deadlock;
and what keeps a loop in one stage. Conversions as one row."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pytest

import pto
from pto.ir.copied import copied
from pto.ir.graph import Module, Operation
from pto.isa.row.types import TileBuf
from pto.isa.scalar.structure import FOR
from pto.observe.proofs import prove
from pto.observe.sanitize import sanitize
from pto.observe.timing import time
from pto.plan.calls import entry_functions
from pto.plan.sync import insert
from pto.target.profile import profile
from pto.transform.pass_result import PassResult
from pto.transform.schedule import ProgramLaunch, scheduled, step
from pto.transform.separate import Separated, separate
from tests.transform.both_cores import (
    FLOAT,
    HALF,
    NPUS,
    Case,
    attention,
    attention_case,
    delta_rule_case,
    empty,
    function_of,
    halves,
    has_equal_bits,
    mlp_case,
    quantised_case,
)


def staged(case: Case, name: str, stages: int) -> tuple[Module, Separated, PassResult]:
    """The program of a case, its two functions with a loop in stages, and what the pass says."""
    kernel, args, _, blocks, _ = case
    module = kernel.on(name).module(*args)
    launch, ((result,),) = scheduled(ProgramLaunch(module, blocks), [step(f"stages={stages}")])
    (function,) = launch.functions
    return module, separate(launch.module, profile(name), [function]).required(), result


def kinds(ops: list[Operation]) -> list[str]:
    short = {"tpush_to_aiv": "push", "tpop_from_aiv": "pop", "tpush_to_aic": "send"}
    names = [op.name.removeprefix("pto.") for op in ops]
    return [short[name] for name in names if name in short]


def loops(function: Operation) -> list[list[str]]:
    """What each loop of a function passes between the cores, in order."""
    return [kinds(list(op.walk())) for op in function.walk() if op.row is FOR]


@pytest.mark.parametrize("name", NPUS)
@pytest.mark.parametrize("stages", [2, 3])
def test_the_cube_pushes_scores_ahead(name: str, stages: int):
    case = attention_case(64, 384, causal=False)
    _, split, result = staged(case, name, stages)
    assert result.is_done
    cube = function_of(split, "cube")
    # scores alone; the scores of a later chunk before the weights of this one; the weights alone
    assert loops(cube) == [["push"], ["push", "pop", "push"], ["pop", "push"]]
    queues = {str(op.attrs.get("id")) for op in cube.walk() if "push" in op.name}
    assert len(queues) == 2  # scores and products have a queue each


@pytest.mark.parametrize("name", NPUS)
@pytest.mark.parametrize("stages", [2, 3, 4])
@pytest.mark.parametrize("keys", [64, 128, 192, 320])  # fewer iterations than stages, and more
def test_bits_order_and_deadlock(name: str, stages: int, keys: int):
    case = attention_case(64, keys, causal=False)
    module, split, result = staged(case, name, stages)
    assert result.is_done
    arrays, blocks = [a for a in case[1] if isinstance(a, np.ndarray)], case[3]
    assert has_equal_bits(module, split, arrays, blocks)
    if keys != 320:
        return
    proofs = {a.question: a.verdict for _, a in prove(split.module, _entries(split))}
    assert (proofs["order"], proofs["deadlock"]) == ("proved", "proved")
    synced = insert(split.module, profile(name))
    given = split.arguments(arrays, blocks)
    found = sanitize(synced, entry=split.entry, args=given, blocks=blocks, profile=name)
    assert not found.findings


def _entries(split: Separated) -> list[Operation]:
    return entry_functions(split.module, split.entry)


@pytest.mark.parametrize("name", NPUS)
@pytest.mark.parametrize("rows", [32, 64, 160])
def test_trip_counts_of_the_run(name: str, rows: int):
    """Block i of causal attention has i + 1 iterations."""
    case = attention_case(rows, rows, causal=True)
    module, split, result = staged(case, name, 3)
    assert result.is_done
    arrays, blocks = [a for a in case[1] if isinstance(a, np.ndarray)], case[3]
    assert has_equal_bits(module, split, arrays, blocks)
    proofs = {a.question: a.verdict for _, a in prove(split.module, _entries(split))}
    assert (proofs["order"], proofs["deadlock"]) == ("proved", "proved")  # for any trip count


@pto.kernel
def counted(x: HALF, w: HALF, y: FLOAT, trips: pto.Scalar[pto.i32]) -> None:
    """A loop of as many iterations as the launch says, none included."""
    out = pto.zeros(32, 32, pto.f32)
    for _ in pto.range(pto.block_idx(), trips):
        hidden = pto.max(pto.load(x, 32, 32) @ pto.load(w, 32, 32), 0.0)
        out += hidden.to(pto.f16) @ pto.load(w, 32, 32)
    pto.store(y, out)


@pytest.mark.parametrize("trips", [0, 1, 2, 3, 5])
def test_no_iterations_and_odd_numbers_of_them(trips: int):
    x, w = halves(3, (32, 32), (32, 32))
    args: list[Any] = [x, w, np.full((32, 32), np.nan, np.float32), trips]
    module = counted.on("a2a3").module(*args)
    launch, ((result,),) = scheduled(ProgramLaunch(module, 1), [step("stages=3")])
    assert result.is_done
    split = separate(launch.module, profile("a2a3"), launch.functions).required()
    outputs = [_run(copied(module), None, args), _run(split.module, split.entry, args, split)]
    hidden = np.maximum(x.astype(float) @ w.astype(float), 0).astype(np.float16).astype(float)
    np.testing.assert_allclose(outputs[0], trips * (hidden @ w.astype(float)), rtol=2e-3, atol=1e-4)
    assert outputs[0].tobytes() == outputs[1].tobytes()


def _run(
    module: Module, entry: str | None, args: list[Any], split: Separated | None = None
) -> np.ndarray[Any, Any]:
    from pto.run.launch.host import launch

    given = [a.copy() if isinstance(a, np.ndarray) else a for a in args]
    passed = given if split is None else split.arguments(given, 1)
    launch(module, args=passed, blocks=1, engine="reference", entry=entry, coverage=False)
    return given[2]


@pytest.mark.parametrize(
    ("case", "reason"),
    [
        (quantised_case(64, 128), "the cube has no work before the tile that it waits for"),
        (delta_rule_case(96), "one stage"),
    ],
)
def test_why_a_loop_has_one_stage(case: Case, reason: str):
    module, split, result = staged(case, "a2a3", 2)
    assert not result.is_done
    assert reason in result.words
    arrays = [a for a in case[1] if isinstance(a, np.ndarray)]
    assert has_equal_bits(module, split, arrays, case[3])


def test_stages_save_time_and_a_program_for_one_core_has_none():
    case = mlp_case(64, 512)
    module, split, result = staged(case, "a2a3", 2)
    arrays = [a for a in case[1] if isinstance(a, np.ndarray)]
    assert result.is_done
    assert has_equal_bits(module, split, arrays, case[3])
    us = [
        time(each, args=args, entry=entry, blocks=2, profile="a2a3", device="910b1").us
        for each, args, entry in (
            (module, arrays, None),
            (split.module, split.arguments(arrays, 2), split.entry),
        )
    ]
    assert us[1] < us[0]
    launch = ProgramLaunch(case[0].on("cpu").module(*case[1]), 1)
    _, ((refused,),) = scheduled(launch, [step("stages=2")])
    assert not refused.is_done


def test_tiles_are_converted_as_one_row():
    case = attention_case(64, 128, causal=False)
    kernel, args, *_ = case
    module = kernel.on("a2a3").module(*args)
    split = separate(module, profile("a2a3"), list(module.functions())).required()
    tiles = [
        [v.type.tile.shape for v in op.operands if isinstance(v.type, TileBuf)]
        for op in function_of(split, "vector").walk()
        if op.name == "pto.tcvt"
    ]
    assert tiles == [[(1, 16 * 64)] * 2]  # half of 32 rows of 64 weights


@pytest.mark.parametrize("seed", range(6))
def test_random_attention(seed: int):
    random = Random(seed)
    m, n, d = random.choice((32, 64)), 32 * random.randint(1, 3), 64
    rows, keys = m * random.randint(1, 2), n * random.randint(1, 5)
    causal, name = random.random() < 0.4, random.choice(NPUS)
    q, k, v = halves(seed, (rows, d), (keys, d), (keys, d))
    if causal:
        n, k, v = 32, *halves(seed + 9, (rows, d), (rows, d))
    case = attention, [q, k, v, empty(rows), causal, m, n, d], 3, rows // m, empty(rows)
    module, split, result = staged(case, name, random.randint(2, 4))
    assert result.is_done, result.words
    assert has_equal_bits(module, split, [a for a in case[1] if isinstance(a, np.ndarray)], case[3])
