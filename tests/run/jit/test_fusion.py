"""Instructions that work row by row, done together by the fast engine: the same bytes as one after
the other on the reference engine, whatever lies on what."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import pto
from pto import isa
from pto.run.jit.emit.fusion import FusingEmitter
from pto.run.jit.emit.names import Names
from pto.run.jit.emit.tile import steps, strips
from pto.run.jit.ir.passes import Rematerialiser
from tests.run.jit import both
from tests.run.jit.both import same

RNG = np.random.default_rng(11)
Array = Any


@pytest.fixture(autouse=True)
def forwards(monkeypatch: pytest.MonkeyPatch) -> None:
    """As it is where nobody looks into buffers."""
    monkeypatch.setattr(FusingEmitter, "forwards", True)


def normal(*shape: int, kind: Any = np.float32) -> Array:
    return RNG.standard_normal(shape).astype(kind)


def agree(kernel: Any, *args: Any, blocks: int = 1, fused: Sequence[int] | None = None) -> None:
    """The same bytes on both engines; `fused`: how many instructions each fused group has."""
    ours, theirs = ([np.copy(a) if isinstance(a, np.ndarray) else a for a in args] for _ in "ab")
    kernel[blocks](*theirs, engine="reference")
    report = kernel[blocks](*ours, engine="jit")
    assert fused is None or [len(group) for group in report.fused] == list(fused), report.fused
    for mine, other in zip(ours, theirs, strict=True):
        same(mine, other)


@pytest.mark.parametrize(("rows", "cols"), [(4, 64), (7, 100), (64, 128), (33, 16), (5, 1024)])
def test_softmax(rows: int, cols: int) -> None:
    @pto.kernel(profile="a5")
    def softmax(x: pto.Global[pto.f32], y: pto.Global[pto.f32]) -> None:
        t = pto.load(x[pto.block_idx() * 8 :, :], 8, cols)
        e = pto.exp(t - t.max(axis=1))
        pto.store(y[pto.block_idx() * 8 :, :], e / e.sum(axis=1))

    x = normal(rows, cols)
    x[0, :3] = np.nan, np.inf, -np.inf
    agree(softmax, x, np.zeros_like(x), blocks=pto.cdiv(rows, 8), fused=[7])


@pytest.mark.parametrize("kind", [pto.f32, pto.f16, pto.bf16])
@pytest.mark.parametrize("rows", [1, 6, 16])
def test_layernorm(kind: Any, rows: int) -> None:
    @pto.kernel(profile="a5")
    def layernorm(
        x: pto.Global[Any], weight: pto.Global[Any], bias: pto.Global[Any], y: pto.Global[Any]
    ) -> None:
        t = pto.load(x[:, :], rows, 256).to(pto.f32)
        t -= t.mean(axis=1)
        t /= pto.sqrt((t * t).mean(axis=1) + 1e-5)
        scaled = t.to(kind) * pto.load(weight, 256) + pto.load(bias, 256)
        pto.store(y[:, :], scaled)

    x, w, b = normal(rows, 256, kind=kind.numpy), normal(256, kind=kind.numpy), normal(256)
    casts = 0 if kind is pto.f32 else 1
    # of one row, a sum is a tile of one element: another size, and so another group
    groups = [2 + casts, 3, 3, 6 + casts] if rows == 1 else [15 + 2 * casts]
    agree(layernorm, x, w, b.astype(kind.numpy), np.zeros_like(x), fused=groups)


@pto.kernel(profile="a5")
def shifted(x: pto.Global[pto.f32], i: int, o: int, j: int, p: int) -> None:
    """From one window of an array to another."""
    t, u = pto.tile(24, 64, pto.f32), pto.tile(24, 64, pto.f32)
    isa.tload(t, x[i : i + 24, o : o + 64])
    isa.tadds(u, t, 1.0)
    isa.tmul(t, t, u)
    isa.tstore(x[j : j + 24, p : p + 64], t)


@pytest.mark.parametrize("where", [(0, 0, 0, 0), (0, 0, 1, 0), (1, 0, 0, 0), (0, 0, 0, 64),
                                   (0, 64, 0, 32), (3, 0, 0, 64), (0, 0, 40, 0),
                                   (0, 48, 1, 0)])  # fmt: skip
def test_windows_of_one_array(where: tuple[int, ...]) -> None:
    agree(shifted, normal(64, 128), *where, fused=[4])


@pto.kernel(profile="a5")
def read_again(x: pto.Global[pto.f32], y: pto.Global[pto.f32]) -> None:
    t, u = pto.tile(8, 64, pto.f32), pto.tile(8, 64, pto.f32)
    isa.tload(t, x[0:8, :])
    isa.tadds(t, t, 1.0)
    isa.tstore(x[4:12, :], t)
    isa.tload(u, x[0:8, :])
    isa.tadd(u, u, t)
    isa.tstore(y[0:8, :], u)


def test_what_was_stored_is_loaded() -> None:
    agree(read_again, normal(16, 64), np.zeros((8, 64), np.float32), fused=[6])


@pto.kernel(profile="a5")
def two_halves(x: pto.Global[pto.f32], y: pto.Global[pto.f32]) -> None:
    """Columns beside each other, turned as positions are."""
    a, b = pto.load(x[:, 0:32], 16, 32), pto.load(x[:, 32:64], 16, 32)
    pto.store(y[:, 0:32], a * 0.5 - b)
    pto.store(y[:, 32:64], b * 0.5 + a)


def test_columns_beside_each_other() -> None:
    agree(two_halves, normal(16, 64), np.zeros((16, 64), np.float32), fused=[8])
    x = normal(16, 64)
    agree(two_halves, x, x, fused=[8])


def overlapping(first: int, second: int, third: int) -> str:
    tile = "!pto.tile_buf<vec, 16x64xf32>"
    return f"""
    module attributes {{pto.target_arch = "a5"}} {{
      func.func @f(%x: !pto.ptr<f32>, %y: !pto.ptr<f32>) {{
        %c0 = arith.constant 0 : index
        %c1 = arith.constant 1 : index
        %c16 = arith.constant 16 : index
        %c64 = arith.constant 64 : index
        %s = arith.constant 3.0 : f32
        %p = arith.constant {first} : i64
        %q = arith.constant {second} : i64
        %r = arith.constant {third} : i64
        %v = pto.make_tensor_view %x, shape = [%c16, %c64], strides = [%c64, %c1]
          : !pto.tensor_view<16x64xf32>
        %w = pto.make_tensor_view %y, shape = [%c16, %c64], strides = [%c64, %c1]
          : !pto.tensor_view<16x64xf32>
        %a = pto.alloc_tile addr = %p : {tile}
        %b = pto.alloc_tile addr = %q : {tile}
        %m = pto.alloc_tile addr = %r : !pto.tile_buf<vec, 16x1xf32, blayout=col_major>
        pto.tload ins(%v : !pto.tensor_view<16x64xf32>) outs(%a : {tile})
        pto.trowmax ins(%a : {tile}) outs(%m : !pto.tile_buf<vec, 16x1xf32, blayout=col_major>)
        pto.tadds ins(%a, %s : {tile}, f32) outs(%b : {tile})
        pto.trowexpandsub ins(%b, %m : {tile}, !pto.tile_buf<vec, 16x1xf32, blayout=col_major>)
          outs(%b : {tile})
        pto.tmul ins(%b, %a : {tile}, {tile}) outs(%a : {tile})
        pto.tstore ins(%a : {tile}) outs(%w : !pto.tensor_view<16x64xf32>)
        return
      }}
    }}
    """


@pytest.mark.parametrize(
    ("places", "fused"),
    [
        ((0, 4096, 8192), [6]),
        ((0, 0, 8192), [6]),
        ((0, 256, 8192), [2]),  # a row of one tile lies on another row of the other
        ((0, 4096, 64), [2, 2]),
        ((256, 0, 4096 + 64), []),
    ],
)
def test_tiles_that_overlap(places: tuple[int, int, int], fused: list[int]) -> None:
    x = normal(16, 64)
    ours, theirs = ([x.copy(), np.zeros_like(x)] for _ in "ab")
    module = pto.parse(overlapping(*places))
    pto.launch(module, args=theirs, engine="reference", check=False)
    report = pto.launch(module, args=ours, engine="jit", check=False)
    assert [len(group) for group in report.fused] == fused
    same(ours[1], theirs[1])


@pto.kernel(profile="a5")
def carried(x: pto.Global[pto.f32], y: pto.Global[pto.f32]) -> None:
    """A maximum that goes from turn to turn, one value a row, under two names."""
    tall = pto.tile(16, 1, pto.f32, layout="DN")
    line = isa.treshape(tall, to=pto.tile_type(1, 16, pto.f32))
    now = pto.tile(16, 1, pto.f32, layout="DN")
    now_line = isa.treshape(now, to=pto.tile_type(1, 16, pto.f32))
    isa.texpands(line, float("-inf"))
    for j in pto.range(0, 256, 64):
        t = pto.tile(16, 64, pto.f32)
        isa.tload(t, x[:, j : j + 64])
        isa.trowmax(now, t)
        isa.tmax(line, line, now_line)
        isa.trowexpandsub(t, t, tall)
        isa.texp(t, t)
        isa.tstore(y[:, j : j + 64], t)


def test_values_a_row_that_go_around() -> None:
    agree(carried, normal(16, 256), np.zeros((16, 256), np.float32), fused=[6])


def test_in_place() -> None:
    """A row is read in every pass, the last of which writes it."""

    @pto.kernel(profile="a5")
    def centred(x: pto.Global[pto.f32]) -> None:
        t = pto.load(x[:, :], 16, 192)
        u = t - t.max(axis=1)
        pto.store(x[:, :], u * u.mean(axis=1) + t)

    agree(centred, normal(16, 192), fused=[8])


def test_a_row_that_is_loaded_and_then_written() -> None:
    """The row may be read at its source only as long as its tile holds it: 2 * 3 is stored.

    On cpu the load also pads its tile, so that it is no step of the group.
    """

    @pto.kernel(profile="cpu")
    def product(x: pto.Global[pto.f32], y: pto.Global[pto.f32]) -> None:
        a, b, c, row = (pto.tile(1, 16, pto.f32, valid=(1, 3)) for _ in range(4))
        isa.tload(a, x[0:1, 0:3])
        isa.tload(b, x[1:2, 0:3])
        isa.tadds(c, a, 1.0)
        isa.tload(row, x[2:3, 0:3])
        isa.tmul(row, a, b)
        isa.tstore(y[0:1, 0:3], row)
        isa.tstore(y[1:2, 0:3], c)

    x, y = np.repeat(np.float32([[2], [3], [7]]), 3, axis=1), np.zeros((2, 3), np.float32)
    product(x, y, engine="jit")
    assert (y == [[6], [3]]).all()
    agree(product, x, np.zeros_like(y))


def test_what_a_value_was_made_of_has_changed() -> None:
    """The second sum is of values whose column is another by then; the third of what was stored."""

    @pto.kernel(profile="a5")
    def twice(x: pto.Global[pto.f32], y: pto.Global[pto.f32], z: pto.Global[pto.f32]) -> None:
        t, u, v = (pto.tile(8, 256, pto.f32) for _ in range(3))
        most, total = (pto.tile(8, 1, pto.f32, layout="DN") for _ in range(2))
        isa.tload(t, x[:, :])
        isa.trowmax(most, t)
        isa.trowexpandsub(u, t, most)
        isa.trowsum(most, u)
        isa.trowexpandmul(v, u, most)
        isa.trowsum(total, v)
        isa.tstore(y[:, :], v)
        isa.trowexpandadd(v, v, total)
        isa.trowmax(most, v)
        isa.trowexpandsub(u, u, most)
        isa.tmul(t, t, u)
        isa.tstore(z[:, :], t)

    x = normal(8, 256)
    agree(twice, x, np.zeros_like(x), np.zeros_like(x), fused=[12])


def test_a_tile_that_is_used_again() -> None:
    """For other rows it is written as a whole; at last what is left in it is stored."""

    @pto.kernel(profile="a5")
    def again(x: pto.Global[pto.f32], y: pto.Global[pto.f32], left: pto.Global[pto.f32]) -> None:
        t, u = pto.tile(8, 128, pto.f32), pto.tile(8, 128, pto.f32)
        most = pto.tile(8, 1, pto.f32, layout="DN")
        for i in pto.range(0, 48, 16):
            for n in range(2):
                isa.tload(t, x[i + 8 * n : i + 8 * n + 8, :])
                isa.tadds(u, t, 1.0)
                isa.trowmax(most, u)
                isa.trowexpandsub(u, u, most)
                isa.tstore(y[i + 8 * n : i + 8 * n + 8, :], u)
        isa.tstore(left[:, :], u)

    x = normal(48, 128)
    agree(again, x, np.zeros_like(x), np.zeros((8, 128), np.float32), fused=[10])


def test_a_tile_that_the_next_turn_reads_first() -> None:
    @pto.kernel(profile="a5")
    def carried(x: pto.Global[pto.f32], y: pto.Global[pto.f32]) -> None:
        t, u, w = (pto.tile(8, 128, pto.f32) for _ in range(3))
        isa.tload(u, x[0:8, :])
        for i in pto.range(0, 32, 8):
            isa.tmuls(w, u, 0.5)
            isa.tstore(y[i : i + 8, :], w)
            isa.tload(t, x[i : i + 8, :])
            isa.tadds(u, t, 1.0)
            isa.tadd(u, u, t)

    x = normal(32, 128)
    agree(carried, x, np.zeros_like(x), fused=[5])


FIRST_ROW = """
module attributes {pto.target_arch = "a5"} {
  func.func @first(%p: !pto.ptr<f32, gm>, %q: !pto.ptr<f32, gm>) {
    %c1 = arith.constant 1 : index
    %c8 = arith.constant 8 : index
    %c64 = arith.constant 64 : index
    %x = pto.make_tensor_view %p, shape = [%c8, %c64], strides = [%c64, %c1]
      : !pto.tensor_view<8x64xf32>
    %y = pto.make_tensor_view %q, shape = [%c8, %c64], strides = [%c64, %c1]
      : !pto.tensor_view<8x64xf32>
    %t = pto.alloc_tile : !pto.tile_buf<vec, 8x64xf32>
    %u = pto.alloc_tile : !pto.tile_buf<vec, 8x64xf32>
    pto.tload ins(%x : !pto.tensor_view<8x64xf32>) outs(%t : !pto.tile_buf<vec, 8x64xf32>)
    pto.tload ins(%y : !pto.tensor_view<8x64xf32>) outs(%u : !pto.tile_buf<vec, 8x64xf32>)
    pto.tcolsum ins(%t : !pto.tile_buf<vec, 8x64xf32>) outs(%u : !pto.tile_buf<vec, 8x64xf32>)
    pto.tstore ins(%u : !pto.tile_buf<vec, 8x64xf32>) outs(%y : !pto.tensor_view<8x64xf32>)
    return
  }
}
"""


def test_a_fold_writes_a_row_of_a_tile() -> None:
    """The others are as they were loaded."""
    both.agree(FIRST_ROW, [normal(8, 64), normal(8, 64)], fused=[2], check=False)


@pytest.mark.parametrize("kind", [pto.f16, pto.f32])
def test_rows_and_boxes(kind: Any) -> None:
    """Out of an accumulator, row by row, and into the boxes of a left factor."""

    @pto.kernel(profile="a5")
    def twice(a: pto.Global[Any], b: pto.Global[Any], y: pto.Global[pto.f32]) -> None:
        held, right = (pto.tile(48, 48, kind, role=role) for role in ("mat", "right"))
        left, boxed = (pto.tile(48, 48, kind, role=role) for role in ("left", "mat"))
        acc, scores = pto.tile(48, 48, pto.f32, role="acc"), pto.tile(48, 48, pto.f32)
        rounded, most = pto.tile(48, 48, kind), pto.tile(48, 1, pto.f32, layout="DN")
        isa.tload(held, a[:, :])
        isa.tmov(left, held)
        isa.tload(held, b[:, :])
        isa.tmov(right, held)
        isa.tmatmul(acc, left, right)
        isa.tmov(scores, acc)
        isa.trowmax(most, scores)
        isa.trowexpandsub(scores, scores, most)
        if kind is pto.f32:
            isa.tmuls(rounded, scores, 0.5)
        else:
            isa.tcvt(rounded, scores)
        isa.tmov(boxed, rounded)
        isa.tmov(left, boxed)
        isa.tmatmul(acc, left, right)
        isa.tmov(scores, acc)
        isa.tadds(scores, scores, 1.0)
        isa.tstore(y[:, :], scores)

    a, b = normal(48, 48, kind=kind.numpy), normal(48, 48, kind=kind.numpy)
    groups = [4, 3] if kind is pto.f32 else [5, 3]  # rows of f32 do not go into boxes
    agree(twice, a, b, np.zeros((48, 48), np.float32), fused=groups)


def test_stores_past_the_cache(monkeypatch: pytest.MonkeyPatch, texts: list[str]) -> None:
    """Of large arrays, where rows are whole lines of the cache; here all arrays are large."""
    for module in (steps, strips):
        monkeypatch.setattr(module, "FAR", 0)

    @pto.kernel(profile="a5")
    def softmax(x: pto.Global[pto.f32], y: pto.Global[pto.f16]) -> None:
        for i in pto.range(0, x.shape[0], 8):
            t = pto.load(x[i : i + 8, :], 8, 160)
            e = pto.exp(t - t.max(axis=1))
            pto.store(y[i : i + 8, :], (e / e.sum(axis=1)).to(pto.f16))

    x, theirs = normal(37, 160), np.zeros((37, 160), np.float16)
    softmax.run(x, theirs, engine="reference")
    room = np.zeros(theirs.nbytes + 128, np.uint8)
    for beside in (0, 2):
        start = -room.ctypes.data % 64 + beside
        ours = room[start : start + theirs.nbytes].view(np.float16).reshape(theirs.shape)
        softmax.run(x, ours, engine="jit")
        same(ours, theirs)
    assert any("!nontemporal" in text for text in texts)


@pytest.mark.parametrize("places", [(0, 0), (4, 0), (0, 4), (4, 4)])
def test_stores_past_the_cache_to_two_arrays(
    places: tuple[int, int], monkeypatch: pytest.MonkeyPatch, texts: list[str]
) -> None:
    """One of them, both or none begin at a line of the cache: aligned stores elsewhere crash."""
    for module in (steps, strips):
        monkeypatch.setattr(module, "FAR", 0)

    @pto.kernel(profile="a5")
    def doubled(x: pto.Global[pto.f32], y: pto.Global[pto.f32], z: pto.Global[pto.f32]) -> None:
        t = pto.load(x[:, :], 8, 160)
        pto.store(y[:, :], t + t)
        pto.store(z[:, :], t * t)

    x, room = normal(8, 160), np.zeros((2, 8 * 160 * 4 + 128), np.uint8)
    outs = [
        line[(begin := -line.ctypes.data % 64 + beside) : begin + x.nbytes]
        .view(np.float32)
        .reshape(x.shape)
        for line, beside in zip(room, places, strict=True)
    ]
    report = doubled.run(x, *outs, engine="jit")
    assert len(report.fused) == 1
    assert np.array_equal(outs[0], x + x)
    assert np.array_equal(outs[1], x * x)
    assert any("!nontemporal" in text for text in texts)


def test_cheap_values_are_made_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """A difference that two passes use is computed in both."""
    made, more = Rematerialiser.of, list[int]()

    def counted(self: Rematerialiser, steps: Sequence[Any]) -> list[Any]:
        found = made(self, steps)
        more.append(len(found) - len(steps))
        return found

    monkeypatch.setattr(Rematerialiser, "of", counted)

    @pto.kernel(profile="a5")
    def centred(x: pto.Global[pto.f32], y: pto.Global[pto.f32]) -> None:
        t = pto.load(x[:, :], 16, 256)
        u = t - t.max(axis=1)
        pto.store(y[:, :], u / u.sum(axis=1))

    x = normal(16, 256)
    agree(centred, x, np.zeros_like(x), fused=[6])
    assert max(more) > 0


@pytest.mark.parametrize(("first", "rows"), [(0, 37), (5, 40), (30, 30), (3, 16)])
def test_rows_known_at_run_time(first: int, rows: int) -> None:
    """A last tile of fewer rows, and values a row under another name whose region is set."""

    @pto.kernel(profile="a5")
    def norm(
        x: pto.Global[pto.f32],
        weight: pto.Global[pto.f32],
        y: pto.Global[pto.f32],
        first: pto.Scalar[pto.i32],
    ) -> None:
        for i in pto.range(first, x.shape[0], 16):
            t = pto.load(x[i : i + 16, :], 16, 128)
            t -= t.mean(axis=1)
            scale = pto.rsqrt((t * t).mean(axis=1) + 1e-5)
            pto.store(y[i : i + 16, :], t * scale * pto.load(weight, 128))

    x = normal(rows, 128)
    agree(norm, x, normal(128), np.zeros_like(x), first, fused=[13])


REGIONS = """
module attributes {pto.target_arch = "a5"} {
  func.func @regions(%p: !pto.ptr<f32, gm>, %q: !pto.ptr<f32, gm>) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c3 = arith.constant 3 : index
    %c8 = arith.constant 8 : index
    %c64 = arith.constant 64 : index
    %one = arith.constant 1.0 : f32
    %x = pto.make_tensor_view %p, shape = [%c8, %c64], strides = [%c64, %c1]
      : !pto.tensor_view<8x64xf32>
    %y = pto.make_tensor_view %q, shape = [%c8, %c64], strides = [%c64, %c1]
      : !pto.tensor_view<8x64xf32>
    scf.for %i = %c1 to %c8 step %c1 {
      %few = pto.partition_view %x, offsets = [%c0, %c0], sizes = [%i, %c64]
        : !pto.tensor_view<8x64xf32> -> !pto.partition_tensor_view<?x64xf32>
      %out = pto.partition_view %y, offsets = [%c0, %c0], sizes = [%i, %c64]
        : !pto.tensor_view<8x64xf32> -> !pto.partition_tensor_view<?x64xf32>
      %t = pto.alloc_tile valid_row = %c8 valid_col = %c64
        : !pto.tile_buf<vec, 8x64xf32, valid=?x?>
      %u = pto.alloc_tile valid_row = %c8 valid_col = %c64
        : !pto.tile_buf<vec, 8x64xf32, valid=?x?>
      pto.set_validshape %u, %i, %c64 : !pto.tile_buf<vec, 8x64xf32, valid=?x?>
      {when}
      pto.tload ins(%few : !pto.partition_tensor_view<?x64xf32>)
        outs(%t : !pto.tile_buf<vec, 8x64xf32, valid=?x?>)
      pto.tadds ins(%t, %one : !pto.tile_buf<vec, 8x64xf32, valid=?x?>, f32)
        outs(%u : !pto.tile_buf<vec, 8x64xf32, valid=?x?>)
      pto.tmul ins(%u, %t : !pto.tile_buf<vec, 8x64xf32, valid=?x?>,
        !pto.tile_buf<vec, 8x64xf32, valid=?x?>)
        outs(%u : !pto.tile_buf<vec, 8x64xf32, valid=?x?>)
      pto.tstore ins(%u : !pto.tile_buf<vec, 8x64xf32, valid=?x?>)
        outs(%out : !pto.partition_tensor_view<?x64xf32>)
      {again}
    }
    return
  }
}
"""
_SET = "pto.set_validshape %t, %i, %c64 : !pto.tile_buf<vec, 8x64xf32, valid=?x?>"


@pytest.mark.parametrize(
    ("when", "again", "fused"),
    [
        (_SET, "", [4]),
        (_SET, _SET.replace("%i", "%c3"), [3]),  # the load has a region of its own
        ("%on = arith.cmpi sge, %i, %c1 : index\nscf.if %on {\n" + _SET + "\n}", "", [3]),
    ],
    ids=["once", "twice", "in a branch"],
)
def test_regions_that_are_set(when: str, again: str, fused: list[int]) -> None:
    text = REGIONS.replace("{when}", when).replace("{again}", again)
    both.agree(text, [normal(8, 64), normal(8, 64)], fused=fused, check=False)


@pytest.mark.parametrize("other", [0, 4096, 16384])
def test_tiles_at_addresses_of_their_own(other: int) -> None:
    """What one tile leaves another one may find, by its own name."""

    @pto.kernel(profile="a5")
    def named(x: pto.Global[pto.f32], y: pto.Global[pto.f32], z: pto.Global[pto.f32]) -> None:
        t = pto.tile(64, 64, pto.f32, address=0)
        u = pto.tile(64, 64, pto.f32, address=32768)
        seen = pto.tile(64, 64, pto.f32, address=other)
        isa.tload(t, x[:, :])
        isa.texp(t, t)
        isa.tadds(u, t, 1.0)
        isa.tstore(y[:, :], u)
        isa.tmuls(u, seen, 2.0)
        isa.tstore(z[:, :], u)

    x = normal(64, 64)
    groups = [4, 2] if other == 4096 else [6]  # part of a tile that the group writes
    agree(named, x, np.zeros_like(x), np.zeros_like(x), fused=groups)


def test_where_only_one_name_leads() -> None:
    """Tiles with addresses are kept in registers as planned ones are, if nobody else names them."""
    text = """module attributes {{pto.target_arch = "a5"}} {{
      func.func @f(%x: !pto.ptr<f32, gm>) attributes {{pto.kernel}} {{
        %a = arith.constant 0 : i64
        %b = arith.constant {second} : i64
        %t = pto.alloc_tile addr = %a : !pto.tile_buf<vec, 8x64xf32>
        %u = pto.alloc_tile addr = %b : !pto.tile_buf<vec, 8x64xf32>
        {more}
        return
      }}
    }}"""
    pointer = "%p = pto.castptr %a : i64 -> !pto.ptr<f32, ub>"

    def alone(second: int, more: str = "") -> list[bool]:
        module = pto.parse(text.format(second=second, more=more))
        names = Names(module, lambda op: None)
        tiles = [op.results[0] for op in module.walk() if op.name == "pto.alloc_tile"]
        return [names.is_alone(tile) for tile in tiles]

    assert alone(2048) == [True, True]
    assert alone(2047) == alone(0) == [False, False]
    assert alone(2048, pointer) == [False, False]


def test_a_tile_that_was_renamed_before_the_loop() -> None:
    """A loop writes a tile by the name that a reshape gave it; the tile is read after the loop."""

    @pto.kernel(profile="a5")
    def kernel(x: pto.Global[pto.f32], y: pto.Global[pto.f32], z: pto.Global[pto.f32]) -> None:
        t = pto.tile(4, 16, pto.f32)
        flat = isa.treshape(t, to=pto.tile_type(1, 64, pto.f32))
        for i in pto.range(0, 2):
            isa.tload(flat, x[i : i + 1, :])
            isa.tstore(y[i : i + 1, :], flat)
        isa.tstore(z, t)

    x = normal(2, 64)
    y, z = np.zeros_like(x), np.zeros((4, 16), np.float32)
    kernel(x, y, z, engine="jit")
    assert np.array_equal(y, x)
    assert np.array_equal(z, x[1].reshape(4, 16))
