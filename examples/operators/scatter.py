"""y = data with updates at indices along an axis, as torch.scatter: replaced, or combined with
`reduce`, one after the other.

Bound by the scalar unit: a block holds a line of the data along the axis in the vector buffer, and
the scalar unit puts every update of the line into it. Where the axis is not the last one, launches
before and after turn the arrays.
"""

from typing import Any

import numpy as np

import pto
from examples.operators.tiles import around

LEVEL = 2
BLOCKS = 48
Array = pto.Global[Any]


@pto.kernel
def turned(x: Array, y: Array) -> None:
    b, i, j = pto.block_idx(2), pto.block_idx(1) * 64, pto.block_idx(0) * 64
    pto.store(
        y[b, j:, i:],
        pto.load(x[b, i:, j:], 64, 64).to(y.dtype, saturate=False if y.dtype.is_float else None).T,
    )


@pto.kernel
def lines(data: Array, indices: Array, updates: Array, y: Array, reduce: str | None) -> None:
    words = data.shape[0] // indices.shape[0]
    kind = pto.f32 if data.dtype.is_float else data.dtype
    for line in pto.range(pto.block_idx(), data.shape[0], pto.block_num()):
        t = pto.load(data[line, :], 1, data.shape[1]).to(kind)
        at = pto.load(indices[line // words, :], 1, indices.shape[1]).to(pto.i32)
        new = pto.load(updates[line, :], 1, indices.shape[1]).to(kind)
        for r in pto.range(indices.shape[1]):
            i, value = at[0, r], new[0, r]
            if reduce == "add":
                value = t[0, i] + value
            elif reduce == "multiply":
                value = t[0, i] * value
            elif reduce == "amin":
                value = pto.min(t[0, i], value)
            elif reduce == "amax":
                value = pto.max(t[0, i], value)
            t[0, i] = value
        pto.store(y[line, :], t.to(y.dtype, saturate=False if kind is pto.f32 else None))


def turn(x: Any, kind: Any) -> Any:
    """The array with the last two axes exchanged, in another element type."""
    b, m, n = x.shape
    y = np.empty((b, n, m), kind)
    turned[pto.cdiv(n, 64), pto.cdiv(m, 64), b](x, y)
    return y


@pto.operator
def run(data: Any, dim: int, indices: Any, updates: Any, reduce: str | None = None) -> Any:
    y = np.empty_like(data)
    words = 2 if data.itemsize == 8 else 1  # elements of 64 bits are pairs, which are only moved
    a, b, c, out = data, indices, updates, y
    if words == 2:
        a, c, out = (each.view(np.int32) for each in (data, updates, y))
    before, n, after = around(data.shape, dim)
    k = indices.shape[dim]
    if words == 1 and after == 1:
        a, out = (each.reshape(before, n) for each in (a, out))
        b, c = (each.reshape(before, k) for each in (b, c))
        lines[min(BLOCKS, before)](a, b, c, out, reduce)
        return y
    kind = np.float32 if data.dtype.kind not in "iu" else a.dtype
    a, c = (turn(each.reshape(before, -1, after * words), kind) for each in (a, c))
    b = turn(b.reshape(before, k, after), np.int32)
    result = np.empty_like(a)
    rows = before * after * words
    a, d = (each.reshape(rows, n) for each in (a, result))
    lines[min(BLOCKS, rows)](a, b.reshape(-1, k), c.reshape(rows, k), d, reduce)
    shape = before, n, after * words
    turned[pto.cdiv(n, 64), pto.cdiv(after * words, 64), before](result, out.reshape(shape))
    return y


def reference(data: Any, dim: int, indices: Any, updates: Any, reduce: str | None = None) -> Any:
    y, places = data.copy(), [*np.indices(indices.shape)]
    places[dim] = indices
    acts: dict[str, Any] = {"add": np.add, "multiply": np.multiply}
    acts |= {"amin": np.minimum, "amax": np.maximum}
    if reduce in acts:
        acts[reduce].at(y, tuple(places), updates)
    else:
        y[tuple(places)] = updates
    return y


def inputs(arguments: dict[str, Any], random: Any) -> dict[str, Any]:
    """Without `reduce`, indices that are all different along the axis."""
    if arguments.get("reduce"):
        return arguments
    dim, indices, data = arguments["dim"], arguments["indices"], arguments["data"]
    orders = random.permuted(np.broadcast_to(_ramp(data.shape, dim), data.shape), axis=dim)
    crop = tuple(slice(n) for n in indices.shape)
    return {**arguments, "indices": orders[crop].astype(indices.dtype)}


def _ramp(shape: tuple[int, ...], dim: int) -> Any:
    return np.arange(shape[dim]).reshape(
        [-1 if n == dim % len(shape) else 1 for n in range(len(shape))]
    )


def _case(data: str, indices: str, kinds: tuple[str, str], dim: int = 0, **more: Any) -> Any:
    (kind, index), span = kinds, more.pop("span", "-3..6")
    each = {"data": f"{kind}[{data}] {span}", "updates": f"{kind}[{indices}] {span}"}
    return {**each, "indices": f"{index}[{indices}] 0..{more.pop('last', 9)}", "dim": dim, **more}


CASES: list[dict[str, Any]] = [
    _case("40, 16", "20, 16", ("f16", "i32")),
    _case("5, 61", "5, 80", ("bf16", "i64"), dim=1, reduce="add", last=60),
    _case("17, 12", "20, 12", ("f32", "i64"), reduce="multiply", last=16, span="-2..2"),
    _case(
        "17, 12", "40, 12", ("i32", "i32"), reduce="amax", last=16, span="-2147483648..2147483647"
    ),
    _case("3, 7, 11", "2, 7, 11", ("f32", "i64"), reduce="amin", last=2),
    _case("16, 6, 103", "16, 6, 50", ("bf16", "i32"), dim=2),
    _case("41, 11", "20, 11", ("i64", "i64"), span="-10000000000..10000000000"),
    _case("103", "50", ("f32", "i32"), dim=-1, span="-inf..inf"),
    _case("7, 4, 5", "6, 4, 5", ("f16", "i64"), span="nan..nan"),
]
