"""`pto sync` against the least that bytes ask for: no hand-written order can be shorter."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pto
from examples import gemm_double_buffered as gemm_by_hand
from examples.flash_attention import CHUNK, DEPTH, ROWS, SLOT, SLOTS, flash_attention
from pto import isa
from pto.ir.text.parser import parse
from pto.ir.text.printer import print_module
from pto.observe import sanitize
from pto.plan.sync import insert
from pto.run.launch.arrays import copied
from pto.run.launch.host import launch
from pto.run.order.resolve import is_ordering
from pto.target.profile import profile as find
from tests.plan.paths import least, with_flags

X = pto.Global[pto.f32]


@pto.kernel(profile="a2a3")
def single_buffer(x: X, y: X) -> None:
    t = pto.tile(16, 64, pto.f32)
    for i in pto.range(4):
        isa.tload(t, x[i * 16 : i * 16 + 16, :])
        isa.tadds(t, t, 1.0)
        isa.tstore(y[i * 16 : i * 16 + 16, :], t)


@pto.kernel(profile="a2a3")
def in_and_out(x: X, y: X) -> None:
    t, u = pto.tile(16, 64, pto.f32), pto.tile(16, 64, pto.f32)
    for i in pto.range(4):
        isa.tload(t, x[i * 16 : i * 16 + 16, :])
        isa.tadds(u, t, 1.0)
        isa.tstore(y[i * 16 : i * 16 + 16, :], u)


@pto.kernel(profile="a2a3")
def double_buffer(x: X, y: X) -> None:
    tiles = [(pto.tile(16, 64, pto.f32), pto.tile(16, 64, pto.f32)) for _ in range(2)]
    for i in pto.range(2):
        for n, (t, u) in enumerate(tiles):
            at = (i * 2 + n) * 16
            isa.tload(t, x[at : at + 16, :])
            isa.tadds(u, t, 1.0)
            isa.tstore(y[at : at + 16, :], u)


@pto.kernel(profile="a2a3")
def two_inputs(x: X, y: X) -> None:
    a, b, c = (pto.tile(16, 64, pto.f32) for _ in range(3))
    for i in pto.range(4):
        isa.tload(a, x[i * 16 : i * 16 + 16, :])
        isa.tload(b, x[48 - i * 16 : 64 - i * 16, :])
        isa.tadd(c, a, b)
        isa.tstore(y[i * 16 : i * 16 + 16, :], c)


@pto.kernel(profile="a2a3")
def twelve_buffers(x: X, y: X) -> None:
    """All in flight at once: more than there are ids between two pipes."""
    tiles = [pto.tile(4, 64, pto.f32) for _ in range(12)]
    for n, t in enumerate(tiles):
        isa.tload(t, x[n * 4 : n * 4 + 4, :])
    for t in tiles:
        isa.tadds(t, t, 1.0)
    for n, t in enumerate(tiles):
        isa.tstore(y[n * 4 : n * 4 + 4, :], t)


@pto.kernel(profile="a2a3")
def conditional_store(x: X, y: X) -> None:
    t, u = pto.tile(16, 64, pto.f32), pto.tile(16, 64, pto.f32)
    for i in pto.range(4):
        isa.tload(t, x[i * 16 : i * 16 + 16, :])
        isa.tadds(u, t, 1.0)
        if i == 3:
            isa.tstore(y[i * 16 : i * 16 + 16, :], u)


@pto.kernel(profile="a2a3")
def every_second_store(x: X, y: X) -> None:
    t = pto.tile(16, 64, pto.f32)
    for i in pto.range(4):
        isa.tload(t, x[i * 16 : i * 16 + 16, :])
        isa.tadds(t, t, 1.0)
        if i % 2 == 1:
            isa.tstore(y[i * 16 : i * 16 + 16, :], t)


@pto.kernel(profile="a2a3")
def two_ways(x: X, y: X) -> None:
    t, u = pto.tile(16, 64, pto.f32), pto.tile(16, 64, pto.f32)
    for i in pto.range(4):
        isa.tload(t, x[i * 16 : i * 16 + 16, :])
        if i % 2 == 1:
            isa.tadds(u, t, 1.0)
        else:
            isa.tmuls(u, t, 2.0)
        isa.tstore(y[i * 16 : i * 16 + 16, :], u)


@pto.kernel(profile="a2a3")
def once_around(x: X, y: X) -> None:
    """What the outer loop loads, the inner one uses; one buffer each."""
    t, u = pto.tile(16, 64, pto.f32), pto.tile(16, 64, pto.f32)
    for i in pto.range(2):
        isa.tload(t, x[i * 16 : i * 16 + 16, :])
        for j in pto.range(2):
            isa.tadds(u, t, 1.0)
            isa.tstore(y[(i * 2 + j) * 16 : (i * 2 + j) * 16 + 16, :], u)


@pto.kernel(profile="a2a3")
def nested(x: X, y: X) -> None:
    t = pto.tile(16, 64, pto.f32)
    for i in pto.range(2):
        for j in pto.range(2):
            at = (i * 2 + j) * 16
            isa.tload(t, x[at : at + 16, :])
            isa.tadds(t, t, 1.0)
            isa.tstore(y[at : at + 16, :], t)


@pto.kernel(profile="a2a3")
def nested_apart(x: X, y: X) -> None:
    """A sum that the inner loop adds to, stored by the outer one."""
    t, total = pto.tile(16, 64, pto.f32), pto.tile(16, 64, pto.f32)
    for i in pto.range(2):
        isa.tload(total, x[i * 16 : i * 16 + 16, :])
        for j in pto.range(3):
            isa.tload(t, x[j * 16 : j * 16 + 16, :])
            isa.tadd(total, total, t)
        isa.tstore(y[i * 16 : i * 16 + 16, :], total)


@pto.kernel(profile="a2a3")
def chain(x: X, y: X) -> None:
    t, u, v = (pto.tile(16, 64, pto.f32) for _ in range(3))
    isa.tload(t, x[0:16, :])
    isa.tload(u, x[16:32, :])
    isa.texp(t, t)
    isa.tadd(v, t, u)
    isa.tstore(y[0:16, :], v)
    isa.tmuls(u, u, 2.0)
    isa.tstore(y[16:32, :], u)


def vectors() -> list[Any]:
    return [np.zeros((64, 64), np.float32), np.zeros((64, 64), np.float32)]


H = pto.Global[pto.f16]


@pto.kernel(profile="a2a3")
def gemm(a: H, b: H, c: X) -> None:
    la, lb = pto.tile(16, 16, pto.f16, role="mat"), pto.tile(16, 16, pto.f16, role="mat")
    ra, rb = pto.tile(16, 16, pto.f16, role="left"), pto.tile(16, 16, pto.f16, role="right")
    acc = pto.tile(16, 16, pto.f32, role="acc")
    for k in pto.range(4):
        isa.tload(la, a[:, k * 16 : k * 16 + 16])
        isa.tload(lb, b[k * 16 : k * 16 + 16, :])
        isa.tmov(ra, la)
        isa.tmov(rb, lb)
        if k == 0:
            isa.tmatmul(acc, ra, rb)
        else:
            isa.tmatmul_acc(acc, acc, ra, rb)
    isa.tstore(c, acc)


@pto.kernel(profile="a2a3")
def gemm_double_buffered(a: H, b: H, c: X) -> None:
    sets = [
        (
            pto.tile(16, 16, pto.f16, role="mat"),
            pto.tile(16, 16, pto.f16, role="mat"),
            pto.tile(16, 16, pto.f16, role="left"),
            pto.tile(16, 16, pto.f16, role="right"),
        )
        for _ in range(2)
    ]
    acc = pto.tile(16, 16, pto.f32, role="acc")
    for i in pto.range(2):
        for n, (la, lb, ra, rb) in enumerate(sets):
            k = (i * 2 + n) * 16
            isa.tload(la, a[:, k : k + 16])
            isa.tload(lb, b[k : k + 16, :])
            isa.tmov(ra, la)
            isa.tmov(rb, lb)
            if n:
                isa.tmatmul_acc(acc, acc, ra, rb)
                continue
            if i == 0:
                isa.tmatmul(acc, ra, rb)
            else:
                isa.tmatmul_acc(acc, acc, ra, rb)
    isa.tstore(c, acc)


def matrices() -> list[Any]:
    return [
        np.zeros((16, 64), np.float16),
        np.zeros((64, 16), np.float16),
        np.zeros((16, 16), np.float32),
    ]


PROGRAMS = {
    kernel.name: (kernel, make)
    for kernel, make in [
        *((k, vectors) for k in (single_buffer, in_and_out, double_buffer, two_inputs)),
        *((k, vectors) for k in (twelve_buffers, conditional_store, nested, nested_apart, chain)),
        *((k, vectors) for k in (every_second_store, two_ways, once_around)),
        *((k, matrices) for k in (gemm, gemm_double_buffered)),
    ]
}


# Eight ids for twelve flags: four have to tell of two buffers each. A pipe that waits for two at a
# time begins one step later, and so does the next.
LATER = {"twelve_buffers": 2}


def test_there_are_twelve_and_more() -> None:
    assert len(PROGRAMS) >= 12


@pytest.mark.parametrize("profile", ["a2a3", "a5"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_inserted_flags_reach_the_least_there_can_be(name: str, profile: str) -> None:
    kernel, make = PROGRAMS[name]
    made = insert(kernel.module(*make()), find(profile))
    steps = least(made, make(), profile) + LATER.get(name, 0)
    assert with_flags(made, make(), profile) == steps
    found = sanitize(made, args=make(), profile=profile, check=False).findings
    assert [d for d in found if d.severity == "error"] == []
    assert "PIPE_ALL" not in print_module(made)


def test_flags_written_by_hand_take_no_less() -> None:
    """The example with flags by hand, and the same without them, on the same buffers."""
    kernel = gemm_by_hand.gemm_double_buffered
    size = 64
    args = [np.zeros((size, 4 * size), np.float16), np.zeros((4 * size, size), np.float16)]
    args.append(np.zeros((size, size), np.float32))
    text = print_module(kernel.module(*args))
    by_hand, bare = parse(text), parse(text)
    for op in [op for op in bare.walk() if is_ordering(op)]:
        assert op.parent is not None
        op.parent.ops.remove(op)
    made = insert(bare, find("a5"))
    assert with_flags(made, args, "a5") <= with_flags(by_hand, args, "a5")


def attention(profile: str) -> tuple[Any, list[Any]]:
    """Cube and vector side, which answer each other through queues."""
    shapes = [(ROWS, DEPTH), (DEPTH, 2 * CHUNK), (2 * CHUNK, DEPTH)]
    rng = np.random.default_rng(5)
    args: list[Any] = [rng.standard_normal(shape).astype(np.float16) for shape in shapes]
    args += [np.zeros((ROWS, DEPTH), np.float32), np.zeros(2 * SLOTS * SLOT // 4, np.float32)]
    return flash_attention.module(*args, profile == "a2a3"), args


@pytest.mark.parametrize("profile", ["a2a3", "a5"])
def test_what_a_queue_orders_needs_no_flag(profile: str) -> None:
    module, args = attention(profile)
    made = insert(module, find(profile))
    assert sanitize(made, args=copied(args), profile=profile, check=False).findings == ()
    steps = least(made, copied(args), profile)
    assert with_flags(made, copied(args), profile) == steps
    results: list[bytes] = []
    for schedule in ("program", "early", "late", "random:1", "random:2"):
        given = copied(args)
        launch(made, args=given, profile=profile, check=False, schedule=schedule)
        results.append(given[3].tobytes())
    assert len(set(results)) == 1


@pytest.mark.parametrize("profile", ["a2a3", "a5"])
def test_a_peer_that_pushes_before_it_pops_tells_nothing(profile: str) -> None:
    """The vector side sends weights before it has taken the scores: flags stay."""
    module, _ = attention(profile)
    text = print_module(module).splitlines()
    pop = next(n for n, line in enumerate(text) if "tpop_from_aic" in line)
    push = next(n for n, line in enumerate(text) if "tpush_to_aic" in line)
    answering = print_module(insert(module, find(profile)))
    text.insert(pop, text.pop(push))
    sent = text[pop].split("(")[1].split()[0]  # the tile that is pushed
    text.insert(pop, text.pop(next(n for n, line in enumerate(text) if f"{sent} = " in line)))
    greeting = print_module(insert(parse("\n".join(text)), find(profile)))
    cube = slice(0, answering.index("func.func @running_softmax"))
    there = slice(0, greeting.index("func.func @running_softmax"))
    assert greeting[there].count("set_flag") > answering[cube].count("set_flag")
