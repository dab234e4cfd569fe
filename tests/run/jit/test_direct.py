"""Calls like one before: other arrays, other numbers, and nothing taken over that must not be."""

from __future__ import annotations

import gc
import signal
import threading
import time
import warnings
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pto
from pto import isa
from pto.core.errors import PtoError
from pto.isa.row.attributes import Bool
from pto.run.jit.emit import emitter
from pto.run.jit.emit.tile import steps
from pto.run.jit.runtime import direct, threads
from pto.run.jit.runtime.values import ScalarValue
from pto.run.launch import host
from pto.run.launch.call import Launch
from pto.run.launch.engine import selected_cluster
from tests.run.test_host import Tensor
from tests.run.test_limit import WHILE, timed_out

Matrix = pto.Global[pto.f32, "m", "n"]  # type: ignore[name-defined]
RNG = np.random.default_rng(5)


class Count:
    """Calls that were direct, and machines that were made."""

    def __init__(self) -> None:
        self.direct = self.made = 0


@pytest.fixture(autouse=True)
def count(monkeypatch: pytest.MonkeyPatch) -> Count:
    seen, run, begin = Count(), direct.FastPath.run, Launch.begin

    def counted_run(self: Any, *given: Any) -> Any:
        seen.direct += 1
        return run(self, *given)

    def counted_begin(self: Any) -> Any:
        seen.made += 1
        return begin(self)

    monkeypatch.setattr(direct.FastPath, "run", counted_run)
    monkeypatch.setattr(Launch, "begin", counted_begin)
    # a block that happens to be slow is worth threads, which have machines of their own
    monkeypatch.setenv("PTO_THREADS", "1")
    return seen


def scaled() -> pto.Kernel:
    """y = a x + c; one of its own for each test, so that no call has been before."""

    @pto.kernel(profile="a5")
    def scale(
        x: pto.Global[pto.f32],
        y: pto.Global[pto.f32],
        a: pto.Scalar[pto.f32],
        n: pto.Scalar[pto.i32],
        c: float = 0.0,
    ) -> None:
        i = pto.block_idx() * 8
        t = pto.tile(8, 64, pto.f32)
        for _ in pto.range(n):
            isa.tload(t, x[i : i + 8, :])
            isa.tmuls(t, t, a)
            isa.tadds(t, t, c)
            isa.tstore(y[i : i + 8, :], t)

    return scale


def data(blocks: int = 1) -> Any:
    return RNG.integers(-9, 9, (8 * blocks, 64)).astype(np.float32)


def called(kernel: pto.Kernel, blocks: int = 1, times: int = 3) -> None:
    """Until calls like these are direct."""
    for _ in range(times):
        x, y = data(blocks), data(blocks)
        kernel[blocks](x, y, 2.0, 1, engine="jit")
        assert np.array_equal(y, 2 * x)


# ---- what differs from call to call


def test_arrays_and_numbers_are_those_of_the_call(count: Count) -> None:
    kernel = scaled()
    called(kernel)
    made, calls = count.made, count.direct
    for a in (1.5, -0.0, float("inf"), 1.5):
        x, y = data(), data()
        kernel(x, y, a, 1, engine="jit")
        with np.errstate(all="ignore"):
            assert np.array_equal(y, x * np.float32(a), equal_nan=True)
    x, y = data(), data()
    before = y.copy()
    kernel(x, y, 2.0, 0, engine="jit")  # no turn of its loop
    assert np.array_equal(y, before)
    assert count.direct == calls + 5 and count.made == made
    for a in (3, np.float32(0.25), True, np.int8(-7), np.array(5.0)) * 3:
        kernel(x, y, a, 1, engine="jit")
        assert np.array_equal(y, x * np.float32(a))
    number = np.array(1.0)
    for _ in range(4):
        number += 1
        kernel(x, y, number, 1, engine="jit")
        assert np.array_equal(y, x * np.float32(number))


@pytest.mark.parametrize("kind", ["bf16", "f16", "i8", "f8e4m3"])
def test_elements_whose_bytes_numpy_lends_nobody(kind: str, count: Count) -> None:
    elements = getattr(pto, kind)

    @pto.kernel(profile="a5")
    def copy(x: pto.Global, y: pto.Global) -> None:
        t = pto.tile(8, 64, elements)
        isa.tload(t, x)
        isa.tstore(y, t)

    for _ in range(4):
        x = RNG.integers(0, 100, (8, 64)).astype(np.uint8).astype(elements.numpy)
        y = np.zeros_like(x)
        copy(x, y, engine="jit")
        assert x.tobytes() == y.tobytes()
    assert count.direct == 3


def test_other_types_shapes_and_grids_are_other_calls() -> None:
    @pto.kernel(profile="a5")
    def double(x: pto.Global, y: pto.Global) -> None:
        i = pto.block_idx() * 8
        t = pto.tile(8, x.shape[1], x.dtype)
        isa.tload(t, x[i : i + 8, :])
        isa.tadd(t, t, t)
        isa.tstore(y[i : i + 8, :], t)

    for _ in range(3):
        for kind in (np.float32, np.int32, np.float16):
            for rows, cols in ((8, 64), (16, 64), (16, 128), (64, 32)):
                for blocks in {1, rows // 8}:
                    x = RNG.integers(-9, 9, (rows, cols)).astype(kind)
                    y = np.zeros_like(x)
                    double[blocks](x, y, engine="jit")
                    assert np.array_equal(y[: 8 * blocks], 2 * x[: 8 * blocks])
                    assert not y[8 * blocks :].any()


def test_sizes_with_names_are_those_of_the_call(count: Count) -> None:
    @pto.kernel(profile="a5")
    def add(x: Matrix, y: Matrix) -> None:
        for i in pto.range(x.shape[0]):
            t = pto.tile(1, 64, pto.f32)
            isa.tload(t, x[i : i + 1, :])
            isa.tadds(t, t, 1.0)
            isa.tstore(y[i : i + 1, :], t)

    for n in range(4):
        for rows in (3, 5, 9):
            x, y = np.full((rows, 48), n, np.float32), np.zeros((rows, 48), np.float32)
            add(x, y, engine="jit")
            assert (y == n + 1).all()
    assert count.direct == 9 and count.made == 3 + 3  # of each size one as any, one to remember


def test_grids_and_numbers_of_calls_that_take_turns(count: Count) -> None:
    kernel = scaled()
    for n in range(5):
        for blocks in (1, 2, 4):
            for a in (2.0, 3.0):
                x, y = data(4), np.zeros((32, 64), np.float32)
                kernel[blocks](x, y, a + blocks, 1, engine="jit")
                assert np.array_equal(y[: 8 * blocks], (a + blocks) * x[: 8 * blocks])
                assert not y[8 * blocks :].any()
        if n == 1:
            before = count.made
    assert count.made == before


def test_constants_and_what_the_function_sees_are_looked_at_each_time() -> None:
    step = 1.0

    @pto.kernel(profile="a5")
    def add(y: pto.Global[pto.f32], c: float) -> None:
        t = pto.tile(8, 64, pto.f32)
        isa.texpands(t, c)
        isa.tadds(t, t, step)
        isa.tstore(y, t)

    for step in (1.0, 2.0, 1.0):
        for c in (0.5, 7.0, 0.5, 0.5):
            y = data()
            add(y, c, engine="jit")
            assert (y == c + step).all()
    for c in (0.0, -0.0, 0.0):
        step, y = -0.0, data()
        add(y, c, engine="jit")
        assert np.signbit(y).all() == np.signbit(c)


# ---- what is judged each time


def test_a_number_is_judged_each_time() -> None:
    kernel = scaled()
    called(kernel)
    y = data()
    before = y.copy()
    for a, n in ((1e300, 1), (2.0, 1 << 40), (2.0, -(1 << 31) - 1)):
        with pytest.raises(PtoError, match="PTO-U033"):
            kernel(data(), y, a, n, engine="jit")
        assert np.array_equal(y, before)
    called(kernel)


def test_an_array_that_may_not_be_written_is_refused() -> None:
    kernel = scaled()
    called(kernel)
    x, y = data(), data()
    y.flags.writeable = False
    before = y.copy()
    for _ in range(2):
        with pytest.raises(PtoError, match="PTO-M194"):
            kernel(x, y, 2.0, 1, engine="jit")
    assert np.array_equal(y, before)
    x.flags.writeable, y = False, data()
    for _ in range(3):  # one that is only read may be so
        kernel(x, y, 2.0, 1, engine="jit")
        assert np.array_equal(y, 2 * x)


def test_arrays_that_are_not_in_one_piece_are_copied_and_given_back() -> None:
    kernel = scaled()
    called(kernel)
    for _ in range(3):
        x, y = data(2)[::2], np.zeros((64, 8), np.float32).T
        kernel(x, y, 2.0, 1, engine="jit")
        assert np.array_equal(y, 2 * x)


@pytest.mark.parametrize(
    ("wrong", "code"),
    [
        (np.zeros((8, 64), np.float64), "PTO-U213"),
        (np.zeros((8, 64), ">f4"), "PTO-U213"),
        (np.zeros((0, 64), np.float32), "PTO-U212"),
        (np.ma.masked_array(np.zeros((8, 64), np.float32)), "PTO-U191"),
        (3.0, "PTO-U212"),
        (None, "PTO-U212"),
    ],
)
def test_what_is_no_such_array_is_refused_after_many_that_were(wrong: Any, code: str) -> None:
    kernel = scaled()
    called(kernel)
    with pytest.raises(PtoError, match=code):
        kernel(wrong, data(), 2.0, 1, engine="jit")


@pytest.mark.parametrize("blocks", [1.0, "1", None, (1.0,), 0])
def test_a_grid_is_judged_each_time(blocks: Any) -> None:
    kernel = scaled()
    called(kernel)
    with pytest.raises(PtoError, match="PTO-U039"):
        kernel[blocks](data(), data(), 2.0, 1, engine="jit")


def test_a_timeout_is_judged_each_time_and_ends_a_call(count: Count) -> None:
    kernel = scaled()
    called(kernel)
    x, y, before = data(), data(), count.direct
    with pytest.raises(PtoError, match="PTO-U094"):
        kernel(x, y, 2.0, 1, engine="jit", timeout=-1)
    timed_out(lambda: kernel(x, y, 2.0, (1 << 31) - 1, engine="jit", timeout=0.2))
    assert count.direct == before + 2
    kernel(x, y, 3.0, 1, engine="jit", timeout=60)
    called(kernel)  # nothing is left of the limit
    assert np.array_equal(y, 3 * x)


def test_an_interrupt_ends_a_call(count: Count) -> None:
    module, array = pto.parse(WHILE), np.zeros(1, np.int32)
    for _ in range(3):
        pto.launch(module, args=[array, False], engine="jit")
    before, main = count.direct, threading.get_ident()
    usual = signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored in the background
    interrupt = threading.Timer(0.5, lambda: signal.pthread_kill(main, signal.SIGINT))
    interrupt.start()
    with pytest.raises(KeyboardInterrupt):
        pto.launch(module, args=[array, True], engine="jit")
    interrupt.join()
    signal.signal(signal.SIGINT, usual)
    assert count.direct == before + 1
    pto.launch(module, args=[array, False], engine="jit")
    assert array[0] == 1


def test_an_interrupt_before_compiled_code_runs_leaves_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    kernel, encode = scaled(), ScalarValue.encode
    called(kernel)

    def interrupted(self: Any, *given: Any) -> bool:
        encode(self, *given)
        raise KeyboardInterrupt

    monkeypatch.setattr(ScalarValue, "encode", interrupted)
    with pytest.raises(KeyboardInterrupt):
        kernel(data(), data(), 5.0, 1, engine="jit")
    monkeypatch.undo()
    called(kernel)  # with the number that it had before


# ---- errors, and operations that Python does


PICK = """
module attributes {pto.target_arch = "a5"} {
  func.func @pick(%p: !pto.ptr<i32>, %q: !pto.ptr<i32>, %at: index) {
    %b = pto.get_block_idx
    %k = arith.index_cast %b : i64 to index
    %n = arith.addi %at, %k : index
    %v = pto.load_scalar %p[%n] : !pto.ptr<i32> -> i32
    pto.store_scalar %v, %q[%k] : !pto.ptr<i32>, i32
    return
  }
}
"""


def pick(module: Any, x: Any, y: Any, at: int) -> None:
    pto.launch(module, args=[x, y, at], engine="jit", blocks=len(y))


@pytest.mark.parametrize("number", ["1", "2"])
def test_an_error_is_that_of_a_first_call(
    number: str, count: Count, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PTO_THREADS", number)
    for name in ("_LAUNCH", "_TRIAL"):
        monkeypatch.setattr(threads, name, 0.0)
    module, other, x = pto.parse(PICK), pto.parse(PICK), np.arange(6, dtype=np.int32)
    for at in (0, 1, 2):
        y = np.zeros(4, np.int32)
        pick(module, x, y, at)
        assert np.array_equal(y, x[at : at + 4])
    found = []
    for each in (other, module, module):
        y = np.zeros(4, np.int32)
        with pytest.raises(PtoError) as error:
            pick(each, x, y, 4)  # for blocks 2 and 3 there is nothing
        found.append([(d.code, d.message, str(d.loc)) for d in error.value.diagnostics])
        assert y.tolist() == [4, 5, 0, 0]
    assert found[0] == found[1] == found[2]
    assert count.direct == 4
    pick(module, x, y, 1)
    assert y.tolist() == [1, 2, 3, 4]


PRINTS = """
module attributes {pto.target_arch = "a5"} {
  func.func @f(%p: !pto.ptr<i32>) {
    %k = pto.get_block_idx
    %i = arith.index_cast %k : i64 to index
    %v = pto.load_scalar %p[%i] : !pto.ptr<i32> -> i32
    pto.print ins("%d", %v : i32)
    return
  }
}
"""


@pytest.mark.parametrize("number", ["1", "2"])
def test_what_blocks_print_is_theirs(
    number: str, count: Count, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PTO_THREADS", number)
    module = pto.parse(PRINTS)
    for n in range(4):
        numbers = np.arange(3, dtype=np.int32) + n
        report = pto.launch(module, args=[numbers], engine="jit", blocks=3)
        assert report.printed == tuple(map(str, numbers))
    assert count.direct == 3 and count.made == 4


LEFT = "pto.tmuls"


def test_an_operation_that_python_does_finds_the_arrays_of_the_call(
    count: Count, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Such a call has a machine of its own; what NumPy would warn of is no news."""
    kernel, given = scaled(), emitter.emitter_of
    for module in (emitter, steps):
        monkeypatch.setattr(module, "emitter_of", lambda op: None if op.name == LEFT else given(op))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for n in range(4):
            x, y = data() + n, data()
            report = kernel(x, y, 3e38, 1, engine="jit")
            with np.errstate(all="ignore"):
                assert np.array_equal(y, x * np.float32(3e38))
    assert (LEFT, "no emitter") in report.left_out
    assert count.direct == 3 and count.made == 4


# ---- arrays


@pytest.mark.parametrize("fails", [False, True])
def test_no_array_is_kept(fails: bool) -> None:
    module, x, y = pto.parse(PICK), np.arange(4, dtype=np.int32), np.zeros(2, np.int32)
    for at in range(3):
        pick(module, x, y, at)
    if fails:
        with pytest.raises(PtoError):
            pick(module, x, y, 3)
    seen = weakref.ref(x), weakref.ref(y)
    del x, y
    gc.collect()
    assert [ref() for ref in seen] == [None, None]


def test_arrays_that_are_gone_are_not_touched() -> None:
    kernel = scaled()
    for _ in range(50):
        called(kernel, times=2)
        gone = [data(16) for _ in range(8)]  # in the place of those that were
        before = [each.copy() for each in gone]
        called(kernel, times=2)
        assert all(map(np.array_equal, gone, before))


def test_one_array_for_two_parameters_is_one_memory(count: Count) -> None:
    kernel = scaled()
    for n in range(12):
        x, y = data(), data()
        before = x.copy()
        if n % 6 > 2:
            kernel(x, x, 3.0, 2, engine="jit")
            assert np.array_equal(x, 9 * before)
            continue
        kernel(x, y, 3.0, 2, engine="jit")
        assert np.array_equal(y, 3 * before) and np.array_equal(x, before)
    assert count.direct == 11 and count.made == 2 + 3  # it is set up when the other comes


@pytest.mark.parametrize("number", ["1", "4"])
def test_arrays_that_overlap_run_in_order(number: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """y begins one block behind x: each block doubles what the last one made."""
    monkeypatch.setenv("PTO_THREADS", number)
    for name in ("_LAUNCH", "_TRIAL"):
        monkeypatch.setattr(threads, name, 0.0)
    kernel = scaled()
    called(kernel, 16)
    for _ in range(3):
        memory = np.ones((17 * 8, 64), np.float32)
        kernel[16](memory[:-8], memory[8:], 2.0, 1, engine="jit")
        assert memory[::8, 0].tolist() == [2.0**n for n in range(17)]
        called(kernel, 16)


def test_tensors_are_used_where_they_lie(count: Count) -> None:
    kernel = scaled()
    for n in range(5):
        x, y = data(), data()
        kernel(Tensor(x), Tensor(y) if n < 4 else y, float(n), 1, engine="jit")
        assert np.array_equal(y, n * x)
    assert count.direct == 3 and count.made == 1 + 1 + 1  # NumPy and tensors are another call
    x, y = data(2)[::2], data(2)[::2]
    for n in range(3):  # copied, and given back
        kernel(Tensor(x), Tensor(y), float(n), 1, engine="jit")
        assert np.array_equal(y, n * x)
    for _ in range(2):
        with pytest.raises(PtoError, match="PTO-U191"):
            kernel(Tensor(data(), "cuda:0"), Tensor(y), 1.0, 1, engine="jit")
        with pytest.raises(PtoError, match="PTO-U213"):
            kernel(Tensor(np.zeros((8, 64), np.float16)), Tensor(y), 1.0, 1, engine="jit")
    x = data()
    kernel(Tensor(x), Tensor(x), 2.0, 3, engine="jit")
    seen = weakref.ref(x)
    del x
    gc.collect()
    assert seen() is None


# ---- what is around a call


def test_the_environment_is_asked_each_time(
    count: Count, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    @pto.kernel(profile="a5")
    def speak(x: pto.Global[pto.f32]) -> None:
        t = pto.tile(8, 64, pto.f32)
        isa.tload(t, x)
        isa.tstore(x, t)
        pto.print("done")

    monkeypatch.setenv("PTO_ENGINE", "jit")
    monkeypatch.setenv("PTO_DEBUG", "0")
    for _ in range(3):
        assert speak(data()).printed == ()
    monkeypatch.setenv("PTO_DEBUG", "1")
    assert speak(data()).printed == ("done",)
    monkeypatch.setenv("PTO_DEBUG", "0")
    direct = count.direct
    assert speak(data()).engine == "jit" and count.direct == direct + 1
    monkeypatch.setenv("PTO_ENGINE", "reference")
    assert speak(data()).engine == "reference"
    monkeypatch.setenv("PTO_ENGINE", "fast")
    with pytest.raises(PtoError, match="PTO-U072"):
        speak(data())


def test_the_sanitizer_can_be_enabled_at_any_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    @pto.kernel(profile="a5")
    def unset(y: pto.Global[pto.f32]) -> None:
        t = pto.tile(8, 64, pto.f32)
        isa.tadds(t, t, 1.0)
        isa.tstore(y, t)

    for _ in range(3):
        unset(data(), engine="jit")
    monkeypatch.setenv("PTO_SANITIZE", "1")
    for _ in range(3):
        with pytest.raises(PtoError):
            unset(data(), engine="jit")
    monkeypatch.setenv("PTO_SANITIZE", "0")
    unset(data(), engine="jit")


def test_the_number_of_threads_is_asked_for_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = scaled()
    called(kernel, 2)
    monkeypatch.setenv("PTO_THREADS", "many")
    with pytest.raises(PtoError, match="PTO-U091"):
        kernel[2](data(2), data(2), 2.0, 1, engine="jit")


def test_the_size_of_a_buffer_is_asked_for_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    @pto.kernel(profile="cpu")
    def copy(x: pto.Global[pto.f32], y: pto.Global[pto.f32]) -> None:
        t = pto.tile(8, 64, pto.f32)
        isa.tload(t, x)
        isa.tstore(y, t)

    x, y = data(), data()
    module = copy.module(x, y)
    for _ in range(3):
        pto.launch(module, args=[x, y], engine="jit")
    monkeypatch.setenv("PTO_CPU_SIM_UB_BYTES", "1024")
    with pytest.raises(PtoError, match="PTO-M105"):
        pto.launch(module, args=[x, y], engine="jit")


def test_a_place_that_is_chosen_gets_the_launch(count: Count) -> None:
    class There:
        asked = 0

        def run(self, grid: Any) -> bool:
            self.asked += 1
            return False

    kernel, there = scaled(), There()
    called(kernel)
    token = selected_cluster.set(there)  # type: ignore[arg-type]
    try:
        direct = count.direct
        called(kernel, times=3)
        assert there.asked == 3 and count.direct == direct
    finally:
        selected_cluster.reset(token)
    called(kernel)
    assert there.asked == 3 and count.direct == direct + 3


def test_who_wants_to_hear_of_blocks_does() -> None:
    kernel, heard = scaled(), []
    called(kernel, 3)
    how: dict[str, Any] = {"engine": "jit", "progress": lambda *done: heard.append(done)}
    kernel[3](data(3), data(3), 2.0, 1, **how)
    assert heard[-1] == (3, 3)


def test_the_program_of_the_last_call_is_shown() -> None:
    @pto.kernel(profile="a5")
    def copy(x: pto.Global) -> None:
        t = pto.tile(8, 64, x.dtype)
        isa.tload(t, x)
        isa.tstore(x, t)

    for _ in range(3):
        for kind, name in ((np.float32, "f32"), (np.int32, "i32")):
            copy(np.zeros((8, 64), kind), engine="jit")
            assert f"ptr<{name}" in copy.ir


# ---- threads


@pytest.mark.parametrize("blocks", [1, 6])
def test_threads_of_the_host_call_at_once(blocks: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PTO_THREADS", "2")
    for name in ("_LAUNCH", "_TRIAL"):
        monkeypatch.setattr(threads, name, 0.0)
    kernel, wrong = scaled(), []
    called(kernel, blocks)
    end = time.monotonic() + 1.0

    def work(seed: int) -> None:
        rng = np.random.default_rng(seed)
        while time.monotonic() < end:
            x = rng.integers(-9, 9, (8 * blocks, 64)).astype(np.float32)
            y = np.zeros_like(x)
            kernel[blocks](x, y, float(seed), 1, engine="jit")
            if not np.array_equal(y, seed * x):
                wrong.append(seed)

    workers = [threading.Thread(target=work, args=(n,)) for n in range(2, 6)]
    for each in workers:
        each.start()
    for each in workers:
        each.join()
    assert not wrong


# ---- modules


def _another_operand(op: Any) -> None:
    op.operands = [op.operands[0], op.operands[0], op.operands[2]]


def _another_list(op: Any) -> None:
    op.operands[1] = op.operands[0]


@pytest.mark.parametrize("change", [_another_operand, _another_list])
def test_a_module_that_was_changed_is_another_program(change: Callable[[Any], None]) -> None:
    @pto.kernel(profile="a5")
    def difference(x: pto.Global[pto.f32], y: pto.Global[pto.f32], z: pto.Global[pto.f32]) -> None:
        a, b = pto.tile(8, 64, pto.f32), pto.tile(8, 64, pto.f32)
        isa.tload(a, x)
        isa.tload(b, y)
        isa.tsub(b, a, b)
        isa.tstore(z, b)

    x, y, z = data(), data(), data()
    module = difference.module(x, y, z)
    for _ in range(3):
        pto.launch(module, args=[x, y, z], engine="jit")
        assert np.array_equal(z, x - y)
    change(next(op for op in module.walk() if op.name == "pto.tsub"))
    for _ in range(3):
        pto.launch(module, args=[x, y, z], engine="jit")
        assert not z.any()


@pytest.mark.parametrize("used", [300, 2])
def test_more_arrays_than_an_agent_can_name(used: int, count: Count) -> None:
    """Compiled code has no form for them: the reference does their work, where there is any."""
    names = [f"%p{n}" for n in range(300)]
    given = ", ".join(f"{name}: !pto.ptr<i32>" for name in names)
    stores = "\n".join(f"pto.store_scalar %v, {n}[%c0] : !pto.ptr<i32>, i32" for n in names[:used])
    module = pto.parse(f"""
module attributes {{pto.target_arch = "a5"}} {{
  func.func @f({given}, %v: i32) {{
    %c0 = arith.constant 0 : index
    {stores}
    return
  }}
}}
""")
    for n in range(1, 4):
        arrays = [np.zeros(1, np.int32) for _ in names]
        pto.launch(module, args=[*arrays, n], engine="jit")
        assert [a[0] for a in arrays] == [n] * used + [0] * (300 - used)
    assert count.direct == 2


def test_entries_of_a_module_are_compared_with_one_picture(monkeypatch: pytest.MonkeyPatch) -> None:
    """A module of hundreds of functions is not copied for each of them."""
    made: list[object] = []
    begin = host._Snapshot.__init__

    def noted(self: Any, module: Any) -> None:
        made.append(module)
        begin(self, module)

    monkeypatch.setattr(host._Snapshot, "__init__", noted)
    name = "func.func @{}(%p: !pto.ptr<i32, gm>) attributes {{pto.kernel}} {{ return }}"
    both = "\n".join(name.format(each) for each in ("one", "two"))
    module = pto.parse(f'module attributes {{pto.target_arch = "a5"}} {{\n{both}\n}}')
    for entry in ("one", "two", "one", "two"):
        pto.launch(module, entry=entry, args=[np.zeros(1, np.int32)])
    assert made == [module]
    next(iter(module.functions())).attrs["more"] = Bool(True)
    for entry in ("two", "one"):
        pto.launch(module, entry=entry, args=[np.zeros(1, np.int32)])
    assert made == [module, module]
