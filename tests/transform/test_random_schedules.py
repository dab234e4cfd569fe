"""Random natural kernels under random schedules: equal bits on both engines, and proved order."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pytest

from pto.ir.graph import Module
from pto.observe.proofs import prove
from pto.observe.sanitize import sanitize
from pto.plan.calls import entry_functions
from tests.transform.launches import gemm, has_equal_bits, matrices, rows, scheduled_by, tiles


def product(random: Random) -> tuple[Module, list[Any], int]:
    """A product of matrices whose sizes need not be multiples of the tiles."""
    m, n, k = (16 * random.randint(1, 3) for _ in range(3))
    tall, wide = random.randint(1, 3 * m), random.randint(1, 3 * n)
    args = matrices(tall, random.choice((k * random.randint(1, 7), random.randint(1, 99))), wide)
    return gemm.module(*args, m, n, k), args, -(-tall // m) * -(-wide // n)


def elements(random: Random, *counts: int) -> list[Any]:
    kinds = np.random.default_rng(random.randrange(99))
    return [kinds.standard_normal((count, 64)).astype(np.float32) for count in counts]


def walked(random: Random) -> tuple[Module, list[Any], int]:
    """Rows that blocks share, some of them written where they were read."""
    step, n = random.choice((4, 8, 12)), random.randint(0, 90)
    x, y = elements(random, 104, 104)
    args = [x, x if random.random() < 0.3 else y, n]
    return rows.module(*args, step), args, random.randint(1, 6)


def single(random: Random) -> tuple[Module, list[Any], int]:
    step, count = random.choice((4, 8, 12)), random.randint(1, 90)
    args = elements(random, count, count)
    return tiles.module(*args, step), args, -(-count // step)


def schedule(random: Random, blocks: int) -> str:
    numbers = {
        "order": random.randint(2, 3),
        "persistent": random.randint(1, blocks),
        "longer": random.randint(2, 5),
        "slots": random.randint(2, 4),
    }
    return " ".join(f"{name}={n}" for name, n in numbers.items() if random.random() < 0.7)


@pytest.mark.parametrize("seed", range(24))
def test_random_schedules(seed: int):
    random = Random(seed)
    module, args, blocks = random.choice((product, product, walked, single))(random)
    after, _ = scheduled_by(module, blocks, schedule(random, blocks))
    assert has_equal_bits(module, after, args, blocks)
    functions = entry_functions(after.module, None)
    proofs = {a.question: a.verdict for _, a in prove(after.module, functions)}
    assert (proofs["order"], proofs["deadlock"]) == ("proved", "proved")
    if seed % 4 == 0:
        assert not sanitize(after.module, args=args, blocks=after.blocks).findings
