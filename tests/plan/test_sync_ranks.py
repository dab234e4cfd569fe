"""Flags before a signal: what another rank is told of is done, both ways round."""

from __future__ import annotations

from typing import Any

import pytest

import pto
from pto import isa
from pto.ir.graph import Module
from pto.observe import watch
from pto.plan.mode import mode_of
from pto.plan.sync import insert
from pto.run.order.resolve import is_ordering
from pto.target.profile import profile as find


def _sender(puts: bool) -> Any:
    """Fills `far` twice; before the second time it hears that the first was read."""

    @pto.kernel(profile="a5")
    def send(
        x: pto.Global[pto.f32],
        far: pto.Global[pto.f32],
        full: pto.Global[pto.i32],
        free: pto.Global[pto.i32],
    ) -> None:
        t = pto.tile(1, 64, pto.f32)
        for n in range(2):
            if n:
                isa.comm_twait(free, n, "ge")
            if puts:
                isa.comm_tput(far, x, t)
            else:
                isa.tload(t, x)
                isa.tstore(far, t)
            isa.comm_tnotify(full, 1, "atomic_add")

    return send


def _reader(gets: bool) -> Any:
    @pto.kernel(profile="a5")
    def read(
        mine: pto.Global[pto.f32],
        y: pto.Global[pto.f32],
        full: pto.Global[pto.i32],
        free: pto.Global[pto.i32],
    ) -> None:
        t = pto.tile(1, 64, pto.f32)
        for n in range(2):
            isa.comm_twait(full, n + 1, "ge")
            if gets:
                isa.comm_tget(y, mine, t)
            else:
                isa.tload(t, mine)
                isa.tstore(y, t)
            isa.comm_tnotify(free, 1, "atomic_add")

    return read


def _codes(ordered: bool, transfers: bool, profile: str) -> set[str]:
    """Two rounds through one buffer, with the flags that the scalar unit waits for or without."""
    world = pto.World(2, profile)
    x, m, y = (world.symmetric((1, 64), "f32") for _ in range(3))
    words = [world.symmetric((1,), "i32")[1], world.symmetric((1,), "i32")[0]]
    modules: list[Module] = []
    for kernel, given in ((_sender(transfers), (x[0], m[1])), (_reader(transfers), (m[1], y[1]))):
        made = kernel.on(profile).module(*given, *words)
        assert mode_of(list(made.functions())) == "automatic"
        made = insert(made, find(profile))
        for op in [op for op in made.walk() if is_ordering(op)] if not ordered else ():
            if op.parent is not None and op.attrs["dst_pipe"].value == "PIPE_S":  # type: ignore[attr-defined]
                op.parent.ops.remove(op)
        modules.append(made)
    with watch(world) as found:
        near, far = (device.stream() for device in world.devices)
        near.launch(modules[0], args=[x[0], m[1], *words])
        far.launch(modules[1], args=[m[1], y[1], *words])
        world.synchronize()
    return {d.code for d in found.findings() if d.severity == "error"}


@pytest.mark.parametrize("profile", ["a2a3", "a5"])
@pytest.mark.parametrize("transfers", [False, True])
def test_a_signal_is_sent_when_all_before_it_is_done(transfers: bool, profile: str) -> None:
    assert _codes(True, transfers, profile) == set()


@pytest.mark.parametrize("profile", ["a2a3", "a5"])
def test_without_the_flags_to_the_scalar_unit_it_is_a_race(profile: str) -> None:
    assert _codes(False, False, profile) & {"PTO-R034", "PTO-R035"}
