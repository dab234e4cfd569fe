"""Array arguments of kernels: NumPy arrays, and other objects that own CPU memory.

Memory is used in place. An array that cannot serve as global memory is copied, and the results of
the kernel are copied back.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import Any

import numpy as np
import numpy.typing as npt

from pto.core.dtypes import DType, dtype
from pto.core.errors import PtoError, fail
from pto.core.intervals import stretches

Array = npt.NDArray[Any]
_CPU = 1  # kDLCPU


@dataclass(frozen=True, slots=True)
class Borrowed:
    """An array for a kernel to work on, and the action when the kernel is done."""

    array: Array
    source: Any
    take: Callable[[], None] | None = None  # copies the source again, if `array` is a copy
    give_back: Callable[[], None] | None = None
    raw: bool = False  # its bytes are known, but not their type
    read_only: bool = False


def borrow(value: Any) -> Borrowed | None:
    """The memory of an array, tensor or buffer; None for a scalar."""
    if isinstance(value, np.ndarray) and hasattr(value, "mask") and hasattr(value, "filled"):
        raise fail(
            "PTO-U191",
            "a masked array cannot be an argument: a kernel sees every element",
            help="pass x.filled(0), or x.data",
        )
    if isinstance(value, np.ndarray):
        return None if value.ndim == 0 else _numpy(np.asarray(value), value)
    if _is_tensor(value):
        return _tensor(value)
    if hasattr(value, "__array_interface__"):
        array = np.asarray(value)
        return None if array.ndim == 0 else _numpy(array, value)
    if hasattr(value, "__dlpack__"):
        return _dlpack(value)
    if hasattr(value, "__array__"):
        return _array(value)
    return None


def _numpy(array: Array, source: Any) -> Borrowed:
    if array.flags.c_contiguous and array.flags.writeable:
        return Borrowed(array, source)
    copy = np.array(array, order="C")
    if array.flags.writeable:
        take, give_back = partial(np.copyto, copy, array), partial(np.copyto, array, copy)
        return Borrowed(copy, source, take, give_back)
    before = copy.copy()

    def take_both() -> None:
        np.copyto(copy, array)
        np.copyto(before, copy)

    def check() -> None:
        if copy.tobytes() != before.tobytes():
            raise fail("PTO-M194", "a kernel has written to an array that is read-only")

    return Borrowed(copy, source, take_both, check, read_only=True)


def _array(value: Any) -> Borrowed | None:
    """An object that NumPy can convert: used in place if it exposes its memory, else read-only."""
    array = np.asarray(value)
    if array.ndim == 0:
        return None
    if not np.may_share_memory(array, np.asarray(value)):
        array.flags.writeable = False
    return _numpy(array, value)


def _is_tensor(value: Any) -> bool:
    """As torch spells it; torch itself is never imported."""
    return all(hasattr(value, n) for n in ("data_ptr", "element_size", "is_contiguous", "numel"))


@lru_cache(maxsize=256)
def are_tensors(kind: type) -> bool:
    """True if all values of this type are tensors."""
    return _is_tensor(kind)


def _tensor(value: Any) -> Borrowed:
    where = str(getattr(value, "device", "cpu"))
    if not where.startswith("cpu"):
        raise fail("PTO-U191", f"a tensor on {where} cannot be an argument", help="move it to cpu")
    shape = tuple(int(n) for n in value.shape)
    kind = named_type(value)
    if value.is_contiguous():
        return Borrowed(_items(value, kind, shape), value, raw=kind is None)
    copy = value.contiguous()
    take, give_back = partial(copy.copy_, value), partial(value.copy_, copy)
    return Borrowed(_items(copy, kind, shape), value, take, give_back, raw=kind is None)


def in_place(borrowed: Borrowed) -> Array:
    """The caller's own elements: a kernel may work on a contiguous copy of them."""
    source = borrowed.source
    if borrowed.take is None:
        return borrowed.array
    if isinstance(source, np.ndarray):
        return source
    if not hasattr(source, "stride"):
        return borrowed.array
    size = borrowed.array.itemsize
    strides = [int(n) * size for n in source.stride()]
    last = sum((n - 1) * s for n, s in zip(source.shape, strides, strict=True))
    memory = over(source.data_ptr(), last + size, np.dtype(np.uint8))
    return np.ndarray(borrowed.array.shape, borrowed.array.dtype, memory, 0, strides)


def named_type(value: Any) -> DType | None:
    """The element type that a tensor names, as in `torch.bfloat16`."""
    try:
        return dtype(str(getattr(value, "dtype", "")).rpartition(".")[2])
    except PtoError:
        return None


def _items(value: Any, kind: DType | None, shape: Sequence[int]) -> Array:
    """The items of a tensor; as unsigned integers of their size if the type is unknown."""
    size = int(value.element_size())
    element = np.dtype(f"u{size}") if kind is None else kind.numpy
    return over(value.data_ptr(), int(value.numel()) * size, element).reshape(shape)


def over(address: int, nbytes: int, kind: np.dtype[Any]) -> Array:
    """A writeable array over foreign memory."""
    if not nbytes:
        return np.zeros(0, kind)
    return np.ctypeslib.as_array((ctypes.c_uint8 * nbytes).from_address(address)).view(kind)


def _dlpack(value: Any) -> Borrowed:
    if value.__dlpack_device__()[0] != _CPU:
        raise fail("PTO-U191", "only memory of the CPU can be an argument")
    try:
        array: Array = np.from_dlpack(value)
    except (BufferError, RuntimeError, TypeError, ValueError) as error:
        raise fail(
            "PTO-U077",
            f"NumPy cannot import this {type(value).__name__} with DLPack: {error}",
            help="pass its bits as unsigned integers, or a NumPy array with a type of ml_dtypes",
        ) from None
    if array.flags.writeable or not array.flags.c_contiguous or _can_refuse(value):
        return _numpy(array, value)
    # The older protocol cannot mark memory as writeable, but means it.
    items = over(array.ctypes.data, array.nbytes, array.dtype)
    return Borrowed(items.reshape(array.shape), (value, array))


def _can_refuse(value: Any) -> bool:
    """True if a producer uses the protocol version that can mark memory as read-only."""
    try:
        capsule = value.__dlpack__(max_version=(1, 0))
    except (TypeError, BufferError):
        return False
    return "versioned" in repr(capsule)


def of_elements(name: str, borrowed: Borrowed, wanted: DType | None) -> Borrowed:
    """The same memory with the element type of the program; another type needs an explicit view."""
    if wanted is None:
        return borrowed
    if holds(borrowed, wanted):
        array = borrowed.array
        return replace(borrowed, array=array.view(wanted.numpy)) if borrowed.raw else borrowed
    element = borrowed.array.dtype
    actual = f"elements of {element.itemsize} bytes" if borrowed.raw else str(element)
    raise fail(
        "PTO-T194",
        f"%{name} points to {wanted.name}, the array holds {actual}",
        help=f"convert it with .astype({wanted.numpy.name!r}); to pass its bits unchanged,"
        f" use .view({wanted.numpy.name!r})",
    )


def holds(borrowed: Borrowed, wanted: DType) -> bool:
    """True for the same type, either sign of an integer, or the bits of a type that NumPy lacks."""
    actual, element = borrowed.array.dtype, wanted.numpy
    if actual == element or (borrowed.raw and actual.itemsize == wanted.itemsize):
        return True
    if element.kind == "i":
        return actual.kind == "u" and actual.itemsize == element.itemsize
    is_bits = actual == wanted.storage or actual == np.dtype(f"V{wanted.itemsize}")
    return is_bits and (element.isbuiltin != 1 or element.kind == "b")


def copied(args: Sequence[Any], written: Collection[int] | None = None) -> list[Any]:
    """Copies of arguments for another run; copies of overlapping arrays overlap too. If `written`
    is given, only arrays that overlap one of these positions are copied."""
    arrays = {n: a for n, a in enumerate(args) if isinstance(a, np.ndarray)}
    if written is not None:
        may_change = [arrays[n] for n in written if n in arrays]
        arrays = {
            n: a for n, a in arrays.items() if any(np.may_share_memory(a, o) for o in may_change)
        }
    out = [a.copy() if n in arrays else a for n, a in enumerate(args)]
    dense = [n for n, a in arrays.items() if a.flags.c_contiguous]
    spans = {n: (args[n].ctypes.data, args[n].ctypes.data + args[n].nbytes) for n in dense}
    for low, high in stretches(spans.values()):
        group = [n for n, (start, end) in spans.items() if low <= start < high and start < end]
        if len(group) < 2:
            continue
        block = np.empty(high - low, np.uint8)
        for n in group:
            original = args[n]
            out[n] = np.ndarray(original.shape, original.dtype, block, original.ctypes.data - low)
            out[n][...] = original
    return out
