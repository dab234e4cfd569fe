"""Arrays of a kernel: global memory seen through shapes, strides and slices.

Slices are NumPy's: they are cut at the end of the array. A slice that may reach the end gives a
window with a size computed at run time; otherwise the size is static.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from types import GenericAlias
from typing import TYPE_CHECKING, Any, Generic, NoReturn, TypeVarTuple, cast

from pto.core.dtypes import DType
from pto.ir.builder import INDEX, scalar_type
from pto.ir.graph import Value
from pto.isa.handle.view import ADDPTR, CASTPTR, MAKE_TENSOR_VIEW, PARTITION_VIEW
from pto.isa.row.types import Ptr
from pto.isa.row.types import View as ViewType
from pto.lang.call.place import mistake
from pto.lang.call.session import Session, ValueHandle, current
from pto.lang.values.elements import element
from pto.lang.values.operators import Operators
from pto.lang.values.scalars import Extent, arith, as_value, is_number, remainder
from pto.lang.values.spans import WindowSpan, in_ones
from pto.lang.values.spans import span as span_of

E = TypeVarTuple("E")
MAX_RANK = 5
Sizes = tuple[Extent, ...]  # Python numbers and Scalars
Region = tuple[Extent, Extent]  # of a tile: rows and columns


class Elsewhere(Operators[object]):
    """Base of arrays and windows: they have no operators, and the error shows a correct form."""

    __slots__ = ()

    def operate(self, sign: str, a: object, b: object) -> NoReturn:
        raise mistake(
            "PTO-U081",
            f"`{sign}` of an array in global memory: instructions compute on tiles",
            help="load a tile first: t = pto.load(x[i:, :], 16, 128); pto.store(y[i:, :], t + 1.0)",
        )


class Global(Elsewhere, ValueHandle, Generic[*E]):
    """An array in global memory. `pto.Global[pto.f32]` annotates a parameter that is one.

    `pto.Global[pto.f32, "m", "n"]` names its sizes: they are Scalars, arguments of each launch;
    sizes with the same name are equal. Sizes without a name are Python numbers.
    """

    __slots__ = ("pointer", "shape", "strides")

    def __init__(
        self,
        value: Value,
        home: Session,
        pointer: Value,
        shape: Sizes,
        strides: Sizes,
    ) -> None:
        super().__init__(value, home)
        self.pointer = pointer
        self.shape = shape
        self.strides = strides

    if not TYPE_CHECKING:

        def __class_getitem__(cls, parts):
            """Element types and sizes are no types of Python."""
            return GenericAlias(cls, parts)

    @property
    def dtype(self) -> DType:
        elem = self.value.type.elem if isinstance(self.value.type, ViewType) else None
        if elem is None or elem.dtype is None:
            raise RuntimeError(f"{self!r} has no element type")
        return elem.dtype

    @property
    def ndim(self) -> int:
        return len(self.shape)

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, key: object) -> View:
        """A window: `x[i * 16 :, :]`, `x[b, 0:64]`; an index keeps a dimension of size one, and
        None adds one.

        As in NumPy, the last two slices are rows and columns: indices between or after slices move
        to the front.
        """
        keys = list(key) if isinstance(key, tuple) else [key]
        count = sum(k is not None and k is not Ellipsis for k in keys)
        if count > self.ndim:
            size = "x".join(str(n) if isinstance(n, int) else "?" for n in self.shape)
            message = f"{count} indices for {self.pointer.name}, an array of shape {size}"
            raise mistake("PTO-S201", message, help="write at most one for each dimension")
        at = next((n for n, k in enumerate(keys) if k is Ellipsis), len(keys))
        keys[at : at + 1] = [slice(None)] * (self.ndim - count)
        if any(k is None for k in keys):
            return self.widened(keys)[tuple(slice(None) if k is None else k for k in keys)]
        if any(isinstance(k, slice) and not in_ones(k) for k in keys):
            return self._stepped(keys)
        spans = [span_of(k, n) for k, n in zip(keys, self.shape, strict=True)]
        sliced = [n for n, span in enumerate(spans) if not span.is_index]
        if len(sliced) < 2 or sliced == list(range(self.ndim))[-len(sliced) :]:
            return View(cast("Whole", self), spans)
        order = [n for n, span in enumerate(spans) if span.is_index] + sliced
        return View(self.transpose(*order), [spans[n] for n in order])

    def transpose(self, *axes: int) -> Whole:
        """The same elements with the dimensions in another order, as in NumPy:
        `x.transpose(0, 2, 1)`; the opposite order without axes."""
        order = axes or tuple(range(self.ndim))[::-1]
        if sorted(order) != list(range(self.ndim)):
            raise mistake(
                "PTO-S201",
                f"axes {order} of an array with {self.ndim} dimensions",
                help="name each axis once: x.transpose(0, 2, 1)",
            )
        shape, strides = (
            tuple(numbers[n] for n in order) for numbers in (self.shape, self.strides)
        )
        return view_of(self.pointer, self.dtype, shape, strides)

    def widened(self, keys: Sequence[object]) -> Whole:
        """The array with a new dimension of size one where a key is None, as in NumPy."""
        shape, strides = list(self.shape), list(self.strides)
        for n, key in enumerate(keys):
            if key is None:
                is_last = n == len(shape)
                strides.insert(n, 1 if is_last else arith("*", shape[n], strides[n]))
                shape.insert(n, 1)
        return view_of(self.pointer, self.dtype, tuple(shape), tuple(strides))

    def _stepped(self, keys: list[Extent]) -> View:
        """A window with steps: a plain window on an array with multiplied strides.

        The array begins less than a step behind the old one, so that a start before the first
        element is one in the window too.
        """
        shape = list(self.shape)
        strides = list(self.strides)
        offset = 0
        for n, key in enumerate(keys):
            if not isinstance(key, slice) or in_ones(key):
                continue
            if not is_number(key.step) or key.step < 1:
                raise mistake(
                    "PTO-S201",
                    f"a slice of global memory goes upwards in a step that Python knows, not in"
                    f" {key.step!r}",
                    help="pto.flip(t) reverses a tile",
                )
            step = key.step
            span = span_of(slice(key.start, key.stop), shape[n])
            first, rest = arith("//", span.start, step), remainder(span.start, step)
            offset = arith("+", offset, arith("*", rest, strides[n]))
            shape[n] = _in_steps(arith("-", shape[n], rest), step)
            strides[n] = arith("*", strides[n], step)
            count = _in_steps(span.length, step)
            keys[n] = (
                slice(first if key.start is not None else None, None)
                if span.is_open
                else slice(first, arith("+", first, count))
            )
        operands = {"ptr": self.pointer, "offset": as_value(offset, INDEX)}
        type = pointer_type(self.dtype)
        (moved,) = current().emit(ADDPTR, operands, results=[type], names=[self.pointer.name])
        return view_of(moved, self.dtype, tuple(shape), tuple(strides))[tuple(keys)]

    def __iter__(self) -> NoReturn:
        raise mistake(
            "PTO-U081",
            "an array in global memory has no elements while the kernel is traced",
            help="loop over its windows: for i in pto.range(0, n, 16): t = pto.load(x[i:, :], 16)",
        )

    def __setitem__(self, key: object, value: object) -> NoReturn:
        raise mistake(
            "PTO-U081",
            "an array in global memory is not assigned to: a transfer writes it",
            help="write isa.tstore(y[0:16, :], t)",
        )

    def whole(self) -> View:
        return self[(slice(None),) * self.ndim]

    def reshape(self, *shape: int) -> Whole:
        """The same elements, row by row, in another shape; one size may be -1."""
        self._require_known("reshaped")
        count = prod(self.shape)
        if self.strides != contiguous(self.shape):
            raise mistake("PTO-S201", "only an array without gaps can be reshaped")
        product = -prod(shape) if -1 in shape else prod(shape)
        sizes = tuple(count // product if n == -1 and product else n for n in shape)
        if prod(sizes) != count or len(sizes) > MAX_RANK or min(sizes, default=0) < 0:
            raise mistake("PTO-S201", f"an array of shape {self.shape} cannot become {shape}")
        return view_of(self.pointer, self.dtype, sizes, contiguous(sizes))

    def view(self, dtype: object) -> Whole:
        """The same bits as elements of another type; the last dimension grows or shrinks."""
        self._require_known("seen as another type")
        kind, current_type = element(dtype), self.dtype
        last, rest = divmod(self.shape[-1] * current_type.itemsize, kind.itemsize)
        if rest or self.strides != contiguous(self.shape):
            raise mistake(
                "PTO-S201",
                f"an array of shape {self.shape} and {current_type} cannot be seen as {kind}",
                help="whole elements fit into the last dimension of an array without gaps",
            )
        to = [pointer_type(kind)]
        (pointer,) = current().emit(CASTPTR, {"input": self.pointer}, results=to)
        shape = (*self.shape[:-1], last)
        return view_of(pointer, kind, shape, contiguous(shape))

    @property
    def T(self) -> Whole:
        """The same elements with the dimensions in the opposite order."""
        return self.transpose()

    @property
    def by_columns(self) -> bool:
        """True if its elements are in column-major order."""
        return [is_number(n) and n == 1 for n in self.strides[-2:]] == [True, False]

    def _require_known(self, action: str) -> None:
        if not all(map(is_number, self.shape)):
            raise mistake(
                "PTO-S201",
                f"an array with named sizes cannot be {action} inside a kernel",
                help="do it to the array before the call, or leave the names out",
            )


def _in_steps(length: Extent, step: int) -> Extent:
    """The number of elements of a slice with a step."""
    return arith("//", arith("+", length, step - 1), step)


def contiguous(shape: Sequence[Extent]) -> Sizes:
    """Strides of elements row by row."""
    return tuple(prod(shape[n + 1 :]) for n in range(len(shape)))


def view_of(pointer: Value, dtype: DType, shape: Sizes, strides: Sizes) -> Whole:
    """An array over a pointer."""
    if not 1 <= len(shape) <= MAX_RANK:
        raise mistake("PTO-S201", f"a global array has 1 to {MAX_RANK} dimensions, not {shape}")
    operands = {
        "ptr": pointer,
        "shape": [as_value(n, INDEX) for n in shape],
        "strides": [as_value(n, INDEX) for n in strides],
    }
    sizes = tuple(n if is_number(n) else None for n in shape)
    type = ViewType(sizes, scalar_type(dtype), partition=False)
    session, names = current(), [f"{pointer.name}_view"]
    (value,) = session.emit(MAKE_TENSOR_VIEW, operands, results=[type], names=names)
    return Global[Any](value, session, pointer, shape, strides)


Whole = Global[Any]  # an array with any element type and sizes


class View(Elsewhere):
    """A window on an array, lowered together with the tile of its transfer."""

    __slots__ = ("array", "is_cut", "most", "spans")

    def __init__(
        self,
        array: Whole,
        spans: list[WindowSpan],
        most: tuple[int, int] | None = None,
        is_cut: bool = False,
    ) -> None:
        self.array = array
        self.spans = spans
        self.most = most  # maximal rows and columns of a transfer
        self.is_cut = is_cut  # the tile that is stored was cut at the ends of the slices

    def __getitem__(self, key: object) -> View:
        """A window on the window, with NumPy's indexing of its slices."""
        keys = list(key) if isinstance(key, tuple) else [key]
        free, count = self._sliced, sum(k is not None for k in keys)
        if count > len(free):
            raise mistake("PTO-S201", f"{count} indices for a window of {len(free)} dimensions")
        if count < len(keys):
            return self._widened(keys, free)[tuple(slice(None) if k is None else k for k in keys)]
        spans = list(self.spans)
        for n, part in zip(free, keys, strict=False):
            spans[n] = spans[n].part(part)
        return View(self.array, spans)

    def _widened(self, keys: Sequence[object], free: Sequence[int]) -> View:
        """The window with a new dimension of size one where a key is None."""
        places: list[WindowSpan | None] = [*self.spans]
        taken = [n for n, k in enumerate(keys) if k is not None]
        for n in reversed([n for n, k in enumerate(keys) if k is None]):
            before = sum(t < n for t in taken)  # slices of the window in front of it
            places.insert(free[before] if before < len(free) else len(self.spans), None)
        one = span_of(slice(None), 1)
        return View(self.array.widened(places), [span or one for span in places])

    @property
    def _sliced(self) -> list[int]:
        """The dimensions that are slices."""
        return [n for n, span in enumerate(self.spans) if not span.is_index]

    def whole(self) -> View:
        return self

    def within(self, rows: int, cols: int) -> View:
        """The same window, limited to rows x cols."""
        return View(self.array, self.spans, (rows, cols))

    @property
    def T(self) -> View:
        """The window with its slices in the other order; indices stay in front of them."""
        most = None if self.most is None else (self.most[1], self.most[0])
        indices = [n for n, span in enumerate(self.spans) if span.is_index]
        order = indices + self._sliced[::-1]
        return View(self.array.transpose(*order), [self.spans[n] for n in order], most)

    def rows_known(self) -> int | None:
        """The number of rows of a tile that it fills, if Python knows it."""
        row, _ = self.axes()
        extent = 1 if row is None else self.spans[row].extent
        return extent * self.inner_rows if is_number(extent) else None

    def axes(self) -> tuple[int | None, int]:
        """The dimensions that become rows and columns of a tile; None if there is one row."""
        last, free = len(self.spans) - 1, self._sliced
        rows = [n for n in free if n != last]
        if len(rows) > 1 and not all(is_number(self.spans[n].extent) for n in rows[1:]):
            raise mistake(
                "PTO-S201",
                f"{len(free)} dimensions of the window are slices; a tile has two",
                help="index the outer dimensions: x[b, h, i * 16 :, :]",
            )
        return (rows[0] if rows else None), last

    @property
    def inner_rows(self) -> int:
        """The rows of a tile for each element along the dimension of rows."""
        row, last = self.axes()
        return 1 if row is None else prod(span.extent for span in self.spans[row + 1 : last])

    def room(self, shape: tuple[int, int]) -> Region:
        """Rows and columns of a tile of this shape that the window fills."""
        if self.most is not None:
            shape = min(shape[0], self.most[0]), min(shape[1], self.most[1])
        self.require_room(shape)
        (row, col), inner = self.axes(), self.inner_rows
        rows = 1 if row is None else self.spans[row].size_for(max(1, shape[0] // inner))
        return arith("*", rows, inner), self.spans[col].size_for(shape[1])

    def require_room(self, region: Region) -> None:
        """Raise if a dimension that the user did not slice is larger than the tile: its rest would
        be silently left out."""
        row, col = self.axes()
        for unit, axis, capacity, times in (
            ("rows", row, region[0], self.inner_rows),
            ("columns", col, region[1], 1),
        ):
            span = None if axis is None else self.spans[axis]
            if span is None or not is_number(span.length) or not is_number(capacity):
                continue
            if span.length * times > capacity and not (span.is_open and not span.is_whole):
                raise self._left_out(unit, capacity, span.length, times)

    def _left_out(self, unit: str, capacity: int, extent: int, times: int) -> Exception:
        name = self.array.pointer.name
        slices = f"{name}[..., j : j + {capacity}] with j of pto.range(0, {extent}, {capacity})"
        is_whole = all(span.is_whole for span in self.spans)
        has = f"{name} has" if is_whole else f"the window of {name} has"
        more = ""
        if times > 1:  # else a size may be known only when the kernel runs
            rows = [str(span.extent) for span in self.spans if not span.is_index][:-1]
            more = f" ({' x '.join(rows)}, of all dimensions but the last)"
        return mistake(
            "PTO-U080",
            f"the tile takes {capacity} {unit}, and {has} {extent * times}{more}:"
            " the rest would be left out",
            help=f"index the outer dimensions, one tile at a time: {name}[i, ...]"
            if times > 1
            else f"say which {unit}: a slice from a loop counter, {slices}; or use a larger tile",
        )

    def cut(self, region: Region, shape: tuple[int, int]) -> Region:
        """The region of a tile of this shape, cut at the ends of slices with a stop. A size that
        Python knows to be larger than the slice stays, so that the store is an error."""
        if self.is_cut:
            return region
        row, col = self.axes()
        cols = self._cut(col, region[1], shape[1], 1)
        rows = self.inner_rows
        return region[0] if row is None else self._cut(row, region[0], shape[0], rows), cols

    def _cut(self, axis: int, size: Extent, most: int, times: int) -> Extent:
        span, capacity = self.spans[axis], size if is_number(size) else most
        if span.is_open or capacity % times or span.is_exceeded(size, times):
            return size
        limit = arith("*", span.size_for(capacity // times), times)
        if limit is size or (is_number(limit) and limit >= capacity):
            return size
        return limit if is_number(size) else arith("min", size, limit)

    def lower_for(self, region: Region) -> Value:
        """The window that a tile with this valid region fills, as a value of the program."""
        (row, col), inner = self.axes(), self.inner_rows
        sizes: list[Extent] = [span.extent for span in self.spans]
        sizes[col] = self._stated(col, region[1])
        if row is not None:
            sizes[row] = arith("//", self._stated(row, region[0], inner), inner)
        return self._partition(sizes)

    def place_of(self, number: Extent) -> Extent:
        """Offset from the pointer of element `number` of the window, counted row by row."""
        strides, position = self.array.strides, 0
        sizes = [span.extent for span in self.spans]
        is_constant = is_number(number) and all(map(is_number, sizes))
        if is_constant and not 0 <= number < prod(sizes):
            raise mistake("PTO-S201", f"element {number} of a view of {prod(sizes)} elements")
        if all(span.is_whole for span in self.spans) and strides == contiguous(self.array.shape):
            return number
        for n, (span, stride) in reversed(list(enumerate(zip(self.spans, strides, strict=True)))):
            lines = 0 if n == 0 else arith("//", number, span.extent)
            inside = arith("-", number, arith("*", lines, span.extent))
            position = arith("+", position, arith("*", arith("+", span.start, inside), stride))
            number = lines
        return position

    def place_at(self, indices: Sequence[Extent]) -> Extent:
        """Offset from the pointer of the element at these indices of the window."""
        if len(indices) != len(self._sliced):
            raise mistake(
                "PTO-S201",
                f"{len(indices)} indices of a view of {len(self._sliced)} dimensions",
                help="one for each dimension: isa.load_scalar(x, i, j)",
            )
        inside_indices, position = iter(indices), 0
        for span, stride in zip(self.spans, self.array.strides, strict=True):
            inside = 0 if span.is_index else next(inside_indices)
            known_size = span.extent if is_number(span.extent) else None
            if is_number(inside) and (
                inside < 0 or (known_size is not None and inside >= known_size)
            ):
                size = "" if known_size is None else f" of size {known_size}"
                raise mistake("PTO-S201", f"index {inside} of a dimension{size}")
            position = arith("+", position, arith("*", arith("+", span.start, inside), stride))
        return position

    def lower_whole(self) -> Value:
        """The whole window as a value of the program."""
        return self._partition([span.extent for span in self.spans])

    def _stated(self, axis: int, size: Extent, times: int = 1) -> Extent:
        """The size of a slice if Python knows it, so that another tile size is an error."""
        span = self.spans[axis]
        fixed = not span.is_open and is_number(span.extent) and is_number(size)
        if fixed or span.is_exceeded(size, times):
            return span.length * times
        return size

    def _partition(self, sizes: list[Extent]) -> Value:
        operands = {
            "source": self.array.used(),
            "offsets": [
                as_value(_start(span, size, limit), INDEX)
                for span, size, limit in zip(self.spans, sizes, self.array.shape, strict=True)
            ],
            "sizes": [as_value(n, INDEX) for n in sizes],
        }
        shape = tuple(n if is_number(n) else None for n in sizes)
        type = ViewType(shape, scalar_type(self.array.dtype), partition=True)
        (value,) = current().emit(PARTITION_VIEW, operands, results=[type], names=["part"])
        return value


def _start(span: WindowSpan, size: object, limit: object) -> object:
    """The start of a window, limited to the end of the array if the window may be empty."""
    if is_number(size) or is_number(span.start):
        return span.start
    return arith("min", span.start, limit)


def pointer_type(dtype: DType) -> Ptr:
    return Ptr(scalar_type(dtype))
