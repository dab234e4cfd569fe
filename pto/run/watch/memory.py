"""Memory that logs the bytes read and written, for observers of a run.

A watched memory returns arrays that behave like NumPy's and share its bytes. Slices, views and
reshapes of them stay watched. Using values in a computation logs a read of exactly these elements,
and storing values logs a write. Nothing is copied, and an array operation that cannot be tracked
raises an error. Runs without an observer never use this file.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import reduce
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from numpy.lib.mixins import NDArrayOperatorsMixin

from pto.core.memory import Bytes, Memory

Array = npt.NDArray[Any]
_PLAIN_KEYS = (int, slice, np.integer, type(Ellipsis), type(None))
_KEEP_WATCHED = {np.transpose: "transpose", np.reshape: "reshape", np.squeeze: "squeeze"}
_OF_SHAPE = (np.shape, np.ndim, np.size, np.may_share_memory, np.shares_memory)


class Access(NamedTuple):
    """Elements of one memory that an instruction accessed.

    They are those of `array`, a view of the memory that begins at byte `start`, or `places` (byte
    addresses) of `width` bytes.
    """

    writes: bool
    memory: WatchedMemory
    array: Array | None
    places: Array | None
    width: int
    start: int = 0
    is_scratch: bool = False  # scratch space with undefined content afterwards

    @property
    def nbytes(self) -> int:
        elements = self.array if self.array is not None else self.places
        return 0 if elements is None else elements.size * self.width

    def addresses(self) -> npt.NDArray[np.int64]:
        """The byte address of every element."""
        if self.array is None:
            return np.zeros(0, np.int64) if self.places is None else self.places
        return self.start + offsets(self.array.shape, self.array.strides).reshape(-1)

    def span(self) -> tuple[int, int]:
        """The first byte in its memory, and one past the last."""
        if self.array is None:
            starts = self.addresses()
            return int(starts.min()), int(starts.max()) + self.width
        low = high = self.start
        for count, stride in zip(self.array.shape, self.array.strides, strict=True):
            reach = (count - 1) * stride
            low, high = low + min(reach, 0), high + max(reach, 0)
        return low, high + self.width

    def bytes(self) -> npt.NDArray[np.int64]:
        """The address of every byte, in the order of elements."""
        return (self.addresses()[:, None] + np.arange(self.width)).reshape(-1)

    def where(self) -> slice | npt.NDArray[np.int64]:
        """The bytes as an index of the memory; those of a write in any order."""
        if self.array is not None and self.array.flags.c_contiguous:
            return slice(self.start, self.start + self.array.nbytes)
        if self.writes and self.nbytes:
            low, high = self.span()
            if self.nbytes == high - low:
                return slice(low, high)
        return self.bytes()


class Recorder:
    """The accesses since the last call of `take`."""

    __slots__ = ("log",)

    def __init__(self) -> None:
        self.log: list[Access] = []

    def take(self) -> list[Access]:
        accesses = self.log
        self.log = []
        return accesses


class WatchedMemory(Memory):
    """A memory that logs its accesses to a recorder."""

    __slots__ = ("base", "raw", "recorder", "shadow")

    def __init__(self, memory: Memory, recorder: Recorder) -> None:
        self.space = memory.space
        self.align = memory.align
        self.raw: Bytes = memory.data
        self.base: int = memory.data.ctypes.data
        self.recorder = recorder
        self.shadow: Any = None  # data of an observer about these bytes

    @property
    def data(self) -> Any:  # type: ignore[override]
        return Watched(self.raw, self, 0)

    @property
    def size(self) -> int:
        return self.raw.size

    def view(self, address: int, nbytes: int, align: int = 1) -> Any:
        self.check(address, nbytes, align)
        return Watched(self.raw[address : address + nbytes], self, address)

    def strided(
        self,
        address: int,
        shape: tuple[int, ...],
        strides: tuple[int, ...],
        dtype: npt.DTypeLike = np.uint8,
    ) -> Any:
        return Watched(np.ndarray(shape, dtype, self.raw, address, strides), self, address)

    def address_of(self, array: Array) -> int:
        """The byte address of the first element of a view."""
        return array.__array_interface__["data"][0] - self.base


class Watched(NDArrayOperatorsMixin):
    """An array over watched memory."""

    __slots__ = ("_array", "_memory", "_start")

    def __init__(self, array: Array, memory: WatchedMemory, start: int | None = None) -> None:
        self._array = array
        self._memory = memory
        self._start = start  # the address of its first element, if known

    # ---- properties, which access nothing

    dtype = property(attrgetter("_array.dtype"))
    shape = property(attrgetter("_array.shape"))
    strides = property(attrgetter("_array.strides"))
    ndim = property(attrgetter("_array.ndim"))
    size = property(attrgetter("_array.size"))
    itemsize = property(attrgetter("_array.itemsize"))
    nbytes = property(attrgetter("_array.nbytes"))
    flags = property(attrgetter("_array.flags"))
    ctypes = property(attrgetter("_array.ctypes"))

    def __len__(self) -> int:
        return len(self._array)

    # ---- the same elements in another shape

    @property
    def T(self) -> Watched:
        return Watched(self._array.T, self._memory)

    def view(self, dtype: Any = None) -> Watched:
        array = self._array if dtype is None else self._array.view(dtype)
        return Watched(array, self._memory, self._start)

    def transpose(self, *axes: Any) -> Watched:
        return Watched(self._array.transpose(*axes), self._memory)

    def squeeze(self, axis: Any = None) -> Watched:
        return Watched(self._array.squeeze(axis), self._memory)

    def reshape(self, *shape: Any) -> Any:
        array = self._array.reshape(*shape)
        if np.may_share_memory(array, self._array):
            return Watched(array, self._memory, self._start)
        self._note(False, self._array)
        return array

    # ---- reads and writes

    def _note(self, writes: bool, array: Array, start: int | None = None) -> None:
        """Log elements of this array, or all of it. `start`: their address, if known."""
        if not array.size:
            return
        memory = self._memory
        if start is None:
            start = self._start if array is self._array else None
        if start is None:
            start = memory.address_of(array)
        memory.recorder.log.append(Access(writes, memory, array, None, array.itemsize, start))

    def _behind(self, key: Any) -> int | None:
        """The address of a slice, if that is known without indexing; else None."""
        if type(key) is tuple:
            first = all(type(k) is slice and k.start is None and k.step is None for k in key)
            return self._start if first else None
        if type(key) is not slice or self._start is None:
            return self._start if key is Ellipsis else None
        first, array = key.start, self._array
        if first is None and key.step is None:
            return self._start
        if array.ndim != 1:
            return None
        if first is None or first < 0 or key.step is not None:
            first = key.indices(array.size)[0]
        return self._start + first * array.strides[0]

    def _read(self) -> Array:
        self._note(False, self._array)
        return self._array

    def __getitem__(self, key: Any) -> Any:
        if not _is_plain(key):
            return self._gathered(key)
        element: Any = self._array[key]
        if isinstance(element, np.ndarray):
            return Watched(element, self._memory, self._behind(key))
        self._note(False, self._array[(*key, ...) if isinstance(key, tuple) else (key, ...)])
        return element

    def __setitem__(self, key: Any, value: Any) -> None:
        source = value._read() if isinstance(value, Watched) else value
        if not _is_plain(key):
            key = _unwatched(key)
            self._array[key] = source
            self._note_places(True, key)
            return
        self._array[key] = source
        target: Any = self._array[key]
        if not isinstance(target, np.ndarray):
            target = self._array[(*key, ...) if isinstance(key, tuple) else (key, ...)]
        self._note(True, target, self._behind(key))

    def take(self, indices: Any, axis: int | None = None) -> Any:
        """Rows or columns by number; only these are read. Without an axis everything is read."""
        if axis is None:
            return self._read().take(_unwatched(indices))
        return self._gathered((*(slice(None),) * axis, np.asarray(_unwatched(indices))))

    def _gathered(self, key: Any) -> Any:
        key = _unwatched(key)
        self._note_places(False, key)
        return self._array[key]

    def _note_places(self, writes: bool, key: Any) -> None:
        """Log elements selected by arrays of indices or by a mask."""
        array = self._array
        if array.ndim == 1 and not isinstance(key, tuple):
            index = np.asarray(key)
            index = np.flatnonzero(index) if index.dtype == np.bool_ else index.reshape(-1)
            index = np.where(index < 0, index + array.size, index)
            places = index * array.strides[0]
        else:
            places = offsets(array.shape, array.strides)[key].reshape(-1)
        places = places + self._memory.address_of(array)
        if places.size:
            access = Access(writes, self._memory, None, places, array.itemsize)
            self._memory.recorder.log.append(access)

    def __iter__(self) -> Iterator[Any]:
        return (self[n] for n in range(len(self)))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        return np.array(self._read(), dtype=dtype, copy=copy)

    def __bool__(self) -> bool:
        return bool(self._read())

    def __int__(self) -> int:
        return int(self._read())

    def __float__(self) -> float:
        return float(self._read())

    def __index__(self) -> int:
        return int(self._read())

    def __getattr__(self, name: str) -> Any:
        """Every other method of an array reads all of it: copy, astype, tobytes, sum, ..."""
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._read(), name)

    # ---- NumPy's own functions

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        arrays = [x._read() if isinstance(x, Watched) else x for x in inputs]
        outs = options.get("out", ())
        if any(isinstance(o, Watched) for o in outs):
            options["out"] = tuple(o._array if isinstance(o, Watched) else o for o in outs)
            for out in outs:
                if isinstance(out, Watched):
                    out._note(True, out._array)
        return getattr(ufunc, method)(*arrays, **options)

    def __array_function__(
        self, function: Any, types: Any, args: tuple[Any, ...], options: dict[str, Any]
    ) -> Any:
        if function is np.copyto:
            return _copyto(*args, **options)
        if function in _KEEP_WATCHED and isinstance(args[0], Watched):
            return getattr(args[0], _KEEP_WATCHED[function])(*args[1:], **options)
        if function in _OF_SHAPE:
            plain = [a._array if isinstance(a, Watched) else a for a in args]
            return function(*plain, **options)
        out = options.get("out")
        if isinstance(out, Watched):
            out._note(True, out._array)
            options = {**options, "out": out._array}
        return function(*map(_unwatched, args), **{k: _unwatched(v) for k, v in options.items()})


def _is_plain(key: Any) -> bool:
    if type(key) is slice or key is Ellipsis:  # most are
        return True
    if type(key) is tuple:
        for part in key:
            if type(part) is not slice and not isinstance(part, _PLAIN_KEYS):
                return False
        return True
    return isinstance(key, _PLAIN_KEYS)


def _unwatched(value: Any) -> Any:
    """The values of watched arrays, logged as read; anything else unchanged."""
    if isinstance(value, Watched):
        return value._read()  # pyright: ignore[reportPrivateUsage]
    if isinstance(value, tuple | list):
        return type(value)(map(_unwatched, value))
    return value


def _copyto(dst: Any, src: Any, casting: Any = "same_kind", where: Any = True) -> None:
    source, mask = _unwatched(src), _unwatched(where)
    if not isinstance(dst, Watched):
        np.copyto(dst, source, casting=casting, where=mask)
        return
    array = dst._array  # pyright: ignore[reportPrivateUsage]
    np.copyto(array, source, casting=casting, where=mask)
    if mask is True:
        dst._note(True, array)  # pyright: ignore[reportPrivateUsage]
        return
    chosen = np.broadcast_to(mask, array.shape)
    run = _one_run(chosen)
    if run is not None:
        dst._note(True, array[run])  # pyright: ignore[reportPrivateUsage]
    else:
        dst._note_places(True, chosen)  # pyright: ignore[reportPrivateUsage]


def _one_run(mask: npt.NDArray[np.bool_]) -> slice | None:
    """The slice of a mask with one run of ones (most masks select the first lanes); else None."""
    if mask.ndim != 1:
        return None
    on = np.flatnonzero(mask)
    if on.size and int(on[-1]) - int(on[0]) + 1 != on.size:
        return None
    return slice(int(on[0]), int(on[-1]) + 1) if on.size else slice(0, 0)


def offsets(counts: Sequence[int], strides: Sequence[int]) -> npt.NDArray[np.int64]:
    """The byte offset of every element of a strided array from the first."""
    axes = (np.arange(n, dtype=np.int64) * by for n, by in zip(counts, strides, strict=True))
    return reduce(np.add.outer, axes, np.zeros((), np.int64))
