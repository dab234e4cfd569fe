"""Tiles and tensors in C++: declarations, addresses, windows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pto.core.errors import fail
from pto.core.layout import FRACTAL_MX
from pto.core.tile import TileType
from pto.cxx.export import spelling
from pto.cxx.forms import enumerators
from pto.cxx.packed import in_values, values_in
from pto.ir.graph import Operation, Value
from pto.isa.handle.config import TASSIGN
from pto.isa.handle.tile import ALLOC_TILE, BITCAST
from pto.isa.handle.view import MAKE_TENSOR_VIEW, PARTITION_VIEW
from pto.isa.handle.window import SUBVIEW
from pto.isa.meaning.order.ring import slot_count
from pto.isa.row import types as t
from pto.isa.row.attributes import Bool, Enum, Int
from pto.isa.row.order import OpenQueue, Order, QueueSlots
from pto.isa.rules.global_memory import line_axis

if TYPE_CHECKING:
    from pto.cxx.export.function import Writer

_RANK = 5  # of every GlobalTensor
_PARTS = ("Shape", "Stride")


def parameter_type(type: t.Type) -> str:
    """The C++ type of a parameter."""
    if isinstance(type, t.TileBuf):
        return f"{spelling.tile(in_values(type.tile))}&"
    return variable_type(type)


def variable_type(type: t.Type) -> str:
    """The C++ type of a number or a pointer."""
    if isinstance(type, t.Scalar):
        return spelling.scalar(type)
    if isinstance(type, t.Ptr) and isinstance(type.elem, t.Scalar):
        if type.space.name != "GM":
            raise fail("PTO-U249", "C++ kernels have no pointers into local buffers")
        return f"__gm__ {spelling.scalar(type.elem)}*"
    raise fail("PTO-U249", f"C++ has no variable of type {type.kind}")


@dataclass(slots=True)
class Tensor:
    """A view: where it begins, its sizes and strides, all as text."""

    pointer: str
    sizes: list[str]
    strides: list[str]
    layout: str

    def _five(self) -> tuple[list[str], list[str]]:
        """Sizes and strides, of as many dimensions as a tensor of C++ has."""
        rank = len(self.sizes)
        if rank > _RANK:
            raise fail("PTO-U249", f"a tensor of C++ has {_RANK} dimensions, this one {rank}")
        outer = _product(self.sizes[0], self.strides[0]) if rank else "1"
        return ["1"] * (_RANK - rank) + self.sizes, [outer] * (_RANK - rank) + self.strides

    def type(self, value: Value) -> str:
        """The C++ type of a view."""
        assert isinstance(value.type, t.View)
        shape, steps = map(_static, _PARTS, self._five())
        layout = f", Layout::{self.layout}" if self.layout else ""
        return f"GlobalTensor<{spelling.scalar(value.type.elem)}, {shape}, {steps}{layout}>"

    def declared(self, writer: Writer, value: Value) -> str:
        """The `GlobalTensor` of a view, with a name."""
        type, name = self.type(value), writer.name(value)
        extents = (
            f"{_static(*n)}({_dynamic(n[1])})" for n in zip(_PARTS, self._five(), strict=True)
        )
        writer.line(f"{type} {name}({self.pointer}, {', '.join(extents)});")
        return name

    def beside(self, tile: TileType) -> Tensor:
        """The C++ tensor for a transfer with this tile: its layout follows the tile's lines."""
        axis = line_axis(tile.layout)
        if self.layout not in ("", "DN") or len(self.sizes) < 2:
            return self
        if self.sizes[axis] != "1" and tile.valid[axis] != 1 and self.strides[axis] != "1":
            raise fail(
                "PTO-U249",
                f"the library copies lines of a {tile.layout.name} tile as runs of elements, and"
                f" those of the view are {self.strides[axis]} apart",
                help="let a kernel take the array transposed, or transpose the tile: pto.ttrans",
            )
        if tile.layout.is_boxed and tile.layout.fractal == FRACTAL_MX:
            return self._scales(axis)
        moved = replace(self, layout="DN" if axis == -2 else "")
        return moved._in_values(axis) if tile.dtype.is_packed else moved

    def _in_values(self, axis: int) -> Tensor:
        """Packed pairs along an axis, as C++ counts them."""
        sizes, strides = list(self.sizes), [_product("2", stride) for stride in self.strides]
        sizes[axis], strides[axis] = _product("2", sizes[axis]), "1"
        return replace(self, sizes=sizes, strides=strides)

    def _scales(self, k: int) -> Tensor:
        """Scales of MX operands, in pairs along K."""
        size, stride = self.sizes[-3 - k], self.strides[-3 - k]
        outer = _product(size, stride)
        along = self.sizes[k]
        pairs = str(int(along) // 2) if _is_number(along) else f"{along} / 2"
        steps = [outer, outer, stride, "2", "1"]
        layout = "MX_A_ND" if k == -1 else "MX_B_DN"
        return Tensor(self.pointer, ["1", "1", size, pairs, "2"], steps, layout)


def _is_number(text: str) -> bool:
    return text.removesuffix("LL").lstrip("-").isdigit()


def _static(name: str, values: Sequence[str]) -> str:
    inside = (v.removesuffix("LL") if _is_number(v) else "DYNAMIC" for v in values)
    return f"{name}<{', '.join(inside)}>"


def _dynamic(values: Sequence[str]) -> str:
    return ", ".join(v for v in values if not _is_number(v))


def _product(a: str, b: str) -> str:
    if "0" in (a, b) or "1" in (a, b):
        return "0" if "0" in (a, b) else b if a == "1" else a
    if _is_number(a) and _is_number(b):
        return str(int(a.removesuffix("LL")) * int(b.removesuffix("LL")))
    return f"{a} * {b}"


def _whole(writer: Writer, op: Operation) -> None:
    (pointer,), layout = op.group("ptr"), op.attrs.get("layout")
    writer.tensors[id(op.results[0])] = Tensor(
        writer.text(pointer),
        [writer.text(v) for v in op.group("shape")],
        [writer.text(v) for v in op.group("strides")],
        layout.value.upper() if isinstance(layout, Enum) and layout.value != "nd" else "",
    )


def _window(writer: Writer, op: Operation) -> None:
    source = op.operand("source")
    tensor = writer.tensors.get(id(source))
    if tensor is None:
        raise fail("PTO-U249", "the view it is a window of has no form in C++")
    pointer = _moved(writer, op, tensor.pointer, tensor.strides)
    sizes = [writer.text(v) for v in op.group("sizes")]
    writer.tensors[id(op.results[0])] = Tensor(pointer, sizes, tensor.strides, tensor.layout)


def declared_type(value: Value) -> TileType:
    """The tile type of a value in C++: a window has the lines of its parent."""
    assert isinstance(value.type, t.TileBuf)
    declared, maker = value.type.tile, value.maker
    source = maker.operand("source") if maker is not None and maker.row is SUBVIEW else None
    if source is None or not isinstance(source.type, t.TileBuf):
        return declared
    parent = source.type.tile
    if parent.layout.pitch_axis == 1:
        return replace(declared, cols=declared_type(source).cols)
    return replace(declared, rows=declared_type(source).rows)


def declare_tile(writer: Writer, value: Value) -> str:
    """A variable for a tile; the constructor takes the sizes that only the run knows."""
    type, static = writer.tile_type(value), declared_type(value).valid
    sizes_given = [
        _product(_size(writer, value, axis, static[axis]), str(values))
        for axis, values in enumerate(values_in(type.dtype, type.layout))
        if type.valid[axis] is None
    ]
    name = writer.name(value)
    sizes = f"({', '.join(sizes_given)})" if sizes_given else ""
    writer.line(f"{spelling.tile(in_values(type))} {name}{sizes};")
    return name


def _size(writer: Writer, value: Value, axis: int, static: int | None) -> str:
    """An extent of a valid region: an operand, that of the tile seen anew, or the whole."""
    maker, name = value.maker, ("valid_row", "valid_col")[axis]
    if static is not None or maker is None:
        return str(static)
    if name in maker.row.operand_names:
        return "".join(map(writer.text, maker.group(name)))
    if maker.row is BITCAST:
        return f"{writer.text(maker.operands[0])}.{('GetValidRow', 'GetValidCol')[axis]}()"
    return str(declared_type(value).shape[axis])


def _tile(writer: Writer, op: Operation) -> None:
    """A tile at its address: as planned, or as in the program."""
    name, address = declare_tile(writer, op.results[0]), op.operand("addr")
    number = writer.placement.address(op) if address is None else address.number
    position = writer.text(address) if address is not None and number is None else f"{number:#x}"
    writer.line(f"TASSIGN({name}, {position});")


def _assigned(writer: Writer, op: Operation) -> None:
    name, address = (writer.text(v) for v in (*op.group("tile"), *op.group("addr")))
    writer.line(f"TASSIGN({name}, {address});")
    writer.texts[id(op.results[0])] = name


def _part(writer: Writer, op: Operation) -> None:
    """A window of a tile keeps the lines of its parent, valid as far as the window goes."""
    (source,), result = op.group("source"), op.results[0]
    parent = source.type.tile if isinstance(source.type, t.TileBuf) else None
    if parent is None or parent.layout.is_boxed:
        raise fail("PTO-U249", "only windows of tiles without boxes can be exported")
    name, shape = declare_tile(writer, result), declared_type(result).shape
    by_rows = parent.layout.pitch_axis == 1
    steps = (str(shape[1]), "1") if by_rows else ("1", str(shape[0]))
    position = _moved(writer, op, f"{writer.text(source)}.data()", steps)
    writer.line(f"TASSIGN({name}, (uint64_t)({position}));")


def _moved(writer: Writer, op: Operation, pointer: str, steps: Sequence[str]) -> str:
    """Where a window begins: a pointer moved by the offsets of the operation."""
    pairs = zip((writer.text(v) for v in op.group("offsets")), steps, strict=True)
    return " + ".join([pointer, *(_product(*pair) for pair in pairs if "0" not in pair)])


def _open(writer: Writer, op: Operation) -> None:
    """The `TPipe` of a queue, named by its number, as the rows that push and pop name it."""
    numbers = {name: a.value for name, a in op.attrs.items() if isinstance(a, Int | Bool)}
    buffers = [op.operand(name) for name in ("gm_slot_buffer", *_BUFFERS) if not op.results]
    if not buffers or op.group("gm_slot_tensor"):
        raise fail("PTO-U249", "only queues with a consumer buffer and a number can be exported")
    global_buffer, *local = ("" if v is None else writer.text(v) for v in buffers)
    n, mask = numbers.get("id", 0), numbers["dir_mask"]
    way, slots = enumerators()["Direction"][mask], slot_count(mask, numbers.get("slot_num"))
    local_slots = numbers.get("local_slot_num", slots)
    kind = f"{4 * n}, Direction::{way}, {numbers['slot_size']}, {slots}, {local_slots}"
    kind += ", true" * bool(numbers.get("nosplit"))
    queue_buffers = [
        f"(__gm__ void*){global_buffer or 'nullptr'}",
        *(buffer or "0" for buffer in local),
    ]
    writer.line(f"TPipe<{kind}> queue{n}({', '.join(queue_buffers)});")


_BUFFERS = ("c2v_consumer_buf", "v2c_consumer_buf")

# How an operation is written, by the name of its row or by the kind of its order.
PLACES: dict[str | type[Order | None], Callable[[Writer, Operation], None]] = {
    MAKE_TENSOR_VIEW.name: _whole,
    PARTITION_VIEW.name: _window,
    ALLOC_TILE.name: _tile,
    TASSIGN.name: _assigned,
    SUBVIEW.name: _part,
    QueueSlots: lambda w, op: w.texts.update({id(op.results[0]): hex(w.placement.address(op))}),
    OpenQueue: _open,
}
