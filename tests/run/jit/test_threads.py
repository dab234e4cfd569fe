"""Blocks on threads: the same result for any number of threads, and in order where nothing is
proved."""

from __future__ import annotations

import gc
import os
import sys
import threading
import time
import weakref
from typing import Any

import numpy as np
import pytest

import pto
from pto import isa
from pto.core.errors import PtoError
from pto.run.jit.runtime import team, threads


@pytest.fixture(autouse=True)
def _eager(monkeypatch: pytest.MonkeyPatch) -> None:
    """Threads are used for the smallest block, not only where they are worth it."""
    for name in ("_LAUNCH", "_TRIAL", "_SHORT"):
        monkeypatch.setattr(threads, name, 0.0)


@pytest.fixture(params=["team", "threads"])
def _of_both_kinds(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Threads that wait in compiled code, and threads of Python, as other platforms have them."""
    if request.param == "threads":
        monkeypatch.setattr(team, "IS_SUPPORTED", False)
        monkeypatch.setattr(team, "_idle", [])


both_kinds = pytest.mark.usefixtures("_of_both_kinds")


@pto.kernel(profile="a5")
def double(x: pto.Global[pto.f32], y: pto.Global[pto.f32]) -> None:
    i = pto.block_idx()
    t = pto.tile(8, 64, pto.f32)
    isa.tload(t, x[i * 8 :, :])
    isa.tadd(t, t, t)
    isa.tstore(y[i * 8 :, :], t)


@pto.kernel(profile="a5")
def next_to_each_other(x: pto.Global[pto.f32]) -> None:
    """Every block reads what the block before it wrote."""
    i = pto.block_idx()
    t = pto.tile(8, 64, pto.f32)
    isa.tload(t, x[i * 8 :, :])
    isa.tadds(t, t, 1.0)
    isa.tstore(x[(i + 1) * 8 :, :], t)


@pto.kernel(profile="a5")
def one_place(x: pto.Global[pto.f32], y: pto.Global[pto.f32]) -> None:
    """Every block writes the same rows: the last one is seen."""
    i = pto.block_idx()
    t = pto.tile(8, 64, pto.f32)
    isa.tload(t, x[i * 8 :, :])
    isa.tstore(y[:8, :], t)


def data(blocks: int) -> Any:
    return np.random.default_rng(1).standard_normal((blocks * 8, 64)).astype(np.float32)


@both_kinds
@pytest.mark.parametrize("number", ["1", "2", "7"])
def test_independent_blocks(number: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PTO_THREADS", number)
    x = data(40)
    y = np.zeros_like(x)
    double[40](x, y, engine="jit")
    assert np.array_equal(y, x + x)


@both_kinds
@pytest.mark.parametrize("number", ["1", "2", "7"])
def test_blocks_that_hand_on_data_run_in_their_order(
    number: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PTO_THREADS", number)
    x = np.zeros((33 * 8, 64), np.float32)
    next_to_each_other[32](x, engine="jit")
    assert x[::8, 0].tolist() == list(range(33))


@both_kinds
@pytest.mark.parametrize("number", ["2", "7"])
def test_of_blocks_that_write_one_place_the_last_is_seen(
    number: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PTO_THREADS", number)
    x = data(24)
    y = np.zeros((8, 64), np.float32)
    one_place[24](x, y, engine="jit")
    assert np.array_equal(y, x[-8:])


@both_kinds
def test_every_block_runs_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first one in order, unless it was measured before; then threads take all that are left,
    if blocks are proved to be independent."""
    monkeypatch.setenv("PTO_THREADS", "3")
    run, ran = threads.BlockWorker.run, list[range]()

    def noted(worker: Any, first: int, end: int, *more: Any) -> None:
        run(worker, first, end, *more)
        ran.append(range(first, end))

    monkeypatch.setattr(threads.BlockWorker, "run", noted)
    x, y = data(41), np.zeros((41 * 8, 64), np.float32)
    double[40](x, y, engine="jit")
    assert np.array_equal(y[:-8], x[:-8] + x[:-8]) and not y[-8:].any()
    assert ran in ([], [range(1)])
    ran.clear()
    next_to_each_other[40](y, engine="jit")
    assert ran == [range(1), range(1, 40)]


@both_kinds
@pytest.mark.parametrize("number", ["1", "4"])
def test_arrays_of_a_host_that_overlap(number: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """y begins one block behind x in the same memory: each block doubles what the last one made."""
    monkeypatch.setenv("PTO_THREADS", number)
    memory = np.ones((17 * 8, 64), np.float32)
    double[16](memory[:-8], memory[8:], engine="jit")
    assert memory[::8, 0].tolist() == [2.0**n for n in range(17)]


@both_kinds
def test_a_block_that_fails_leaves_what_the_blocks_before_it_wrote(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    x, seen = data(4), []
    for number in ("1", "4"):
        monkeypatch.setenv("PTO_THREADS", number)
        y = np.zeros_like(x)
        with pytest.raises(PtoError) as error:
            double[6](x, y, engine="jit")  # blocks 4 and 5 have no rows
        seen.append((str(error.value), y))
    assert seen[0][0] == seen[1][0]
    assert np.array_equal(seen[0][1], seen[1][1])
    assert np.array_equal(seen[0][1], x + x)


def test_the_number_of_threads_is_a_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PTO_THREADS", "many")
    with pytest.raises(PtoError, match="PTO-U091"):
        double[2](data(2), data(2), engine="jit")


@both_kinds
@pytest.mark.parametrize("number", ["1", "3"])
def test_progress_counts_up_to_the_last_block(number: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PTO_THREADS", number)
    x = data(40)
    y = np.zeros_like(x)
    seen: list[tuple[int, int]] = []
    double[40](x, y, engine="jit", progress=lambda *done: seen.append(done))
    assert np.array_equal(y, x + x)
    assert seen == sorted(seen) and seen[-1] == (40, 40)


@both_kinds
@pytest.mark.parametrize("number", ["1", "3"])
def test_progress_is_reported_while_blocks_run(
    number: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PTO_THREADS", number)
    text = """
module attributes {pto.target_arch = "a5"} {
  func.func @f(%p: !pto.ptr<i32>) {
    %i = pto.get_block_idx
    %k = arith.index_cast %i : i64 to index
    %zero = arith.constant 0 : index
    %one = arith.constant 1 : index
    %many = arith.constant 20000000 : index
    %first = arith.constant 3 : i32
    %all = scf.for %n = %zero to %many step %one iter_args(%a = %first) -> (i32) {
      %b = arith.muli %a, %a : i32
      scf.yield %b : i32
    }
    pto.store_scalar %all, %p[%k] : !pto.ptr<i32>, i32
    return
  }
}
"""
    array, seen = np.zeros(24, np.int32), list[int]()
    module = pto.parse(text)
    pto.launch(module, args=[array], engine="jit", blocks=24, progress=lambda n, _: seen.append(n))
    assert array.all()
    assert seen == sorted(seen) and seen[-1] == 24
    assert any(2 < n < 24 for n in seen)


def test_blocks_begin_with_buffers_of_zeros(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every block writes a few rows of a tile and stores all of them."""
    monkeypatch.setenv("PTO_THREADS", "1")

    @pto.kernel(profile="a5")
    def part(x: pto.Global[pto.f32], y: pto.Global[pto.f32], n: pto.Scalar[pto.i64]) -> None:
        i = pto.block_idx()
        t = pto.tile(8, 64, pto.f32)
        if i < n:
            isa.tload(t, x[i * 8 : i * 8 + 8, :])
        isa.tstore(y[i * 8 : i * 8 + 8, :], t)

    x, y = data(6), np.ones((48, 64), np.float32)
    part[6](x, y, 2, engine="jit")
    assert np.array_equal(y[:16], x[:16]) and not y[16:].any()
    part[6](x, y, 0, engine="jit")  # buffers of the last launch are not seen either
    assert not y.any()


def test_rows_that_a_larger_region_shows_are_zeros(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every block fills fewer rows of a tile than the one before it, and stores all of them."""
    monkeypatch.setenv("PTO_THREADS", "1")

    @pto.kernel(profile="a5")
    def fewer(x: pto.Global[pto.f32], y: pto.Global[pto.f32]) -> None:
        i = pto.block_idx()
        t = pto.tile(8, 64, pto.f32)
        pto.set_validshape(t, 8 - i, 64)
        isa.tload(t, x[i * 8 : i * 8 + 8 - i, :])
        pto.set_validshape(t, 8, 64)
        isa.tstore(y[i * 8 : i * 8 + 8, :], t)

    x, y = data(6), np.ones((48, 64), np.float32)
    fewer[6](x, y, engine="jit")
    filled = np.arange(8)[None, :] < 8 - np.arange(6)[:, None]
    assert np.array_equal(y, np.where(filled.reshape(48, 1), x, 0))


@both_kinds
@pytest.mark.parametrize("number", ["1", "2"])
def test_flags_are_each_blocks_own(number: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PTO_THREADS", number)
    text = """
module attributes {pto.target_arch = "a5"} {
  func.func @f(%p: !pto.ptr<i32>) {
    %i = pto.get_block_idx
    %k = arith.index_cast %i : i64 to index
    %one = arith.constant 1 : i32
    pto.set_flag["PIPE_MTE2", "PIPE_V", "EVENT_ID0"]
    pto.store_scalar %one, %p[%k] : !pto.ptr<i32>, i32
    pto.wait_flag["PIPE_MTE2", "PIPE_V", "EVENT_ID0"]
    return
  }
}
"""
    array = np.zeros(50, np.int32)
    pto.launch(pto.parse(text), args=[array], engine="jit", blocks=50, check=False)
    assert array.all()


@both_kinds
def test_an_address_that_depends_on_data_runs_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each block adds one where an array says; all of them say the same place."""
    monkeypatch.setenv("PTO_THREADS", "4")
    text = """
module attributes {pto.target_arch = "a5"} {
  func.func @f(%p: !pto.ptr<i32>, %at: !pto.ptr<i32>) {
    %i = pto.get_block_idx
    %k = arith.index_cast %i : i64 to index
    %one = arith.constant 1 : i32
    %where = pto.load_scalar %at[%k] : !pto.ptr<i32> -> i32
    %n = arith.index_cast %where : i32 to index
    %old = pto.load_scalar %p[%n] : !pto.ptr<i32> -> i32
    %new = arith.addi %old, %one : i32
    pto.store_scalar %new, %p[%n] : !pto.ptr<i32>, i32
    return
  }
}
"""
    counts, where = np.zeros(4, np.int32), np.full(1000, 2, np.int32)
    pto.launch(pto.parse(text), args=[counts, where], engine="jit", blocks=1000)
    assert counts.tolist() == [0, 0, 1000, 0]


def test_other_sizes_share_compiled_code(monkeypatch: pytest.MonkeyPatch) -> None:
    from pto.run.jit.llvm import native

    compiled: list[str] = []
    original = native.object_of
    monkeypatch.setattr(
        native, "object_of", lambda text, machine: compiled.append(text) or original(text, machine)
    )
    monkeypatch.setattr(native.cache, "load", lambda name: None)
    monkeypatch.setenv("PTO_THREADS", "1")
    for blocks in (311, 312, 313):
        x, y = data(blocks), data(blocks)
        double[blocks](x, y, engine="jit")
        assert np.array_equal(y, x + x)
    assert len(compiled) <= 1


@pytest.mark.parametrize("blocks", [1, 2])
def test_a_module_that_is_kept_keeps_no_arrays(blocks: int) -> None:
    """Programs stay for later launches, what they worked on does not: it may be large."""
    x, y = data(blocks), data(blocks)
    module = double.module(x, y)
    pto.launch(module, args=[x, y], engine="jit", blocks=blocks)
    assert np.array_equal(y, x + x)
    seen = weakref.ref(x), weakref.ref(y)
    del x, y
    gc.collect()
    assert [ref() for ref in seen] == [None, None]


def test_a_program_that_has_changed_is_prepared_again() -> None:
    module = double.module(data(1), data(1))
    x, y = data(1), np.zeros((8, 64), np.float32)
    pto.launch(module, args=[x, y])
    function = next(module.functions())
    ops = function.regions[0].block.ops
    add = next(op for op in ops if op.name == "pto.tadd")
    ops.remove(add)
    pto.launch(module, args=[x, y])
    assert np.array_equal(y, x)


def test_threads_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PTO_THREADS", "3")
    x = data(40)

    def workers() -> set[int | None]:
        y = np.zeros_like(x)
        double[40](x, y, engine="jit")
        assert np.array_equal(y, x + x)
        return {t.ident for t in threading.enumerate() if t.name == "pto worker"}

    first = workers()
    assert len(first) >= 2
    assert all(workers() == first for _ in range(5))


@both_kinds
@pytest.mark.parametrize("at", [3, 21])
def test_an_error_ends_all_threads(at: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The block that fails is known only when it runs; another one would not end without it."""
    monkeypatch.setenv("PTO_THREADS", "3")
    text = """
module attributes {pto.target_arch = "a5"} {
  func.func @f(%p: !pto.ptr<i32>, %by: !pto.ptr<i32>, %turns: !pto.ptr<i64>) {
    %i = pto.get_block_idx
    %k = arith.index_cast %i : i64 to index
    %zero = arith.constant 0 : index
    %one = arith.constant 1 : index
    %n = pto.load_scalar %turns[%k] : !pto.ptr<i64> -> i64
    %m = arith.index_cast %n : i64 to index
    %d = pto.load_scalar %by[%k] : !pto.ptr<i32> -> i32
    %all = scf.for %j = %zero to %m step %one iter_args(%a = %d) -> (i32) {
      %b = arith.muli %a, %a : i32
      scf.yield %b : i32
    }
    %q = arith.divsi %all, %d : i32
    pto.store_scalar %q, %p[%k] : !pto.ptr<i32>, i32
    return
  }
}
"""
    by, turns = np.ones(40, np.int32), np.ones(40, np.int64)
    by[at], turns[12:14] = 0, 1 << 60
    with pytest.raises(PtoError, match="PTO-S132"):
        args = [np.zeros(40, np.int32), by, turns]
        pto.launch(pto.parse(text), args=args, engine="jit", blocks=40)


@both_kinds
@pytest.mark.skipif(sys.platform != "linux", reason="forks only on Linux")
def test_a_process_that_forks_has_threads_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PTO_THREADS", "2")
    x = data(40)
    double[40](x, np.zeros_like(x), engine="jit")
    child = os.fork()
    if not child:
        y = np.zeros_like(x)
        double[40](x, y, engine="jit")
        os._exit(0 if np.array_equal(y, x + x) else 1)
    for _ in range(300):
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            break
        time.sleep(0.1)
    else:
        os.kill(child, 9)
        pytest.fail("the child hangs")
    assert status == 0
