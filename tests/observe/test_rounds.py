"""Meetings and signals that come again are told apart: a later one orders nothing earlier.

Each fault stands beside a right twin that differs in nothing but the order it asks for.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pto
from pto import isa
from pto.observe import sanitize, watch


def _codes(kernel: Any, *args: Any, blocks: int = 2) -> set[str]:
    found = sanitize(kernel.module(*args), args=args, blocks=blocks, profile=kernel.profile)
    return {d.code for d in found.findings}


# ---- all cores meet


@pto.kernel(profile="a5")
def shifted(x: pto.Global[pto.f32]) -> None:
    """Each block takes the other's row; the store of one round meets the load of the next."""
    block = isa.get_block_idx()
    t = pto.tile(1, 64, pto.f32)
    for _ in pto.range(2):
        other = (block + 1) % 2
        isa.tload(t, x[other : other + 1, :])
        isa.syncall()
        isa.tstore(x[block : block + 1, :], t)


@pto.kernel(profile="a5")
def shifted_twice_met(x: pto.Global[pto.f32]) -> None:
    block = isa.get_block_idx()
    t = pto.tile(1, 64, pto.f32)
    for _ in pto.range(2):
        other = (block + 1) % 2
        isa.tload(t, x[other : other + 1, :])
        isa.syncall()
        isa.tstore(x[block : block + 1, :], t)
        isa.syncall()


@pto.kernel(profile="a5")
def met_too_late(x: pto.Global[pto.f32]) -> None:
    block = isa.get_block_idx()
    t = pto.tile(1, 64, pto.f32)
    other = (block + 1) % 2
    isa.tload(t, x[other : other + 1, :])
    isa.tstore(x[block : block + 1, :], t)
    isa.syncall()


def test_a_later_meeting_orders_nothing_that_came_before() -> None:
    rows = np.zeros((2, 64), np.float32)
    assert _codes(shifted, rows) & {"PTO-R021", "PTO-R022"}
    assert _codes(met_too_late, rows) & {"PTO-R021", "PTO-R022"}
    assert _codes(shifted_twice_met, rows) == set()


@pytest.mark.parametrize("buffers", [1, 2])
def test_a_ring_of_three_needs_two_buffers_for_one_meeting_a_round(buffers: int) -> None:
    @pto.kernel(profile="a5")
    def ring(x: pto.Global[pto.f32], y: pto.Global[pto.f32]) -> None:
        block = isa.get_block_idx()
        t = pto.tile(1, 64, pto.f32)
        isa.tload(t, x[block : block + 1, :])
        for n in range(4):
            first = n % buffers * 3
            mine, other = first + block, first + (block + 1) % 3
            isa.tstore(y[mine : mine + 1, :], t)
            isa.syncall()
            isa.tload(t, y[other : other + 1, :])

    rows = [np.zeros((6, 64), np.float32) for _ in range(2)]
    found = _codes(ring, *rows, blocks=3)
    assert found == (set() if buffers == 2 else {"PTO-R021", "PTO-R022"})


# ---- words in global memory


def _told(sent: str, heard: str) -> set[str]:
    """Rank 0 writes w of rank 1 between two signals; rank 1 reads it after `heard`."""

    @pto.kernel(profile="a5")
    def send(x: pto.Global[pto.f32], w: pto.Global[pto.f32], s: pto.Global[pto.i32]) -> None:
        t = pto.tile(1, 64, pto.f32)
        isa.tload(t, x)
        isa.comm_tnotify(s, 1, sent)
        isa.tstore(w, t)
        isa.fence_barrier_all("gm")
        isa.comm_tnotify(s, 1 if sent == "atomic_add" else 2, sent)

    @pto.kernel(profile="a5")
    def hear(w: pto.Global[pto.f32], y: pto.Global[pto.f32], s: pto.Global[pto.i32]) -> None:
        t = pto.tile(1, 64, pto.f32)
        isa.comm_twait(s, int(heard[-1]), heard[:-1])
        isa.tload(t, w)
        isa.tstore(y, t)

    world = pto.World(2, "a5")
    x, w, y = (world.symmetric((1, 64), "f32") for _ in range(3))
    s = world.symmetric((1,), "i32")[1]
    with watch(world) as found:
        near, far = (device.stream() for device in world.devices)
        near.launch(send, x[0], w[1], s)
        far.launch(hear, w[1], y[1], s)
        world.synchronize()
    return {d.code for d in found.findings()}


@pytest.mark.parametrize("sent", ["atomic_add", "set"])
def test_a_signal_orders_what_came_before_the_value_that_was_asked_for(sent: str) -> None:
    assert _told(sent, "ge1") == {"PTO-R034"}
    assert _told(sent, "ge2") == set()


@pytest.mark.parametrize("waits", [True, False])
def test_a_buffer_that_is_filled_again_before_it_is_read(waits: bool) -> None:
    """Two rounds through one buffer: the second store needs word that the first was read."""

    @pto.kernel(profile="a5")
    def send(
        x: pto.Global[pto.f32],
        w: pto.Global[pto.f32],
        full: pto.Global[pto.i32],
        free: pto.Global[pto.i32],
    ) -> None:
        t = pto.tile(1, 64, pto.f32)
        isa.tload(t, x)
        for n in range(2):
            if waits and n:
                isa.comm_twait(free, n, "ge")
            isa.tstore(w, t)
            isa.fence_barrier_all("gm")
            isa.comm_tnotify(full, 1, "atomic_add")

    @pto.kernel(profile="a5")
    def hear(
        w: pto.Global[pto.f32],
        y: pto.Global[pto.f32],
        full: pto.Global[pto.i32],
        free: pto.Global[pto.i32],
    ) -> None:
        t = pto.tile(1, 64, pto.f32)
        for n in range(2):
            isa.comm_twait(full, n + 1, "ge")
            isa.tload(t, w)
            isa.tstore(y, t)
            isa.comm_tnotify(free, 1, "atomic_add")

    world = pto.World(2, "a5")
    x, w, y = (world.symmetric((1, 64), "f32") for _ in range(3))
    words = [world.symmetric((1,), "i32")[1], world.symmetric((1,), "i32")[0]]
    with watch(world) as found:
        near, far = (device.stream() for device in world.devices)
        near.launch(send, x[0], w[1], *words)
        far.launch(hear, w[1], y[1], *words)
        world.synchronize()
    codes = {d.code for d in found.findings()}
    assert codes == (set() if waits else {"PTO-R034"})


@pytest.mark.parametrize("need", [1, 2])
def test_two_send_and_one_of_them_is_waited_for(need: int) -> None:
    @pto.kernel(profile="a5")
    def send(x: pto.Global[pto.f32], w: pto.Global[pto.f32], s: pto.Global[pto.i32]) -> None:
        t = pto.tile(1, 64, pto.f32)
        isa.tload(t, x)
        isa.tstore(w, t)
        isa.fence_barrier_all("gm")
        isa.comm_tnotify(s, 1, "atomic_add")

    @pto.kernel(profile="a5")
    def add(w: pto.Global[pto.f32], y: pto.Global[pto.f32], s: pto.Global[pto.i32]) -> None:
        t, u = pto.tile(1, 64, pto.f32), pto.tile(1, 64, pto.f32)
        isa.comm_twait(s, need, "ge")
        isa.tload(t, w[0:1, :])
        isa.tload(u, w[1:2, :])
        isa.tadd(t, t, u)
        isa.tstore(y, t)

    world = pto.World(3, "a5")
    x, y = (world.symmetric((1, 64), "f32") for _ in range(2))
    w, s = world.symmetric((2, 64), "f32")[2], world.symmetric((1,), "i32")[2]
    with watch(world) as found:
        streams = [device.stream() for device in world.devices]
        for n in range(2):
            streams[n].launch(send, x[n], w[n : n + 1], s)
        streams[2].launch(add, w, y[2], s)
        world.synchronize()
    assert {d.code for d in found.findings()} == (set() if need == 2 else {"PTO-R034"})
