"""Global tensors are views: NumPy arrays in and out without a copy, and bounds on every part."""

import ml_dtypes
import numpy as np
import pytest

from pto.core import dtypes
from pto.core.errors import PtoError
from pto.core.global_layout import GLOBAL_LAYOUTS, global_layout, matrix_view
from pto.core.global_tensor import GlobalTensor
from pto.core.memory import Memory, Space


def test_an_array_and_its_tensor_are_the_same_bytes():
    array = np.arange(24, dtype=np.float32).reshape(4, 6)
    tensor = GlobalTensor.from_array(array, dtypes.F32)
    assert tensor.shape == (1, 1, 1, 4, 6)
    assert tensor.strides[3:] == (6, 1)
    view = tensor.as_array()
    assert np.shares_memory(view, array)
    view[0, 0, 0, 2, 3] = -1
    assert array[2, 3] == -1
    array[0, 0] = 99
    assert tensor.read_matrix()[0, 0] == 99


def test_a_strided_array_is_shared_too():
    whole = np.arange(100, dtype=np.int16).reshape(10, 10)
    part = whole[1:9:2, 2:8:3]
    tensor = GlobalTensor.from_array(part, dtypes.I16)
    assert np.array_equal(tensor.read_matrix(), part)
    tensor.write_matrix(part * 0 - 5)
    assert (whole[1:9:2, 2:8:3] == -5).all()
    assert (whole == -5).sum() == part.size
    assert np.array_equal(GlobalTensor.from_array(whole.T, dtypes.I16).read_matrix(), whole.T)


def test_types_numpy_lacks_are_shared_by_their_bits():
    array = np.array([[1.5, -2.0]], ml_dtypes.bfloat16)
    tensor = GlobalTensor.from_array(array, dtypes.BF16)
    assert tensor.as_array().dtype == ml_dtypes.bfloat16
    codes = np.array([[0x10, 0x6F]], np.uint8)
    assert np.array_equal(GlobalTensor.from_array(codes, dtypes.HIFLOAT8).read_matrix(), codes)


@pytest.mark.parametrize(
    "array",
    [
        np.zeros((2, 2), np.float64),
        np.zeros((4, 4), np.float32)[::-1],
        np.broadcast_to(np.float32(0), (2, 2)),
    ],
    ids=["type", "negative step", "read-only"],
)
def test_an_array_that_would_need_a_copy_is_refused(array: np.ndarray):
    with pytest.raises(PtoError, match="without a copy") as caught:
        GlobalTensor.from_array(array, dtypes.F32)
    assert caught.value.code == "PTO-M008"


def test_empty_arrays_make_empty_tensors():
    tensor = GlobalTensor.from_array(np.zeros((0, 4), np.float32), dtypes.F32)
    assert tensor.nbytes == 0
    assert tensor.read_matrix().shape == (0, 4)


DEFINED = sorted(name for name, each in GLOBAL_LAYOUTS.items() if each.is_defined)


@pytest.mark.parametrize("name", DEFINED)
def test_a_matrix_lies_where_the_layout_says(name: str):
    layout = global_layout(name)
    sizes = [2, 3, 2, 4, 2]
    for axis, size in layout.sizes:
        sizes[axis] = size
    memory = Memory(Space.GM, 1 << 16)
    tensor = GlobalTensor.of(memory, 64, dtypes.I16, sizes, layout=layout)
    rows, cols = tensor.matrix_shape
    matrix = np.arange(rows * cols, dtype=np.int16).reshape(rows, cols)
    tensor.write_matrix(matrix)
    flat = memory.view(64, tensor.nbytes).view(np.int16)
    offsets = tensor.offset(np.arange(rows)[:, None], np.arange(cols)[None])
    assert np.array_equal(flat[offsets], matrix)
    assert np.array_equal(tensor.read_matrix(), matrix)
    assert not memory.data[:64].any() and not memory.data[64 + tensor.nbytes :].any()


def test_an_nz_tensor_by_hand():
    layout = global_layout("NZ")
    shape, strides = matrix_view(layout, 32, 32, 2)
    tensor = GlobalTensor.of(Memory(Space.GM, 2048), 0, dtypes.F16, shape, strides, layout)
    assert tensor.offset(17, 18) == 786  # as the NZ tile of the same shape
    matrix = np.arange(1024, dtype=np.float16).reshape(32, 32)
    tensor.write_matrix(matrix)
    assert tensor.memory.data.view(np.float16)[786] == matrix[17, 18]


def test_a_matrix_is_a_view_where_its_dimensions_fold_and_none_where_not():
    memory = Memory(Space.GM, 4096)
    folded = GlobalTensor.of(memory, 0, dtypes.F32, (2, 3, 4)).matrix()
    assert folded is not None
    assert folded.shape == (6, 4)
    folded[5, 3] = 7
    assert memory.data.view(np.float32)[23] == 7
    assert GlobalTensor.of(memory, 0, dtypes.F32, (2, 3, 4), (32, 8, 1)).matrix() is None
    nz = GlobalTensor.of(memory, 0, dtypes.F16, (1, 2, 2, 16, 16), layout=global_layout("NZ"))
    assert nz.matrix() is None


def test_dn_steps_down_the_columns():
    tensor = GlobalTensor.of(
        Memory(Space.GM, 64), 0, dtypes.F32, (4, 3), layout=global_layout("DN")
    )
    tensor.write_matrix(np.arange(12, dtype=np.float32).reshape(4, 3))
    stored = tensor.memory.data.view(np.float32)[:12]
    assert stored.tolist() == [0, 3, 6, 9, 1, 4, 7, 10, 2, 5, 8, 11]


def test_a_partition_is_a_window_on_the_same_memory():
    array = np.arange(2 * 6 * 8, dtype=np.int32).reshape(2, 6, 8)
    tensor = GlobalTensor.from_array(array, dtypes.I32)
    part = tensor.partition([1, 2, 4], [1, 3, 4])
    assert part.shape == (1, 1, 1, 3, 4)
    assert np.array_equal(part.read_matrix(), array[1, 2:5, 4:8])
    nested = part.partition([1, 1], [2, 2])
    nested.write_matrix(np.zeros((2, 2), np.int32))
    assert (array[1, 3:5, 5:7] == 0).all()
    assert np.count_nonzero(array == 0) == 5  # and the 0 that arange began with


@pytest.mark.parametrize(
    ("offsets", "sizes"), [([0, 5], [4, 4]), ([-1, 0], [1, 1]), ([4, 0], [1, 1])]
)
def test_a_partition_outside_its_tensor_is_refused(offsets: list[int], sizes: list[int]):
    tensor = GlobalTensor.from_array(np.zeros((4, 8), np.float32), dtypes.F32)
    with pytest.raises(PtoError, match="does not fit its size") as caught:
        tensor.partition(offsets, sizes)
    assert caught.value.code == "PTO-M006"


def test_elements_outside_the_memory_are_refused_where_they_are_used():
    tensor = GlobalTensor.of(Memory(Space.GM, 64), 32, dtypes.F32, (4, 4))
    assert tensor.partition([0, 0], [2, 4]).read_matrix().shape == (2, 4)
    assert tensor.partition([4, 0], [0, 4]).read_matrix().shape == (0, 4)
    with pytest.raises(PtoError, match="gm address 0x20 with 64 bytes") as caught:
        tensor.read_matrix()
    assert caught.value.code == "PTO-M001"


@pytest.mark.parametrize(
    ("shape", "strides"),
    [((1, 1, 1, 1, 2, 2), None), ((2, 2), (1,)), ((2, 2), (-2, 1)), ((-1, 2), None)],
)
def test_malformed_shapes_and_strides_are_refused(
    shape: tuple[int, ...], strides: tuple[int, ...] | None
):
    with pytest.raises(PtoError) as caught:
        GlobalTensor.of(Memory(Space.GM, 64), 0, dtypes.U8, shape, strides)
    assert caught.value.code == "PTO-M007"


def test_a_matrix_of_another_shape_or_type_changes_nothing():
    array = np.ones((2, 3), np.float32)
    tensor = GlobalTensor.from_array(array, dtypes.F32)
    for wrong, code in ((np.zeros((3, 2), np.float32), "PTO-S006"), (np.zeros((2, 3)), "PTO-T002")):
        with pytest.raises(PtoError) as caught:
            tensor.write_matrix(wrong)
        assert caught.value.code == code
    assert (array == 1).all()


def test_a_broadcast_stride_of_zero_reads_one_element_many_times():
    memory = Memory(Space.GM, 16)
    memory.write(0, np.array([3, 4], np.int32))
    tensor = GlobalTensor.of(memory, 0, dtypes.I32, (3, 2), (0, 1))
    assert tensor.read_matrix().tolist() == [[3, 4]] * 3


@pytest.mark.parametrize(
    ("offset", "size", "help"),
    [
        (-3, 2, "begins 3 before the first element: an index cannot be negative"),
        (4, 1, "begins behind the last element, 3"),
        (3, 2, "1 are left from 3 on, and the tile has 2"),
    ],
)
def test_the_help_of_a_window_outside_names_its_side(offset: int, size: int, help: str):
    tensor = GlobalTensor.from_array(np.zeros((4, 6), np.float32), dtypes.F32)
    with pytest.raises(PtoError) as caught:
        tensor.partition((offset, 0), (size, 6))
    (found,) = caught.value.diagnostics
    assert found.code == "PTO-M006" and help in (found.help or "")
