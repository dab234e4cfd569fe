"""The host prepares and submits: streams, events, graphs, arrays of any owner."""

from __future__ import annotations

import subprocess
import sys
import threading
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import pto
from pto import isa
from pto.core.errors import PtoError

ADD = """
!whole = !pto.tensor_view<?x64xf32>
!part = !pto.partition_tensor_view<16x64xf32>
!tile = !pto.tile_buf<vec, 16x64xf32>
module attributes {pto.target_arch = "a5"} {
  func.func @add(%a: !pto.ptr<f32>, %b: !pto.ptr<f32>, %c: !pto.ptr<f32>) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c16 = arith.constant 16 : index
    %c64 = arith.constant 64 : index
    %n64 = pto.get_block_num
    %n = arith.index_cast %n64 : i64 to index
    %rows = arith.muli %n, %c16 : index
    %i64 = pto.get_block_idx
    %i = arith.index_cast %i64 : i64 to index
    %at = arith.muli %i, %c16 : index
    %va = pto.make_tensor_view %a, shape = [%rows, %c64], strides = [%c64, %c1] : !whole
    %vb = pto.make_tensor_view %b, shape = [%rows, %c64], strides = [%c64, %c1] : !whole
    %vc = pto.make_tensor_view %c, shape = [%rows, %c64], strides = [%c64, %c1] : !whole
    %pa = pto.partition_view %va, offsets = [%at, %c0], sizes = [%c16, %c64] : !whole -> !part
    %pb = pto.partition_view %vb, offsets = [%at, %c0], sizes = [%c16, %c64] : !whole -> !part
    %pc = pto.partition_view %vc, offsets = [%at, %c0], sizes = [%c16, %c64] : !whole -> !part
    %ta = pto.alloc_tile : !tile
    %tb = pto.alloc_tile : !tile
    pto.tload ins(%pa : !part) outs(%ta : !tile)
    pto.tload ins(%pb : !part) outs(%tb : !tile)
    pto.tadd ins(%ta, %tb : !tile, !tile) outs(%ta : !tile)
    pto.tstore ins(%ta : !tile) outs(%pc : !part)
    pto.print ins("block %d\\0A", %i64 : i64)
    return
  }
}
"""

SCALE = """
module attributes {pto.target_arch = "a5"} {
  func.func @scale(%p: !pto.ptr<f32>, %x: f32, %n: i32) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %end = arith.index_cast %n : i32 to index
    scf.for %i = %c0 to %end step %c1 {
      %v = pto.load_scalar %p[%i] : !pto.ptr<f32> -> f32
      %w = arith.mulf %v, %x : f32
      pto.store_scalar %w, %p[%i] : !pto.ptr<f32>, f32
    }
    return
  }
}
"""


def ones(rows: int = 64) -> np.ndarray[Any, Any]:
    return np.ones((rows, 64), np.float32)


def code_of(run: Any) -> str:
    with pytest.raises(PtoError) as caught:
        run()
    return caught.value.code


# ---- start


def test_importing_the_package_loads_nothing_heavy() -> None:
    check = "import sys, pto; print([m for m in sys.modules if m.startswith(('pto.run', 'numpy'))])"
    found = subprocess.run(
        [sys.executable, "-c", check], capture_output=True, text=True, check=True
    )
    assert found.stdout.strip() == "[]"


@pytest.mark.parametrize(
    "name", ["Device", "Event", "Graph", "Launch", "Stream", "World", "launch"]
)
def test_names_of_the_host_are_public(name: str) -> None:
    assert getattr(pto, name).__module__.startswith("pto.run.")


def test_a_device_narrows_its_profile() -> None:
    device = pto.Device("a2a3", device="910b1")
    assert device.profile.device == "910b1" and device.profile.buffers["ub"] == 192 * 1024


# ---- streams


def test_a_launch_runs_when_somebody_synchronises() -> None:
    device = pto.Device("a5", device="950pr")
    stream = device.stream()
    a, b, c = ones(), 2 * ones(), np.zeros((64, 64), np.float32)
    launch = stream.launch(ADD, args=[a, b, c], blocks=4)
    assert not launch.is_done and not c.any()
    device.synchronize()
    assert launch.is_done and (c == 3).all()
    assert launch.printed == ("block 0\n", "block 1\n", "block 2\n", "block 3\n")


@pytest.mark.parametrize("blocks", [4, (4,), (2, 2), (4, 1, 1)])
def test_a_grid_of_any_shape_has_the_product_of_its_sizes(blocks: Any) -> None:
    stream = pto.Device("a5").stream()
    c = np.zeros((64, 64), np.float32)
    stream.launch(ADD, args=[ones(), ones(), c], blocks=blocks)
    stream.synchronize()
    assert (c == 2).all()


def test_work_of_one_stream_is_done_in_order() -> None:
    stream = pto.Device("a5").stream()
    p = np.array([1, 2, 3], np.float32)
    stream.launch(SCALE, args=[p, 2.0, 3])
    stream.launch(SCALE, args=[p, 0.5, 2])
    stream.launch(SCALE, args=[p, 10.0, 1])
    stream.synchronize()
    assert p.tolist() == [10, 2, 6]


def test_an_event_orders_two_streams() -> None:
    """The second stream was made first, and would begin first."""
    device = pto.Device("a5")
    late, early = device.stream(), device.stream()
    a, b, c, d = ones(16), ones(16), np.zeros((16, 64), np.float32), np.zeros((16, 64), np.float32)
    early.launch(ADD, args=[a, b, c])
    event = early.record()
    late.wait(event)
    late.launch(ADD, args=[c, b, d])
    assert not event.is_done
    device.synchronize()
    assert event.is_done and (d == 3).all()


def test_streams_of_two_ranks_wait_for_each_others_events() -> None:
    world = pto.World(2, "a5")
    first, second = world[0].stream(), world[1].stream()
    p = np.array([3], np.float32)
    second.launch(SCALE, args=[p, 2.0, 1])
    first.wait(second.record())
    first.launch(SCALE, args=[p, 10.0, 1])
    second.wait(first.record())
    second.launch(SCALE, args=[p, 0.5, 1])
    world.synchronize()
    assert p[0] == 30


def test_an_event_that_will_not_happen_is_told() -> None:
    device = pto.Device("a5")
    first, second = device.stream(), device.stream()
    first.wait(pto.Event(second))
    with pytest.raises(PtoError) as caught:
        device.synchronize()
    (found,) = caught.value.diagnostics
    assert found.code == "PTO-D195"
    assert [n.message for n in found.notes] == ["stream 0 waits for an event of stream 1"]
    device.synchronize()


def test_errors_of_a_program_are_told_when_it_is_submitted() -> None:
    stream = pto.Device("a5").stream()
    bad = ADD.replace("%ta, %tb : !tile, !tile", "%ta, %a : !tile, !pto.ptr<f32>")
    with pytest.raises(PtoError):
        stream.launch(bad, args=[ones(), ones(), ones()])
    assert code_of(lambda: stream.launch(ADD, args=[ones()])) == "PTO-U032"


def test_an_error_in_a_kernel_names_its_line_and_forgets_what_waits_behind_it() -> None:
    device = pto.Device("a5")
    stream = device.stream()
    small, c = np.zeros((8, 64), np.float32), ones()
    stream.launch(ADD, args=[small, ones(), c], blocks=4)
    stream.launch(ADD, args=[ones(), ones(), c], blocks=4)
    with pytest.raises(PtoError) as caught:
        device.synchronize()
    (found,) = caught.value.diagnostics
    assert found.code == "PTO-M001" and found.loc is not None
    assert "tload ins(%pa" in ADD.split("\n")[found.loc.line - 1]
    device.synchronize()
    assert (c == 1).all()


# ---- graphs


def test_a_graph_is_captured_once_and_replayed() -> None:
    device = pto.Device("a5")
    stream, other = device.stream(), device.stream()
    p = np.array([1, 1], np.float32)
    with device.capture() as graph:
        stream.launch(SCALE, args=[p, 2.0, 2])
        event = stream.record()
        other.wait(event)
        other.launch(SCALE, args=[p, 3.0, 1])
    device.synchronize()
    assert graph.launches == 2 and p.tolist() == [1, 1]
    for _ in range(3):
        graph.replay(stream)
    device.synchronize()
    assert p.tolist() == [6**3, 2**3]


def test_a_replay_sees_what_the_arrays_hold_then() -> None:
    device = pto.Device("a5")
    stream = device.stream()
    a, b, c = ones(16), ones(16), np.zeros((16, 64), np.float32)
    with device.capture() as graph:
        stream.launch(ADD, args=[a, b, c])
    a[:] = 41
    (launch,) = graph.replay(stream)
    device.synchronize()
    assert (c == 42).all() and launch.is_done


# ---- arrays


class Interface:
    """An owner of memory with the array interface alone."""

    def __init__(self, array: np.ndarray[Any, Any]) -> None:
        self._array = array
        self.__array_interface__ = array.__array_interface__


class Dlpack:
    """An owner of memory with DLPack alone."""

    def __init__(self, array: np.ndarray[Any, Any], place: int = 1) -> None:
        self._array, self._place = array, place

    def __dlpack__(self, **options: Any) -> Any:
        return self._array.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._place, 0


class Tensor:
    """As torch spells a tensor, bf16 and all."""

    def __init__(self, array: np.ndarray[Any, Any], device: str = "cpu") -> None:
        self.array, self.device, self.shape = array, device, array.shape

    def data_ptr(self) -> int:
        return self.array.ctypes.data

    def element_size(self) -> int:
        return self.array.itemsize

    def numel(self) -> int:
        return self.array.size

    def is_contiguous(self) -> bool:
        return self.array.flags.c_contiguous

    def contiguous(self) -> Tensor:
        return Tensor(np.ascontiguousarray(self.array))

    def copy_(self, other: Tensor) -> Tensor:
        self.array[...] = other.array
        return self


def strided(rows: int = 16) -> np.ndarray[Any, Any]:
    return np.zeros((2 * rows, 64), np.float32)[::2]


@pytest.mark.parametrize("wrap", [np.asarray, Interface, Dlpack, Tensor], ids=lambda w: w.__name__)
@pytest.mark.parametrize(
    "make", [lambda: np.zeros((16, 64), np.float32), strided], ids=["plain", "strided"]
)
def test_results_are_written_into_what_was_passed(wrap: Any, make: Any) -> None:
    out = make()
    stream = pto.Device("a5").stream()
    stream.launch(ADD, args=[wrap(ones(16)), wrap(2 * ones(16)), wrap(out)])
    stream.synchronize()
    assert (out == 3).all()


def test_a_transposed_array_gets_its_result_back() -> None:
    out = np.zeros((64, 16), np.float32).T
    stream = pto.Device("a5").stream()
    stream.launch(ADD, args=[ones(16), ones(16), out])
    stream.synchronize()
    assert (out == 2).all()


COPY_BF16 = SCALE.replace("f32", "bf16").replace("%x: bf16", "%x: bf16")


@pytest.mark.parametrize("wrap", [np.asarray, Tensor])
def test_bf16_goes_in_and_comes_back(wrap: Any) -> None:
    values = np.array([1.5, -2.25, 3.0], ml_dtypes.bfloat16)
    stream = pto.Device("a5").stream()
    stream.launch(COPY_BF16, args=[wrap(values), 2.0, 3])
    stream.synchronize()
    assert values.astype(np.float32).tolist() == [3.0, -4.5, 6.0]


def test_a_read_only_array_can_be_read() -> None:
    a, c = ones(16), np.zeros((16, 64), np.float32)
    a.flags.writeable = False
    stream = pto.Device("a5").stream()
    stream.launch(ADD, args=[a, a, c])
    stream.synchronize()
    assert (c == 2).all()


def test_a_read_only_array_cannot_be_a_result() -> None:
    out = np.zeros((16, 64), np.float32)
    out.flags.writeable = False
    stream = pto.Device("a5").stream()
    with pytest.raises(pto.PtoError) as caught:
        stream.launch(ADD, args=[ones(16), ones(16), out])
    (found,) = caught.value.diagnostics
    assert found.code == "PTO-M194" and found.loc is not None  # before the run, at the store
    assert "pto.tstore" in ADD.splitlines()[found.loc.line - 1]


@pytest.mark.parametrize("kind", [np.float64, np.float16, np.int64, np.int32, np.uint8, np.uint32])
def test_an_array_of_other_elements_is_refused(kind: Any) -> None:
    stream = pto.Device("a5").stream()
    assert (
        code_of(lambda: stream.launch(ADD, args=[ones().astype(kind), ones(), ones()]))
        == "PTO-T194"
    )


@pytest.mark.parametrize("kind", [np.dtype("V4"), np.dtype([("re", "f2"), ("im", "f2")])])
def test_bits_are_not_taken_for_numbers(kind: Any) -> None:
    p = np.array([1.5, 2.5], np.float32)
    stream = pto.Device("a5").stream()
    assert code_of(lambda: stream.launch(SCALE, args=[p.view(kind), 2.0, 2])) == "PTO-T194"


@pytest.mark.parametrize(
    "far", [Tensor(np.zeros(4, np.float32), "cuda:0"), Dlpack(np.zeros(4, np.float32), 2)]
)
def test_memory_of_another_device_is_refused(far: Any) -> None:
    stream = pto.Device("a5").stream()
    assert code_of(lambda: stream.launch(SCALE, args=[far, 2.0, 1])) == "PTO-U191"


def test_an_array_where_a_number_belongs_is_refused() -> None:
    stream = pto.Device("a5").stream()
    stream.launch(SCALE, args=[np.zeros(1, np.float32), np.zeros(3, np.float32), 1])
    assert code_of(stream.synchronize) == "PTO-U033"


def test_arrays_of_finished_launches_are_let_go() -> None:
    device = pto.Device("a5")
    stream = device.stream()
    for _ in range(5):
        stream.launch(SCALE, args=[np.ones(4, np.float32), 2.0, 4])
    stream.synchronize()
    assert device._arrays == []  # pyright: ignore[reportPrivateUsage]


def test_one_array_for_two_parameters_is_one_memory() -> None:
    a, b = ones(16), 5 * ones(16)
    stream = pto.Device("a5").stream()
    stream.launch(ADD, args=[a, b, a])
    stream.launch(ADD, args=[a, b, a])
    stream.synchronize()
    assert (a == 11).all()


# ---- programs


def test_a_program_is_text_a_path_or_parsed(tmp_path: Any) -> None:
    path = tmp_path / "scale.pto"
    path.write_text(SCALE)
    p = np.ones(1, np.float32)
    stream = pto.Device("a5").stream()
    for program in (SCALE, path, str(path), pto.parse(SCALE)):
        stream.launch(program, args=[p, 2.0, 1])
    stream.synchronize()
    assert p[0] == 16


def test_a_program_is_prepared_once() -> None:
    module = pto.parse(SCALE)
    device = pto.Device("a5")
    one, two = (device.kernel(module) for _ in range(2))
    assert one is two


# ---- kernels of Python, text and threads: one way


@pto.kernel(profile="a5")
def fill(x: pto.Global[pto.f32], n: pto.Scalar[pto.f32]) -> None:
    t = pto.tile(8, 64, pto.f32)
    isa.texpands(t, n)
    isa.tstore(x[pto.block_idx() * 8 :, :], t)


@pto.kernel(profile="a5")
def add(x: pto.Global[pto.f32], y: pto.Global[pto.f32]) -> None:
    i = pto.block_idx() * 8
    t, u = pto.tile(8, 64, pto.f32), pto.tile(8, 64, pto.f32)
    isa.tload(t, x[i:, :])
    isa.tload(u, y[i:, :])
    isa.tadd(t, t, u)
    isa.tstore(y[i:, :], t)


@pytest.mark.parametrize("engine", ["reference", "jit"])
def test_a_stream_launches_kernels_of_python_beside_text(engine: str) -> None:
    device = pto.Device("a5", engine=engine)
    first, second = device.stream(), device.stream()
    x, y, z = ones(16), np.zeros((16, 64), np.float32), np.zeros((16, 64), np.float32)
    made = first.launch(fill[2], x, 3.0)
    first.launch(SCALE, x, 2.0, 16 * 64)
    second.wait(first.record())
    second.launch(add[2], x, y=y)
    second.launch(ADD, args=[x, y, z], blocks=1)
    assert not made.is_done and (x == 1).all()
    device.synchronize()
    assert made.is_done and made.kernel.engine == engine
    assert (x == 6).all() and (y == 6).all() and (z == 12).all()


def test_a_kernel_of_one_block_needs_no_grid() -> None:
    device = pto.Device("a5")
    x = ones(8)
    device.stream().launch(fill, x, n=4.0)
    device.synchronize()
    assert (x == 4).all()


def test_ranks_launch_kernels_of_python() -> None:
    world = pto.World(3, "a5")
    data = [ones(16) for _ in range(3)]
    world.launch(fill[2], args=[[x, float(rank)] for rank, x in enumerate(data)])
    world.synchronize()
    assert all((x == rank).all() for rank, x in enumerate(data))


def test_a_graph_replays_kernels_of_python() -> None:
    device = pto.Device("a5")
    x, y = ones(8), np.zeros((8, 64), np.float32)
    with device.capture() as graph:
        device.stream().launch(add[1], x, y)
    for _ in range(3):
        graph.replay(device.stream())
    device.synchronize()
    assert (y == 3).all()


def test_a_kernel_is_launched_on_its_own_profile_and_says_its_blocks_itself() -> None:
    stream = pto.Device("a2a3").stream()
    assert code_of(lambda: stream.launch(add[1], ones(8), ones(8))) == "PTO-U193"
    stream = pto.Device("a5").stream()
    assert code_of(lambda: stream.launch(add, ones(8), ones(8), blocks=2)) == "PTO-U039"


@pytest.mark.parametrize("engine", ["reference", "jit"])
def test_threads_share_a_device(engine: str) -> None:
    device = pto.Device("a5", engine=engine)
    wrong: list[Any] = []

    def work(number: int) -> None:
        stream = device.stream()
        for turn in range(8):
            x, y = ones(16), np.full((16, 64), number, np.float32)
            stream.launch(add[2], x, y)
            stream.launch(SCALE, args=[y, 2.0, 16 * 64])
            (stream if turn % 2 else device).synchronize()
            if not (y == 2 * (number + 1)).all():
                wrong.append((number, turn, y[0, 0]))

    threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_who_submitted_work_that_another_thread_gave_up_is_told() -> None:
    device = pto.Device("a5")
    bad, good, y = device.stream(), device.stream(), ones(8)
    bad.launch(SCALE, args=[ones(1), 2.0, 65])  # one element beyond the array
    good.wait(bad.record())
    lost = good.launch(SCALE, args=[y, 2.0, 512])
    told: list[str] = []
    thread = threading.Thread(target=lambda: told.append(code_of(device.synchronize)))
    thread.start()
    thread.join()
    assert not lost.is_done and isinstance(lost.error, PtoError)
    assert code_of(device.synchronize) == told[0] == lost.error.code
    device.synchronize()  # told once
    assert (y == 1).all()


def test_a_world_forgets_streams_that_have_no_work() -> None:
    device = pto.Device("a5")
    x = ones(8)
    for _ in range(5):
        device.stream().launch(fill, x, 1.0)
        device.synchronize()
    assert device.world._busy == []
