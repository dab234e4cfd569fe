"""One tile or address under several accesses: whole, as a row, as a column, in another iteration.

Expectations are NumPy's, written here; both engines are compared with them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pto
from pto import isa
from pto.isa.meaning.kinds import Lane
from pto.isa.table import rows
from tests.run.jit.both import agree, same
from tests.run.jit.test_fusion import forwards, normal

__all__ = ["forwards"]
Array = Any
F32 = pto.Global[pto.f32]


def gives(kernel: Any, expected: Callable[..., Array], *args: Array) -> None:
    """Both engines store the expected array into the last argument."""
    want = expected(*args)
    for engine in ("reference", "jit"):
        out = np.zeros_like(want)
        kernel(*args, out, engine=engine)
        same(out, want)


# ---- a tile that is read whole and as its first row or column


@pytest.mark.parametrize("shape", [(4, 8), (8, 64), (5, 24), (3, 200)])
def test_a_tile_less_its_first_row(shape: tuple[int, int]) -> None:
    @pto.kernel(profile="a5")
    def less(x: F32, y: F32) -> None:
        t, u, w = (pto.tile(*shape, pto.f32) for _ in range(3))
        isa.tload(t, x)
        for _ in pto.range(2):  # the load is not part of the group
            isa.tcolexpand(u, t)
            isa.tsub(w, t, u)
            isa.tstore(y, w)

    gives(less, lambda x: x - x[0], normal(*shape))


def test_a_row_of_what_was_scaled() -> None:
    @pto.kernel(profile="a5")
    def scaled(x: F32, y: F32) -> None:
        t, u, w = (pto.tile(8, 64, pto.f32) for _ in range(3))
        isa.tload(t, x)
        for _ in pto.range(2):
            isa.tmuls(u, t, 2.0)
            isa.tcolexpandadd(w, u, t)
            isa.tstore(y, w)

    gives(scaled, lambda x: 2 * x + x[0], normal(8, 64))


SPREAD = sorted(
    (row.name, row.body.spread)
    for row in rows()
    if isinstance(row.body, Lane) and row.body.spread and len(row.operands) > 2
)
NUMPY = {"add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide,
         "max": np.maximum, "min": np.minimum}  # fmt: skip


def expansion(op: str, profile: str, dst: str) -> str:
    tile, view = "!pto.tile_buf<vec, 4x8xf32>", "!pto.partition_tensor_view<4x8xf32>"
    whole = "!pto.tensor_view<4x8xf32>"
    return f"""
    module attributes {{pto.target_arch = "{profile}"}} {{
      func.func @f(%x: !pto.ptr<f32, gm>, %y: !pto.ptr<f32, gm>) {{
        %c0 = arith.constant 0 : index
        %c1 = arith.constant 1 : index
        %c4 = arith.constant 4 : index
        %c8 = arith.constant 8 : index
        %v = pto.make_tensor_view %x, shape = [%c4, %c8], strides = [%c8, %c1] : {whole}
        %w = pto.make_tensor_view %y, shape = [%c4, %c8], strides = [%c8, %c1] : {whole}
        %i = pto.partition_view %v, offsets = [%c0, %c0], sizes = [%c4, %c8] : {whole} -> {view}
        %o = pto.partition_view %w, offsets = [%c0, %c0], sizes = [%c4, %c8] : {whole} -> {view}
        %t = pto.alloc_tile : {tile}
        %u = pto.alloc_tile : {tile}
        pto.tload ins(%i : {view}) outs(%t : {tile})
        {op} ins(%t, %t : {tile}, {tile}) outs(%{dst} : {tile})
        pto.tstore ins(%{dst} : {tile}) outs(%o : {view})
        return
      }}
    }}
    """


@pytest.mark.parametrize("dst", ["t", "u"])
@pytest.mark.parametrize(("op", "axis"), SPREAD)
def test_one_tile_as_both_operands(op: str, axis: str, dst: str) -> None:
    """Whole and expanded, in place and elsewhere. On a2a3 a row expansion refuses such tiles."""
    x = normal(4, 8)
    fn = next((fn for word, fn in NUMPY.items() if op.endswith(f"expand{word}")), None)
    for profile in ("a5", "a2a3") if axis == "column" else ("a5",):
        found = agree(expansion(op, profile, dst), [x, np.zeros_like(x)])[1]
        if fn is not None:
            same(found, fn(x, x[:1] if axis == "column" else x[:, :1]))


def test_the_expansions_are_all_there() -> None:
    """Seven along columns, seven along rows."""
    axes = [axis for _, axis in SPREAD]
    assert axes.count("column") >= 7 and axes.count("row") >= 7


# ---- a row of global memory that a group reads where it lies


def test_a_row_that_is_loaded_twice() -> None:
    """Each expansion reads the row of its own load."""

    @pto.kernel(profile="a5")
    def rows_of(x: F32, y: F32) -> None:
        t, u, w = (pto.tile(8, 64, pto.f32) for _ in range(3))
        row = pto.tile(1, 64, pto.f32)
        isa.tload(t, x)
        isa.tload(row, x[0:1, :])
        isa.tcolexpandadd(u, t, row)
        isa.tload(row, x[1:2, :])
        isa.tcolexpandmul(w, u, row)
        isa.tstore(y, w)

    gives(rows_of, lambda x: (x + x[0]) * x[1], normal(8, 64))


# ---- a tile that an iteration reads before it writes it


def test_a_row_that_the_next_iteration_reads() -> None:
    @pto.kernel(profile="a5")
    def carried(x: F32, y: F32) -> None:
        t, u, w = (pto.tile(8, 64, pto.f32) for _ in range(3))
        row = pto.tile(1, 64, pto.f32)
        for i in pto.range(2):
            isa.tload(t, x)
            isa.tcolexpandadd(u, t, row)
            isa.tload(row, x[i : i + 1, :])
            isa.tcolexpandadd(w, u, row)
            isa.tstore(y, w)

    gives(carried, lambda x: (x + x[0]) + x[1], normal(8, 64))


def test_a_tile_that_the_next_iteration_reads() -> None:
    """Every use is in one group, and the first is a read: the tile needs its memory."""

    @pto.kernel(profile="a5")
    def carried(x: F32, y: F32) -> None:
        t, u, w, last = (pto.tile(8, 64, pto.f32) for _ in range(4))
        for _ in pto.range(2):
            isa.tload(t, x)
            isa.tadd(u, t, last)
            isa.tmuls(last, t, 2.0)
            isa.tadd(w, u, last)
            isa.tstore(y, w)

    gives(carried, lambda x: (x + 2 * x) + 2 * x, normal(8, 64))


# ---- a right factor that two products unpack to different depths


def test_a_right_factor_under_two_depths() -> None:
    """The second product reads twice as many rows of it as the first."""

    @pto.kernel(profile="a5")
    def products(
        a: pto.Global[pto.f16], b: pto.Global[pto.f16], n: pto.Scalar[pto.i64], y: F32
    ) -> None:
        a_mat, b_mat = pto.tile(16, 32, pto.f16, role="mat"), pto.tile(32, 16, pto.f16, role="mat")
        short = pto.tile(16, 32, pto.f16, role="left", valid=(16, n))
        left, right = (
            pto.tile(*shape, pto.f16, role=role, valid=valid)
            for shape, role, valid in (((16, 32), "left", (16, 2 * n)), ((32, 16), "right", None))
        )
        acc = pto.tile(16, 16, pto.f32, role="acc")
        isa.tload(a_mat, a)
        isa.tload(b_mat, b)
        isa.textract(short, a_mat, 0, 0)
        isa.textract(left, a_mat, 0, 0)
        isa.textract(right, b_mat, 0, 0)
        isa.tmatmul(acc, short, right)
        isa.tmatmul_acc(acc, acc, left, right)
        isa.tstore(y, acc)

    rng = np.random.default_rng(3)
    a, b = (rng.integers(-8, 8, shape).astype(np.float16) for shape in ((16, 32), (32, 16)))
    wide = a.astype(np.float32), b.astype(np.float32)
    want = wide[0][:, :16] @ wide[1][:16] + wide[0] @ wide[1]
    for engine in ("reference", "jit"):
        out = np.zeros((16, 16), np.float32)
        products(a, b, 16, out, engine=engine)
        same(out, want)


# ---- results that share bytes, and bytes that nothing has written


WRITTEN = [
    (row, [o.name for o in row.operands if o.role in ("out", "inout") and o.kind == "tile"])
    for row in rows()
]
SEVERAL = [(r, names) for r, names in WRITTEN if len(set(names) - {"tmp"}) > 1 and r.body]


@pytest.mark.parametrize(("row", "names"), SEVERAL, ids=lambda v: getattr(v, "name", ""))
def test_results_of_one_instruction_share_no_bytes(row: Any, names: list[str]) -> None:
    """Every row with several results names all of them in such a rule; a scratch tile is none."""
    if row.name == "pto.tmrgsort":
        return  # a list of destinations, of which the last is a number
    said = [rule.sentence for rule in row.rules if rule.code == "PTO-M040"]
    wanted = [name for name in names if name != "tmp"]
    assert any(all(name in sentence for name in wanted) for sentence in said), row.name


def interleaved(first: int, second: int) -> str:
    tile, view = "!pto.tile_buf<vec, 4x64xui8>", "!pto.tensor_view<4x64xui8>"
    return f"""
    module attributes {{pto.target_arch = "a5"}} {{
      func.func @f(%x: !pto.ptr<ui8, gm>, %y: !pto.ptr<ui8, gm>, %z: !pto.ptr<ui8, gm>) {{
        %c1 = arith.constant 1 : index
        %c4 = arith.constant 4 : index
        %c64 = arith.constant 64 : index
        %p = arith.constant {first} : i64
        %q = arith.constant {second} : i64
        %far = arith.constant 4096 : i64
        %v = pto.make_tensor_view %x, shape = [%c4, %c64], strides = [%c64, %c1] : {view}
        %w = pto.make_tensor_view %y, shape = [%c4, %c64], strides = [%c64, %c1] : {view}
        %u = pto.make_tensor_view %z, shape = [%c4, %c64], strides = [%c64, %c1] : {view}
        %t = pto.alloc_tile addr = %far : {tile}
        %a = pto.alloc_tile addr = %p : {tile}
        %b = pto.alloc_tile addr = %q : {tile}
        pto.tload ins(%v : {view}) outs(%t : {tile})
        "pto.tinterleave"(%t, %t, %a, %b) : ({tile}, {tile}, {tile}, {tile}) -> ()
        pto.tstore ins(%a : {tile}) outs(%w : {view})
        pto.tstore ins(%b : {tile}) outs(%u : {view})
        return
      }}
    }}
    """


@pytest.mark.parametrize("places", [(0, 0), (0, 64), (64, 0), (0, 224), (0, 256)])
def test_results_at_one_place_are_written_in_the_order_of_the_operands(
    places: tuple[int, int],
) -> None:
    """Addresses that only a run tells apart: the second result lies on the first."""
    x = np.arange(256, dtype=np.uint8).reshape(4, 64)
    memory = np.zeros(1024, np.uint8)
    for at, half in zip(
        places, (np.repeat(x[:, :32], 2, 1), np.repeat(x[:, 32:], 2, 1)), strict=True
    ):
        memory[at : at + 256] = half.ravel()
    args = [x, np.zeros_like(x), np.zeros_like(x)]
    program = pto.parse(interleaved(*places))
    found = agree(program, args, all_native=False, check=False)
    for array, at in zip(found[1:], places, strict=True):
        same(array.ravel(), memory[at : at + 256])


def test_one_tile_as_both_results_is_refused() -> None:
    text = interleaved(0, 256).replace("%a, %b)", "%a, %a)")
    with pytest.raises(pto.PtoError, match=r"PTO-M040.*dst0 and dst1 to share no bytes"):
        pto.launch(pto.parse(text), args=[np.zeros(256, np.uint8)] * 3)


def test_a_tile_that_was_never_written() -> None:
    """Its place was another tile's before, whose bytes both engines find there."""

    @pto.kernel(profile="a5")
    def unwritten(x: F32, y: F32, z: F32) -> None:
        t, u, never = (pto.tile(8, 64, pto.f32, address=n) for n in (0, 2048, 0))
        isa.tload(t, x)
        isa.tadds(u, t, 1.0)
        isa.tstore(y, u)
        isa.tstore(z, never)

    x, found = normal(8, 64), list[Any]()
    for engine in ("reference", "jit"):
        y, z = np.zeros_like(x), np.ones_like(x)
        unwritten(x, y, z, engine=engine)
        same(y, x + np.float32(1))
        found.append(z)
    same(*found)
    same(found[0], x)  # the loaded tile's, whose place it has


@pytest.mark.parametrize("kind", [np.dtype("float8_e4m3fn"), np.dtype("float8_e5m2")], ids=str)
@pytest.mark.parametrize("op", ["pto.tadd", "pto.tcolexpandadd", "pto.tmul"])
def test_arithmetic_on_floats_of_eight_bits(op: str, kind: Any) -> None:
    """Compiled code added them as integers. No profile takes such a program; a launch that is not
    checked runs it."""
    elem = {"float8_e4m3fn": "f8E4M3FN", "float8_e5m2": "f8E5M2"}[kind.name]
    text = expansion(op, "cpu", "u").replace("f32", elem).replace("4x8", "4x32")
    text = text.replace("constant 8", "constant 32")
    x = np.arange(-64, 64).astype(np.float32).astype(kind).reshape(4, 32)
    other = x[:1] if "expand" in op else x
    fn = np.multiply if op.endswith("mul") else np.add
    want = fn(x.astype(np.float32), other.astype(np.float32)).astype(kind)
    found = agree(text, [x, np.zeros_like(x)], all_native=False, check=False)[1]
    same(found, want)


@pytest.mark.parametrize("axis", ["row", "column"])
def test_the_rest_of_a_folded_tile_is_not_what_the_block_before_left(axis: str) -> None:
    """A fold writes the first row or column. The rest is zero in every block, as buffers are."""
    tile, view = "!pto.tile_buf<vec, 4x8xf32>", "!pto.partition_tensor_view<4x8xf32>"
    parts = "\n".join(
        f"""
        %v{p} = pto.make_tensor_view %{p}, shape = [%c8, %c8], strides = [%c8, %c1]
          : !pto.tensor_view<8x8xf32>
        %w{p} = pto.partition_view %v{p}, offsets = [%i, %c0], sizes = [%c4, %c8]
          : !pto.tensor_view<8x8xf32> -> {view}"""
        for p in "xy"
    )
    text = f"""module attributes {{pto.target_arch = "cpu"}} {{
      func.func @f(%x: !pto.ptr<f32>, %y: !pto.ptr<f32>) {{
        %c0 = arith.constant 0 : index
        %c1 = arith.constant 1 : index
        %c4 = arith.constant 4 : index
        %c8 = arith.constant 8 : index
        %b = pto.get_block_idx
        %n = arith.index_cast %b : i64 to index
        %i = arith.muli %n, %c4 : index
        %t = pto.alloc_tile : {tile}
        %m = pto.alloc_tile : {tile}
        {parts}
        pto.tload ins(%wx : {view}) outs(%t : {tile})
        pto.{"tcolmax" if axis == "column" else "trowmax"} ins(%t : {tile}) outs(%m : {tile})
        pto.tadd ins(%t, %m : {tile}, {tile}) outs(%t : {tile})
        pto.tstore ins(%t : {tile}) outs(%wy : {view})
        pto.tload ins(%wx : {view}) outs(%m : {tile})
        return
      }}
    }}"""
    x = np.abs(normal(8, 8)) + np.float32(1.0)
    want = x.copy().reshape(2, 4, 8)
    if axis == "column":
        want[:, 0, :] += want.max(axis=1)
    else:
        want[:, :, 0] += want.max(axis=2)
    for engine in ("reference", "jit"):
        y = np.zeros_like(x)
        pto.launch(text, args=[x, y], engine=engine, blocks=2, check=False)
        same(y, want.reshape(8, 8))


def test_an_error_in_the_second_result_leaves_the_first_as_it_was() -> None:
    """dstIdx has one row of two: the finding is not about counts that dst has replaced."""
    tile = "!pto.tile_buf<vec, 2x8xi32, valid=2x1>"
    one, view = "!pto.tile_buf<vec, 1x8xi32, valid=1x1>", "!pto.partition_tensor_view<2x1xi32>"
    text = f"""module attributes {{pto.target_arch = "a5"}} {{
      func.func @f(%p: !pto.ptr<i32>) {{
        %c0 = arith.constant 0 : index
        %c1 = arith.constant 1 : index
        %c2 = arith.constant 2 : index
        %a = pto.alloc_tile : {tile}
        %n = pto.alloc_tile : {tile}
        %d = pto.alloc_tile : {one}
        %v = pto.make_tensor_view %p, shape = [%c2, %c1], strides = [%c1, %c1]
          : !pto.tensor_view<2x1xi32>
        %w = pto.partition_view %v, offsets = [%c0, %c0], sizes = [%c2, %c1]
          : !pto.tensor_view<2x1xi32> -> {view}
        pto.tload ins(%w : {view}) outs(%a : {tile})
        pto.trelu ins(%a : {tile}) outs(%n : {tile})
        pto.tsub ins(%a, %n : {tile}, {tile}) outs(%a : {tile})
        pto.tsub ins(%a, %n : {tile}, {tile}) outs(%a : {tile})
        pto.tconcatidx ins(%a, %n, %n, %n : {tile}, {tile}, {tile}, {tile})
          outs(%n, %d : {tile}, {one})
        return
      }}
    }}"""
    for engine in ("reference", "jit"):
        with pytest.raises(pto.PtoError) as error:
            pto.launch(text, args=[np.array([4, -9], np.int32)], engine=engine, check=False)
        assert error.value.code == "PTO-S131"


@pytest.mark.parametrize("engine", ["reference", "jit"])
def test_an_empty_region_needs_no_element_of_a_source(engine: str) -> None:
    """Of the second source one row is there, and the region has two rows of no columns."""
    tile = "!pto.tile_buf<vec, 4x16xf32, valid=?x?>"
    line = "!pto.tile_buf<vec, 1x16xf32, valid=1x8>"
    text = f"""module attributes {{pto.target_arch = "a5"}} {{
  func.func @f(%rows: index, %cols: index) {{
    %c0 = arith.constant 0.0 : f32
    %t = pto.alloc_tile valid_row = %rows valid_col = %cols : {tile}
    %u = pto.alloc_tile : {line}
    pto.texpands ins(%c0 : f32) outs(%t : {tile})
    pto.texpands ins(%c0 : f32) outs(%u : {line})
    pto.trowexpandsub ins(%t, %u : {tile}, {line}) outs(%t : {tile})
    return
  }}
}}"""
    pto.launch(pto.parse(text), args=[2, 0], engine=engine)
    with pytest.raises(pto.PtoError):
        pto.launch(pto.parse(text), args=[2, 8], engine=engine)
