"""Several launches under the sanitizer: what streams, events, the host and signals put in order."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from examples import all_reduce
from pto.ir.graph import Module
from pto.ir.text.parser import parse
from pto.observe import Sanitizer, sanitize, watch
from pto.run.machine.device import Device
from pto.run.machine.world import World


def kernel(*body: str, name: str = "kernel", more: str = "") -> Module:
    text = "\n    ".join(body)
    return parse(f"""!p = !pto.ptr<f32, ub>
!g = !pto.ptr<f32, gm>
!s = !pto.ptr<i32, gm>
!word = !pto.tensor_view<1xi32>
module attributes {{pto.target_arch = "a5", pto.kernel_kind = #pto.kernel_kind<vector>}} {{
  func.func @{name}(%x: !g, %y: !g{more}) attributes {{pto.aicore}} {{
    %c1 = arith.constant 1 : index
    %z = arith.constant 0 : i64
    %n = arith.constant 1 : i64
    %told = arith.constant 1 : i32
    %bytes = arith.constant 256 : i64
    %a = pto.castptr %z : i64 -> !p
    {text}
    return
  }}
}}
""")


LOAD = """pto.mte_gm_ub %x, %a, %z, %bytes nburst(%n, %bytes, %bytes)
      : !g, !p, i64, i64, i64, i64, i64"""
STORE = "pto.mte_ub_gm %a, %y, %bytes nburst(%n, %bytes, %bytes) : !p, !g, i64, i64, i64, i64"


def flag(src: str, dst: str) -> str:
    name = f'["PIPE_{src}", "PIPE_{dst}", "EVENT_ID0"]'
    return f"pto.set_flag{name}\npto.wait_flag{name}"


COPY = kernel(LOAD, flag("MTE2", "MTE3"), STORE)


def array(value: float = 0.0) -> Any:
    return np.full(64, value, np.float32)


def codes(watcher: Sanitizer) -> set[str]:
    return {d.code for d in watcher.findings()}


# ---- streams of one device


def two_copies(order: str) -> set[str]:
    """x to y, then y to z; `order` says what is between."""
    device = Device("a5")
    x, y, z = array(7), array(), array()
    first = device.stream()
    second = first if order == "one stream" else device.stream()
    with watch(device) as found:
        first.launch(COPY, args=[x, y])
        if order == "event":
            second.wait(first.record())
        if order == "host":
            device.synchronize()
        second.launch(COPY, args=[y, z])
        device.synchronize()
    assert (z == 7).all()  # one launch is done after the other anyway
    return codes(found)


def test_nothing_orders_two_streams() -> None:
    assert two_copies("nothing") == {"PTO-R031"}


@pytest.mark.parametrize("order", ["one stream", "event", "host"])
def test_streams_events_and_the_host_order_launches(order: str) -> None:
    assert two_copies(order) == set()


def test_an_event_orders_what_was_submitted_before_it_and_not_what_comes_after() -> None:
    device = Device("a5")
    x, y, z = array(7), array(), array()
    first, second = device.stream(), device.stream()
    with watch(device) as found:
        event = first.record()
        first.launch(COPY, args=[x, y])
        second.wait(event)
        second.launch(COPY, args=[y, z])
        device.synchronize()
    assert codes(found) == {"PTO-R031"}


def test_two_streams_that_write_one_array() -> None:
    device = Device("a5")
    x, y = array(7), array()
    with watch(device) as found:
        for stream in (device.stream(), device.stream()):
            stream.launch(COPY, args=[x, y])
        device.synchronize()
    (finding,) = found.findings()
    assert finding.code == "PTO-R033"
    assert "of launch 2 may write before MTE3 of block 0 vector of launch 1" in finding.message


def test_order_is_passed_on_through_a_third_stream() -> None:
    device = Device("a5")
    x, y, z, w = array(7), array(), array(), array()
    one, two, three = (device.stream() for _ in range(3))
    with watch(device) as found:
        one.launch(COPY, args=[x, y])
        two.wait(one.record())
        two.launch(COPY, args=[x, w])  # has nothing to do with y
        three.wait(two.record())
        three.launch(COPY, args=[y, z])
        device.synchronize()
    assert codes(found) == set()


def test_after_the_block_nobody_watches() -> None:
    device = Device("a5")
    x, y = array(7), array()
    with watch(device) as found:
        pass
    for stream in (device.stream(), device.stream()):
        stream.launch(COPY, args=[x, y])
    device.synchronize()
    assert codes(found) == set()
    assert (y == 7).all()


# ---- ranks

SIGNAL = ", %signal: !s"
WORD = "%w = pto.make_tensor_view %signal, shape = [%c1], strides = [%c1] : !word"
TELL = "pto.comm.tnotify(%w, %told : !word, i32) {notifyOp = #pto<notify_op set>}"
HEAR = "pto.comm.twait(%w, %told : !word, i32) {cmp = #pto<wait_cmp ge>}"


def across(send: tuple[str, ...], receive: tuple[str, ...]) -> set[str]:
    """Rank 0 copies x to y of rank 1; rank 1 copies y to z."""
    world = World(2, "a5")
    xs, ys, zs = (world.symmetric((64,), "f32") for _ in range(3))
    signal = world.symmetric((1,), "i32")[1]
    xs[0][...] = 7
    with watch(world) as found:
        near, far = (device.stream() for device in world.devices)
        sender = kernel(LOAD, flag("MTE2", "MTE3"), STORE, *send, more=SIGNAL)
        receiver = kernel(*receive, LOAD, flag("MTE2", "MTE3"), STORE, more=SIGNAL)
        near.launch(sender, args=[xs[0], ys[1], signal])
        far.launch(receiver, args=[ys[1], zs[1], signal])
        world.synchronize()
    return codes(found)


FENCE = "pto.fence.barrier_all #pto.fence_scope<gm>"


def test_a_signal_orders_ranks() -> None:
    assert across((FENCE, WORD, TELL), (WORD, HEAR)) == set()


@pytest.mark.parametrize(
    ("send", "found"),
    [
        ((flag("MTE3", "S"), WORD, TELL), {"PTO-R046"}),  # done on its core, not seen in memory
        (("pto.barrier <PIPE_ALL>", WORD, TELL), {"PTO-R046"}),
        ((flag("MTE3", "S"), 'pto.dsb "DDR"', WORD, TELL), set[str]()),
        # a fence that does not wait for MTE3, and one behind the notification
        (('pto.dsb "DDR"', flag("MTE3", "S"), WORD, TELL), {"PTO-R046"}),
        ((flag("MTE3", "S"), WORD, TELL, FENCE), {"PTO-R046"}),
    ],
)
def test_another_rank_sees_a_store_behind_a_fence_before_the_notification(
    send: tuple[str, ...], found: set[str]
) -> None:
    """PTOAS#744: a barrier of MTE3 alone let the signal overtake the data on its way."""
    assert across(send, (WORD, HEAR)) == found


ASK = "%there = pto.comm.ttest(%w, %told : !word, i32) {cmp = #pto<wait_cmp ge>} -> i1"
LOOP = f"""scf.while : () -> () {{
      {ASK}
      %yes = arith.constant true
      %not_yet = arith.xori %there, %yes : i1
      scf.condition(%not_yet)
    }} do {{
      scf.yield
    }}"""


def test_a_test_of_a_signal_orders_what_its_result_decides() -> None:
    """A test whose result is not used says nothing about what follows."""
    send = (FENCE, WORD, TELL)
    assert across(send, (WORD, LOOP)) == set()
    assert across(send, (WORD, ASK)) == {"PTO-R034"}


def test_a_test_whose_result_is_not_used_is_a_warning() -> None:
    args = [np.zeros(64, np.float32), np.zeros(64, np.float32), np.ones(1, np.int32)]
    for ask, found in ((ASK, ["PTO-R045"]), (LOOP, [])):
        module = kernel(WORD, ask, LOAD, flag("MTE2", "MTE3"), STORE, more=SIGNAL)
        assert [d.code for d in sanitize(module, args=args).findings] == found


def test_a_signal_sent_before_the_data_is_there_orders_nothing() -> None:
    assert across((WORD, TELL), (WORD, HEAR)) == {"PTO-R034"}


def test_who_does_not_wait_is_not_ordered() -> None:
    assert across((flag("MTE3", "S"), WORD, TELL), ()) == {"PTO-R034"}


@pytest.mark.parametrize(("reads", "code"), [(True, "PTO-R035"), (False, "PTO-R036")])
def test_what_a_rank_uses_and_another_writes(reads: bool, code: str) -> None:
    """The first reads or writes y of rank 1, then rank 1 writes it; nobody waits."""
    world = World(2, "a5")
    xs, ys, zs = (world.symmetric((64,), "f32") for _ in range(3))
    copies = kernel(LOAD, flag("MTE2", "MTE3"), STORE)
    with watch(world) as found:
        near, far = (device.stream() for device in world.devices)
        near.launch(copies, args=[ys[1], xs[0]] if reads else [xs[0], ys[1]])
        far.launch(copies, args=[zs[1], ys[1]])
        world.synchronize()
    assert codes(found) == {code}


@pytest.mark.parametrize("profile", all_reduce.PROFILES)
def test_the_all_reduce_example_is_in_order(profile: str, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Sanitizer] = []
    launch = World.launch

    def launch_watched(self: World, *args: Any, **named: Any) -> Any:
        with watch(self) as found:
            made = launch(self, *args, **named)
            self.synchronize()
        seen.append(found)
        return made

    monkeypatch.setattr(World, "launch", launch_watched)
    actual, expected = all_reduce.example(profile)
    assert np.abs(actual - expected).max() < 1e-5
    (found,) = seen
    assert [d for d in found.findings() if d.severity == "error"] == []
