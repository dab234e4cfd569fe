"""Arguments that are no NumPy arrays: they are used where they lie, and keep their types."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest

import pto
from pto import isa

Array = npt.NDArray[Any]
_TORCH = {"bfloat16": "torch.bfloat16", "float32": "torch.float32", "float16": "torch.float16"}


@pto.kernel
def double(x: pto.Global, y: pto.Global) -> None:
    t = pto.tile(8, 64, x.dtype)
    isa.tload(t, x)
    isa.tmuls(t, t, 2.0)
    isa.tstore(y, t)


@pto.kernel
def typed(x: pto.Global[pto.f32], y: pto.Global[pto.f32]) -> None:
    t = pto.tile(8, 64, pto.f32)
    isa.tload(t, x)
    isa.tadds(t, t, 1.0)
    isa.tstore(y, t)


class Tensor:
    """The part of torch.Tensor that an argument needs; torch has types that NumPy lacks."""

    def __init__(self, array: Array, device: str = "cpu") -> None:
        self.array, self.device, self.shape = array, device, array.shape
        self.dtype = _TORCH.get(array.dtype.name, f"torch.{array.dtype.name}")

    def data_ptr(self) -> int:
        return self.array.ctypes.data

    def element_size(self) -> int:
        return self.array.itemsize

    def numel(self) -> int:
        return self.array.size

    def stride(self) -> list[int]:
        return [n // self.array.itemsize for n in self.array.strides]

    def is_contiguous(self) -> bool:
        return self.array.flags.c_contiguous

    def contiguous(self) -> Tensor:
        return Tensor(np.ascontiguousarray(self.array))

    def copy_(self, other: Tensor) -> Tensor:
        self.array[...] = other.array
        return self

    def clone(self) -> Tensor:
        return Tensor(self.array.copy())


class Dlpack:
    """Lends its memory by DLPack; `versioned` is the newer protocol, which knows read-only."""

    def __init__(self, array: Array, versioned: bool = True) -> None:
        self.array, self.dtype, self._versioned = array, array.dtype, versioned

    def __dlpack__(self, **options: Any) -> Any:
        if not self._versioned:
            if options.get("max_version"):
                raise TypeError("unexpected keyword argument 'max_version'")
            options = {}
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self) -> Any:
        return self.array.__dlpack_device__()


class Shown:
    """Has `__array__` and nothing else; `own` says whether that is its own memory."""

    def __init__(self, array: Array, own: bool = True) -> None:
        self.array, self._own = array, own

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        return self.array if self._own else self.array.copy()


@pytest.mark.parametrize("wrap", [Tensor, Dlpack, Shown, lambda a: Dlpack(a, versioned=False)])
def test_results_are_written_into_what_was_passed(wrap: Any):
    x, y = np.ones((8, 64), np.float32), np.zeros((8, 64), np.float32)
    given = wrap(y)
    double(wrap(x), given)
    assert (y == 2).all()
    assert given.array is y


@pytest.mark.parametrize("kind", [ml_dtypes.bfloat16, np.float16, np.float32])
def test_a_tensor_keeps_its_type(kind: Any):
    x = np.arange(512).reshape(8, 64).astype(kind)
    y = np.zeros_like(x)
    double(Tensor(x), Tensor(y))
    assert np.array_equal(y.astype(np.float64), 2 * x.astype(np.float64))


def test_a_strided_tensor_gets_its_result_back():
    base = np.zeros((8, 128), np.float32)
    double(Tensor(np.ones((8, 64), np.float32)), Tensor(base[:, ::2]))
    assert (base[:, ::2] == 2).all()
    assert not base[:, 1::2].any()


def code_of(*args: Any) -> tuple[str, str]:
    with pytest.raises(pto.PtoError) as caught:
        typed(*args)
    return caught.value.code, str(caught.value)


def test_a_tensor_of_another_type_is_named_as_torch_names_it():
    x = np.ones((8, 64), np.float16)
    code, text = code_of(Tensor(x), Tensor(x))
    assert code == "PTO-U213"
    assert "the array is torch.float16" in text


def test_a_tensor_elsewhere_is_refused():
    x = np.ones((8, 64), np.float32)
    assert code_of(Tensor(x, "cuda:0"), Tensor(x))[0] == "PTO-U191"


def test_bits_may_stand_for_a_type_that_numpy_lacks():
    @pto.kernel
    def copy(x: pto.Global[pto.float4_e2m1x2], y: pto.Global[pto.float4_e2m1x2]) -> None:
        t = pto.tile(8, 64, pto.float4_e2m1x2)
        isa.tload(t, x)
        isa.tstore(y, t)

    x = np.arange(512, dtype=np.uint16).astype(np.uint8).reshape(8, 64)
    y = np.zeros_like(x)
    copy(Tensor(x), Tensor(y))
    assert np.array_equal(x, y)


def test_a_copy_can_be_read_but_not_written():
    x, y = np.ones((8, 64), np.float32), np.zeros((8, 64), np.float32)
    typed(Shown(x, own=False), y)
    assert (y == 2).all()
    y[:] = 0
    assert code_of(x, Shown(y, own=False))[0] == "PTO-M194"


def test_memory_marked_read_only_stays_as_it_is():
    x, y = np.ones((8, 64), np.float32), np.zeros((8, 64), np.float32)
    y.flags.writeable = False
    assert code_of(x, Dlpack(y))[0] == "PTO-M194"
    assert not y.any()


def test_what_dlpack_cannot_hand_over_is_said():
    class Odd(Dlpack):
        def __dlpack__(self, **options: Any) -> Any:
            raise BufferError("no such type")

    x = np.ones((8, 64), np.float32)
    code, text = code_of(Odd(x), x.copy())
    assert code == "PTO-U077"
    assert "no such type" in text


def test_numbers_are_no_arrays():
    x = np.ones((8, 64), np.float32)
    for value in (1.0, np.float32(1), Shown(np.array(1.0)), [1.0], "x", None):
        assert code_of(value, x)[0] == "PTO-U212"


@pytest.mark.parametrize("wrap", [Tensor, Dlpack, np.asarray])
def test_a_difference_is_told_of_any_of_them(wrap: Any):
    x = np.arange(512).reshape(8, 64).astype(np.float32)
    y = np.zeros_like(x)
    values = (wrap(x), wrap(y))
    assert not pto.diff(typed, lambda x, y: {"y": wrap(_values(x) + 1)}, values)
    found = pto.diff(typed, lambda x, y: _values(x) + 2, values)
    assert (found.first.index, found.first.got, found.first.wanted) == ((0, 0), 1.0, 2.0)
    assert found.blame.maker.name == "tadds"
    assert not y.any()


def _values(given: Any) -> Array:
    return getattr(given, "array", given)


def test_bf16_tensors_can_be_expected():
    x = np.arange(512).reshape(8, 64).astype(ml_dtypes.bfloat16)
    doubled = Tensor((2 * x.astype(np.float32)).astype(ml_dtypes.bfloat16))
    assert not pto.diff(double, lambda x, y: doubled, (Tensor(x), Tensor(np.zeros_like(x))))


def test_a_sanitized_run_does_not_change_tensors_twice(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("PTO_SANITIZE", "1")
    x = np.zeros((8, 64), np.float32)
    typed(Tensor(x), Tensor(x))
    assert (x == 1).all()
