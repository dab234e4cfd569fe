"""Global memory under the sanitizer: arrays that overlap are one memory, and large ones fit."""

from __future__ import annotations

import tracemalloc
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import pto
from pto import isa
from pto.core.memory import Memory, Space
from pto.ir.text.parser import parse
from pto.observe import Sanitizer, sanitize, watch
from pto.observe.memory.log import GlobalLog
from pto.run.launch.arrays import copied
from pto.run.launch.host import launch
from pto.run.watch.memory import Recorder, WatchedMemory
from pto.target.profile import choose


def _codes(kernel: Any, *args: Any, blocks: int = 1) -> set[str]:
    found = sanitize(kernel.module(*args), args=args, blocks=blocks, profile=kernel.profile)
    return {d.code for d in found.findings}


# ---- arrays that overlap


@pto.kernel(profile="a5")
def row_to_row(x: pto.Global[pto.f32], y: pto.Global[pto.f32]) -> None:
    """Each block copies its row."""
    block = isa.get_block_idx()
    t = pto.tile(1, 64, pto.f32)
    isa.tload(t, x[block : block + 1, :])
    isa.tstore(y[block : block + 1, :], t)


@pytest.mark.parametrize("first", [1, 2])
def test_blocks_meet_in_arrays_that_overlap_in_part(first: int) -> None:
    """Block 0 stores the row that block 1 loads, unless the second array begins behind it."""
    big = np.zeros((4, 64), np.float32)
    expected = {"PTO-R021"} if first == 1 else set[str]()
    assert _codes(row_to_row, big[0:2], big[first : first + 2], blocks=2) == expected


@pytest.mark.parametrize("ordered", [True, False])
def test_streams_meet_in_arrays_that_overlap_in_part(ordered: bool) -> None:
    big, other = np.zeros((48, 64), np.float32), np.zeros((32, 64), np.float32)
    device = pto.Device("a5")
    one, two = device.stream(), device.stream()
    with watch(device) as found:
        one.launch(row_to_row[32], other, big[0:32])
        if ordered:
            two.wait(one.record())
        two.launch(row_to_row[32], big[16:48], other.copy())
        device.synchronize()
    assert {d.code for d in found.findings()} == (set() if ordered else {"PTO-R031"})


def test_another_run_has_arrays_that_overlap_as_the_first() -> None:
    big = np.arange(12, dtype=np.float32)
    alone = np.zeros(3)
    low, apart, high, number = copied([big[0:8], alone, big[4:12], 7])
    assert number == 7
    assert not np.shares_memory(low, big)
    assert not np.shares_memory(apart, alone)
    assert low.tolist() == big[0:8].tolist()
    assert high.tolist() == big[4:12].tolist()
    low[4] = 99
    assert high[0] == 99


# ---- the log against a model that knows every byte

_ACCESS = st.tuples(
    st.sampled_from(["read", "write", "add", "max"]),
    st.integers(1, 3),  # thread
    st.integers(0, 60),
    st.tuples(st.integers(1, 4), st.integers(1, 3)),
    st.tuples(st.integers(1, 30), st.integers(1, 9)),
    st.sampled_from([1, 2, 4]),
    st.booleans(),
)


@given(st.lists(_ACCESS, max_size=30), st.integers(0, 12))
def test_rows_agree_with_a_byte_by_byte_model(accesses: list[Any], seen: int) -> None:
    """Accesses up to the time `seen` are known to be done; of each thread the newest is told."""
    place = WatchedMemory(Memory(Space.GM, 1024, 32), Recorder())
    shadow, clock = GlobalLog().over(place), np.full(4, seen, np.int64)
    done: list[tuple[str, int, int, set[int]]] = []
    for time, (kind, thread, start, counts, steps, size, listed) in enumerate(accesses, 1):
        array = place.strided(start, counts, (steps[0] * size, steps[1] * size), f"u{size}")
        where = [start + i * steps[0] * size + j * steps[1] * size for i, j in np.ndindex(*counts)]
        if listed:
            array = place.data.view(f"u{size}")
            where = [w // size * size for w in where]
            array[[w // size for w in where]].copy()
        else:
            array.copy()
        (access,) = place.recorder.take()
        touched = {w + b for w in where for b in range(size)}
        cells = shadow.cells(access)
        if kind == "read":
            found = shadow.loads(cells, thread, time, clock)
        else:
            found = shadow.stores(cells, thread, time, clock, "" if kind == "write" else kind)
        expected: dict[tuple[str, int], int] = {}
        for other, who, when, bytes_ in done:
            if (other != kind or kind == "write") and when > seen and bytes_ & touched:
                expected[other, who] = when
        told = sorted((c.thread, c.time, c.other_writes) for c in found)
        assert told == sorted((who, when, k != "read") for (k, who), when in expected.items())
        for conflict in found:
            (both,) = (b & touched for _, who, when, b in done if when == conflict.time)
            assert conflict.first == min(both)
            assert conflict.last == max(both) + 1
        done.append((kind, thread, time, touched))


# ---- size


def test_what_is_kept_does_not_grow_with_turns_of_a_loop() -> None:
    place = WatchedMemory(Memory(Space.GM, 1 << 20, 32), Recorder())
    log, clock = GlobalLog(), np.zeros(4, np.int64)
    shadow = log.over(place)
    for time in range(1, 20_000):
        place.strided(time % 7 * 64, (16, 16), (4096, 4), np.float32).copy()
        (access,) = place.recorder.take()
        shadow.loads(shadow.cells(access), 1, time, clock)
    assert 0 < log.nbytes < 1 << 12


_SCOPE = """
module attributes {{pto.target_arch = "a5", pto.kernel_kind = #pto.kernel_kind<vector>}} {{
  func.func @kernel(%x: !pto.ptr<f32, gm>) attributes {{pto.aicore}} {{
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %n = arith.constant {turns} : index
    %z = arith.constant 0 : i64
    %p = pto.castptr %z : i64 -> !pto.ptr<f32, ub>
    pto.vecscope {{
      scf.for %i = %c0 to %n step %c1 {{
        %v = pto.vlds %p[%c0] : !pto.ptr<f32, ub> -> !pto.vreg<64xf32>
      }}
    }}
    return
  }}
}}
"""


def test_a_vector_scope_is_looked_at_as_it_goes_on() -> None:
    """Nothing is given back at its end, because nothing was kept aside for it."""
    module = parse(_SCOPE.format(turns=5000))
    args = [np.zeros(64, np.float32)]
    tracemalloc.start()
    watcher = Sanitizer(choose(profile_name="a5").profile)
    launch(module, args=args, observer=watcher)
    left, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert left > 500_000  # who has read, and when
    assert most - left < 300_000
