"""Watched memory: exactly the bytes that NumPy reads and writes are noted, however it is asked."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pto.core.memory import Memory, Space
from pto.ir.text.parser import parse
from pto.observe.memory import shadow as shadows
from pto.observe.memory.granules import cells_of
from pto.observe.memory.shadow import Shadow
from pto.observe.storage.roots import Roots
from pto.observe.storage.tiles import TileTap
from pto.run.watch.memory import Recorder, WatchedMemory
from pto.run.watch.outline import DryRun
from pto.target.profile import profile as find_profile
from tests.machine import new_core

SIZE = 1024


def memory() -> WatchedMemory:
    found = Memory(Space.UB, SIZE)
    found.data[:] = np.arange(SIZE, dtype=np.uint64).astype(np.uint8)
    return WatchedMemory(found, Recorder())


def touched(place: WatchedMemory, writes: bool) -> set[int]:
    """The bytes of all accesses of one kind, by walking each footprint."""
    out: set[int] = set()
    for access in place.recorder.take():
        if access.writes is not writes:
            continue
        cells = cells_of(access)
        starts = [cells.start] if cells.places is None else [int(p) for p in cells.places]
        for count, stride in zip(cells.counts, cells.strides, strict=True):
            starts = [s + i * stride for s in starts for i in range(count)]
        out |= {s + i for s in starts for i in range(cells.width)}
    return out


READS: dict[str, tuple[Callable[[Any], object], set[int]]] = {
    "copy of a slice": (lambda m: m[8:16].copy(), set(range(8, 16))),
    "one element": (lambda m: m.view(np.float32)[3], set(range(12, 16))),
    "a ufunc": (lambda m: m[4:8] + 1, set(range(4, 8))),
    "as an array": (lambda m: np.asarray(m[0:4]), set(range(4))),
    "every second word": (
        lambda m: m.view(np.uint32)[:6:2].copy(),
        {0, 1, 2, 3, 8, 9, 10, 11, 16, 17, 18, 19},
    ),
    "a gather": (lambda m: m.view(np.uint16)[np.array([5, 1])], {10, 11, 2, 3}),
    "a mask": (lambda m: m[:4][np.array([True, False, True, False])], {0, 2}),
    "a transposed block": (
        lambda m: np.ascontiguousarray(m[:12].reshape(3, 4)[:, :2].T),
        {0, 1, 4, 5, 8, 9},
    ),
    "a fold": (lambda m: np.add.reduce(m[3:6]), {3, 4, 5}),
    "columns by number": (
        lambda m: m[:12].reshape(3, 4).take(np.array([3, 1]), axis=1),
        {1, 3, 5, 7, 9, 11},
    ),
    "rows by number": (lambda m: m[:12].reshape(3, 4).take([2], axis=0), {8, 9, 10, 11}),
    "backwards": (lambda m: m[6:2:-1].copy(), {3, 4, 5, 6}),
    "a reshape that copies": (lambda m: m[:8].reshape(2, 4).T.reshape(-1), set(range(8))),
    "into another array": (
        lambda m: np.zeros(4, np.uint8).__setitem__(slice(None), m[:4]),
        set(range(4)),
    ),
}


@pytest.mark.parametrize("name", READS)
def test_a_read_is_noted_exactly(name: str) -> None:
    place = memory()
    work, expected = READS[name]
    work(place.data)
    log = list(place.recorder.log)
    assert touched(place, writes=False) == expected
    assert not any(access.writes for access in log)


WRITES: dict[str, tuple[Callable[[Any], object], set[int]]] = {
    "a slice": (lambda m: m.__setitem__(slice(2, 4), 7), {2, 3}),
    "an element": (lambda m: m.view(np.uint32).__setitem__(2, 7), {8, 9, 10, 11}),
    "a view of another type": (
        lambda m: m[8:16].view(np.float32).__setitem__(slice(1, 2), 1.0),
        {12, 13, 14, 15},
    ),
    "first lanes of a mask": (
        lambda m: np.copyto(m[:8], np.uint8(9), where=np.arange(8) < 3),
        {0, 1, 2},
    ),
    "lanes here and there": (
        lambda m: np.copyto(m[:8], np.uint8(9), where=np.arange(8) % 3 == 0),
        {0, 3, 6},
    ),
    "no lane": (lambda m: np.copyto(m[:8], np.uint8(9), where=np.zeros(8, bool)), set()),
    "a scatter": (lambda m: m.__setitem__(np.array([9, 4]), 1), {9, 4}),
    "the result of a ufunc": (lambda m: np.add(np.uint8(1), np.uint8(2), out=m[5:7]), {5, 6}),
    "what take gives": (
        lambda m: np.take(np.arange(9, dtype=np.uint8), [3, 4], out=m[:2], mode="clip"),
        {0, 1},
    ),
}


@pytest.mark.parametrize("name", WRITES)
def test_a_write_is_noted_exactly(name: str) -> None:
    place = memory()
    before = place.raw.copy()
    work, expected = WRITES[name]
    work(place.data)
    changed = set(np.flatnonzero(place.raw != before).tolist())
    assert changed <= expected
    assert touched(place, writes=True) == expected


def test_facts_and_views_touch_nothing() -> None:
    place = memory()
    found = place.data[:64].view(np.float32).reshape(4, 4).T
    assert (found.shape, found.dtype, found.size) == ((4, 4), np.dtype(np.float32), 16)
    assert place.recorder.log == []


def test_a_buffer_that_numpy_cannot_follow_raises() -> None:
    with pytest.raises(TypeError):
        np.ndarray((4,), np.uint8, buffer=memory().data)


def test_results_are_those_of_plain_arrays() -> None:
    place = memory()
    a, plain = place.data[:32].view(np.int16), place.raw[:32].view(np.int16)
    assert np.array_equal(a * 2 + a, plain * 3)
    assert np.array_equal(np.where(a > 3, a, 0), np.where(plain > 3, plain, 0))
    assert [int(x) for x in a[:3]] == plain[:3].tolist()
    assert a.sum() == plain.sum()


# ---- shadow

_ACCESS = st.tuples(
    st.booleans(),
    st.integers(0, 2),  # who
    st.integers(0, 20),
    st.integers(1, 4),
    st.integers(1, 12),
    st.sampled_from([1, 2, 4]),
    st.booleans(),  # by places
    st.sets(st.integers(0, 2)),  # whom everybody has waited for when it is done
)


@pytest.mark.parametrize("kept", [3, 4096])
@given(accesses=st.lists(_ACCESS, max_size=20))
def test_shadows_agree_with_a_byte_by_byte_model(kept: int, accesses: list[Any]) -> None:
    """Also where footprints are forgotten, come again, and lie over each other."""
    place, clock, now = memory(), np.zeros(64, np.int64), [0, 0, 0]
    written: dict[int, tuple[int, int]] = {}  # by byte: thread and time
    read: dict[tuple[int, int], int] = {}  # by byte and thread
    with mock.patch.object(shadows, "_KEPT", kept):
        shadow = Shadow(place)
        for writes, who, start, rows, step, size, listed, waited in accesses:
            now[who] += 1
            array = place.strided(start * size, (rows,), (step * size,), f"u{size}")
            where = np.arange(rows) if listed else ...
            if writes:
                array[where] = 1
            else:
                array[where].copy()
            (access,) = place.recorder.take()
            bytes_ = {start * size + r * step * size + b for r in range(rows) for b in range(size)}
            late = {
                written[b] for b in bytes_ if b in written and written[b][1] > clock[written[b][0]]
            }
            expected = {(w, t, True) for w, t in late if t == max(u for v, u in late if v == w)}
            cells = shadow.cells(access)
            if writes:
                found = shadow.reads(cells, who, clock, keeps=False)
                found += shadow.stores(cells, who, now[who], clock)
                for other in range(3):
                    times = [t for b in bytes_ if (t := read.get((b, other), 0)) > clock[other]]
                    expected |= {(other, max(times), False)} if times else set()
                written.update(dict.fromkeys(bytes_, (who, now[who])))
            else:
                found = shadow.loads(cells, who, now[who], clock)
                read.update(dict.fromkeys(((b, who) for b in bytes_), now[who]))
            assert {(c.thread, c.time, c.other_writes) for c in found} == expected
            assert all({c.first, c.last - 1} <= bytes_ for c in found)
            for other in waited:
                clock[other] = now[other]


def test_a_core_begins_with_an_empty_data_cache_though_its_id_was_used_before():
    tap, core = DryRun(), new_core()
    tap.begin(core)
    line = (0, 0)
    assert [tap._cached(core, line) for _ in range(2)] == [False, True]
    tap.begin(core)  # as a core at the same address
    assert not tap._cached(core, line)


def test_a_core_begins_without_the_tiles_of_a_core_that_had_its_id():
    text = "func.func @f() { %t = pto.alloc_tile : !pto.tile_buf<vec, 1x8xf32> return }"
    module = parse(text)
    tap, core = TileTap(Roots(module.functions()), find_profile("a5")), new_core()
    tap._popped[id(core)] = [0]
    for table in (tap._slots, tap._freed, tap._wrote):
        table[id(core), 0] = None  # pyright: ignore[reportArgumentType]
    tap.begin(core)
    assert not (tap._popped or tap._slots or tap._freed or tap._wrote)
