"""Factors that products of the fast engine read in L1 or in global memory, not in L0: the same
bytes as with every move and load done, whatever comes between."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pto
from pto import isa
from pto.run.jit.emit.cube import factors as factors_module
from pto.run.jit.emit.cube.forwarding import fills_factor
from pto.run.jit.emit.fusion import FusingEmitter
from pto.run.jit.ir.strided import Access
from pto.run.jit.llvm.text import Text
from tests.run.jit.both import same
from tests.run.jit.test_fusion import agree, forwards, normal

__all__ = ["forwards"]
FACTORS = (32, 64, "left"), (64, 32, "right")


@pytest.fixture
def read_there(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Of each move into a factor, in order, whether it was left out."""
    found: list[bool] = []
    moves: list[Any] = []
    plain = FusingEmitter._forward

    def noted(self: FusingEmitter, ops: Any, n: int, **named: bool) -> bool:
        done = plain(self, ops, n, **named)
        if not fills_factor(ops[n]):
            return done
        if moves and moves[-1] is ops[n]:  # asked again
            found.pop()
        moves.append(ops[n])
        found.append(done)
        return done

    monkeypatch.setattr(FusingEmitter, "_forward", noted)
    return found


def factors(kind: Any, m: int, k: int, n: int) -> tuple[Any, ...]:
    mats = pto.tile(m, k, kind, role="mat"), pto.tile(k, n, kind, role="mat")
    small = pto.tile(m, k, kind, role="left"), pto.tile(k, n, kind, role="right")
    into = pto.i32 if kind in (pto.i8, pto.u8) else pto.f32
    return *mats, *small, pto.tile(m, n, into, role="acc")


@pytest.mark.parametrize("kind", [pto.f32, pto.f16, pto.bf16, pto.i8])
@pytest.mark.parametrize("shape", [(32, 32, 32), (48, 64, 64), (128, 96, 96)])
def test_moves_and_a_product(
    kind: Any, shape: tuple[int, int, int], read_there: list[bool]
) -> None:
    m, k, n = shape

    @pto.kernel(profile="a5")
    def product(a: pto.Global[Any], b: pto.Global[Any], c: pto.Global[Any]) -> None:
        a_mat, b_mat, left, right, acc = factors(kind, m, k, n)
        isa.tload(a_mat, a[:, :])
        isa.tload(b_mat, b[:, :])
        isa.tmov(left, a_mat)
        isa.tmov(right, b_mat)
        isa.tmatmul(acc, left, right)
        isa.tmatmul_acc(acc, acc, left, right)
        isa.tstore(c[:, :], acc)

    a, b = (8 * normal(*size) for size in ((m, k), (k, n)))
    into = np.int32 if kind is pto.i8 else np.float32
    agree(product, a.astype(kind.numpy), b.astype(kind.numpy), np.zeros((m, n), into))
    assert read_there == [True, True]


def _late_load(a: Any, a_mat: Any, left: Any) -> None:
    isa.tmov(left, a_mat)
    isa.tload(a_mat, a[0:32, 0:64])  # what the product is about to read


def _other_load(a: Any, a_mat: Any, left: Any) -> None:
    isa.tmov(left, a_mat)
    beside = pto.tile(32, 64, pto.f16, role="mat")
    isa.tload(beside, a[0:32, 0:64])
    isa.tmov(pto.tile(32, 64, pto.f16, role="left"), a_mat)  # which keeps its place so long


def _twice(a: Any, a_mat: Any, left: Any) -> None:
    isa.tload(a_mat, a[0:32, 0:64])
    isa.tmov(left, a_mat)
    isa.tload(a_mat, a[32:64, 0:64])
    isa.tmov(left, a_mat)


@pytest.mark.parametrize(
    ("fill", "left_out"),
    [(_late_load, [False]), (_other_load, [True, False]), (_twice, [False, True])],
)
def test_what_comes_between(
    fill: Callable[..., None], left_out: list[bool], read_there: list[bool]
) -> None:
    @pto.kernel(profile="a5")
    def product(a: pto.Global[pto.f16], b: pto.Global[pto.f16], c: pto.Global[pto.f32]) -> None:
        a_mat, b_mat, left, right, acc = factors(pto.f16, 32, 64, 32)
        isa.tload(b_mat, b[:, :])
        isa.tmov(right, b_mat)
        isa.tload(a_mat, a[32:64, :])
        fill(a, a_mat, left)
        isa.tmatmul(acc, left, right)
        isa.tstore(c[:, :], acc)

    given = normal(64, 64, kind=np.float16), normal(64, 32, kind=np.float16)
    agree(product, *given, np.zeros((32, 32), np.float32))
    assert read_there[1:] == left_out


def test_windows_of_l1_in_a_loop(read_there: list[bool]) -> None:
    """They are read where they lie, since boxes begin at each."""

    @pto.kernel(profile="a5")
    def product(a: pto.Global[pto.f16], b: pto.Global[pto.f16], c: pto.Global[pto.f32]) -> None:
        a_mat = pto.tile(32, 64, pto.f16, role="mat")
        b_mat = pto.tile(64, 32, pto.f16, role="mat")
        acc = pto.tile(32, 32, pto.f32, role="acc")
        isa.tload(a_mat, a[:, :])
        isa.tload(b_mat, b[:, :])
        for k in pto.range(0, 64, 16):
            left = pto.tile(32, 16, pto.f16, role="left")
            right = pto.tile(16, 32, pto.f16, role="right")
            isa.textract(left, a_mat, 0, k)
            isa.textract(right, b_mat, k, 0)
            if k == 0:
                isa.tmatmul(acc, left, right)
            else:
                isa.tmatmul_acc(acc, acc, left, right)
        isa.tstore(c[:, :], acc)

    given = normal(32, 64, kind=np.float16), normal(64, 32, kind=np.float16)
    agree(product, *given, np.zeros((32, 32), np.float32))
    assert read_there == [True, True]


def test_a_right_factor_of_several_products() -> None:
    """Unpacked once, as long as it is the same."""

    @pto.kernel(profile="a5")
    def products(a: pto.Global[pto.f16], b: pto.Global[pto.f16], c: pto.Global[pto.f32]) -> None:
        mats = [pto.tile(32, 64, pto.f16, role="mat") for _ in range(2)]
        b_mat = pto.tile(64, 64, pto.f16, role="mat")
        accs = [pto.tile(32, 32, pto.f32, role="acc") for _ in range(2)]
        left, right = (pto.tile(*size, pto.f16, role=role) for *size, role in FACTORS)
        for n, mat in enumerate(mats):
            isa.tload(mat, a[32 * n : 32 * n + 32, :])
        isa.tload(b_mat, b[:, :])
        for col in (0, 32):
            isa.textract(right, b_mat, 0, col)
            for mat, acc in zip(mats, accs, strict=True):
                isa.tmov(left, mat)
                if col == 0:
                    isa.tmatmul(acc, left, right)
                else:
                    isa.tmatmul_acc(acc, acc, left, right)
            isa.tmatmul_acc(accs[1], accs[1], left, right)
        for n, acc in enumerate(accs):
            isa.tstore(c[32 * n : 32 * n + 32, :], acc)

    given = normal(64, 64, kind=np.float16), normal(64, 64, kind=np.float16)
    agree(products, *given, np.zeros((64, 32), np.float32))


@pytest.mark.parametrize("rows", [1, 17, 32])
def test_rows_known_when_it_runs(rows: int, read_there: list[bool]) -> None:
    @pto.kernel(profile="a5")
    def product(
        a: pto.Global[pto.f16], b: pto.Global[pto.f16], c: pto.Global[pto.f32], m: pto.i32
    ) -> None:
        a_mat = pto.tile(32, 64, pto.f16, role="mat", valid=(m, 64))
        b_mat = pto.tile(64, 32, pto.f16, role="mat")
        left = pto.tile(32, 64, pto.f16, role="left", valid=(m, 64))
        right = pto.tile(64, 32, pto.f16, role="right")
        acc = pto.tile(32, 32, pto.f32, role="acc", valid=(m, 32))
        isa.tload(a_mat, a[0:m, :])
        isa.tload(b_mat, b[:, :])
        isa.tmov(left, a_mat)
        isa.tmov(right, b_mat)
        isa.tmatmul(acc, left, right)
        isa.tstore(c[0:m, :], acc)

    given = normal(32, 64, kind=np.float16), normal(64, 32, kind=np.float16)
    agree(product, *given, np.zeros((32, 32), np.float32), rows)
    assert read_there == [True, True]


def test_a_window_outside_its_tile_is_told() -> None:
    @pto.kernel(profile="a5")
    def product(a: pto.Global[pto.f16], c: pto.Global[pto.f32], at: pto.i32) -> None:
        mat = pto.tile(64, 64, pto.f16, role="mat")
        left = pto.tile(32, 32, pto.f16, role="left")
        right = pto.tile(32, 32, pto.f16, role="right")
        acc = pto.tile(32, 32, pto.f32, role="acc")
        isa.tload(mat, a[:, :])
        isa.textract(left, mat, at, 0)
        isa.textract(right, mat, 0, 0)
        isa.tmatmul(acc, left, right)
        isa.tstore(c[:, :], acc)

    for engine in ("reference", "jit"):
        c = np.zeros((32, 32), np.float32)
        with pytest.raises(pto.PtoError, match="PTO-S060") as found:
            product[1](normal(64, 64, kind=np.float16), c, 48, engine=engine)
        assert "32x32 at (48, 0)" in str(found.value)
        assert not c.any()


def test_factors_with_fewer_bits() -> None:
    """The reference engine rounds f32 factors in that mode, and finds them in L0."""

    @pto.kernel(profile="a5")
    def product(a: pto.Global[pto.f32], b: pto.Global[pto.f32], c: pto.Global[pto.f32]) -> None:
        a_mat, b_mat, left, right, acc = factors(pto.f32, 32, 64, 32)
        isa.tload(a_mat, a[:, :])
        isa.tload(b_mat, b[:, :])
        isa.tmov(left, a_mat)
        isa.tmov(right, b_mat)
        isa.settf32mode(enable=True)
        isa.tmatmul(acc, left, right)
        isa.tstore(c[:, :], acc)

    agree(product, normal(32, 64), normal(64, 32), np.zeros((32, 32), np.float32))


MAP = {"c1": 2, "h": 11, "w": 9}
PADS = ("pad_left", "pad_right", "pad_top", "pad_bottom")


@pytest.mark.parametrize(
    ("given", "first", "rows"),
    [
        ({"filter_h": 3, "filter_w": 3, **dict.fromkeys(PADS, 1)}, 0, 96),
        ({"filter_h": 3, "filter_w": 3, **dict.fromkeys(PADS, 1)}, 13, 48),
        ({"filter_h": 3, "filter_w": 3, **dict.fromkeys(PADS, 1)}, 80, 32),  # beyond the map
        ({"filter_h": 2, "filter_w": 3, "pad_top": 2, "pad_right": 3, "pad_value": 0x3C00}, 5, 64),
        ({"filter_h": 5, "filter_w": 1, "stride_h": 2, "pad_bottom": 4}, 3, 48),
        ({"filter_h": 3, "filter_w": 3, "stride_w": 2, "dilation_h": 2}, 0, 16),
        ({"filter_h": 3, "filter_w": 3, "dilation_w": 2}, 0, 16),
        ({"filter_h": 1, "filter_w": 1}, 32, 48),
        ({"filter_h": 3, "filter_w": 2, "n": 2, "pad_left": 1}, 82, 80),  # of the second image
        ({"filter_h": 3, "filter_w": 2, "n": 3, "pad_left": 1}, 100, 80),  # of two images
    ],
)
@pytest.mark.parametrize("kind", [pto.f16, pto.f32])
def test_convolutions(given: dict[str, int], first: int, rows: int, kind: Any) -> None:
    c0 = 32 // kind.itemsize
    k = given["filter_h"] * given["filter_w"] * c0
    deep = k if 2 * k * rows * kind.itemsize > 65536 else 2 * k
    image = given.get("n", 1) * MAP["c1"] * MAP["h"] * MAP["w"] * c0

    @pto.kernel(profile="a5")
    def convolution(
        x: pto.Global[Any], w: pto.Global[Any], y: pto.Global[pto.f32], m: pto.i32
    ) -> None:
        mat = pto.tile(image // c0, c0, kind, role="mat", layout="ND")
        filters = pto.tile(2 * k, 16, kind, role="mat")
        acc = pto.tile(rows, 16, pto.f32, role="acc")
        isa.tload(mat, x[:, :])
        isa.tload(filters, w[:, :])
        for n in range(0, 2 * k, deep):
            left = pto.tile(rows, deep, kind, role="left")
            right = pto.tile(deep, 16, kind, role="right")
            isa.timg2col(left, mat, MAP["c1"], MAP["h"], MAP["w"], m, n, **given)
            isa.textract(right, filters, n, 0)
            if n == 0:
                isa.tmatmul(acc, left, right)
            else:
                isa.tmatmul_acc(acc, acc, left, right)
        isa.tstore(y[:, :], acc)

    x, w = normal(image // c0, c0, kind=kind.numpy), normal(2 * k, 16, kind=kind.numpy)
    agree(convolution, x, w, np.zeros((rows, 16), np.float32), first)


@pytest.mark.parametrize("word", [0, 0x7E00])
def test_registers_that_say_otherwise(word: int) -> None:
    @pto.kernel(profile="a5")
    def convolution(x: pto.Global[pto.f16], w: pto.Global[pto.f16], y: pto.Global[pto.f32]) -> None:
        mat = pto.tile(198, 16, pto.f16, role="mat", layout="ND")
        filters = pto.tile(144, 16, pto.f16, role="mat")
        acc = pto.tile(48, 16, pto.f32, role="acc")
        left = pto.tile(48, 144, pto.f16, role="left")
        right = pto.tile(144, 16, pto.f16, role="right")
        isa.tload(mat, x[:, :])
        isa.tload(filters, w[:, :])
        isa.setfmatrix(mat, 9, 11, pad_left=1)
        isa.set_img2col_padding(mat, pad_value=word)
        isa.timg2col(left, mat, 2, 11, 9, 0, 0, filter_h=3, filter_w=3)
        isa.textract(right, filters, 0, 0)
        isa.tmatmul(acc, left, right)
        isa.tstore(y[:, :], acc)

    given = normal(198, 16, kind=np.float16), normal(144, 16, kind=np.float16)
    agree(convolution, *given, np.zeros((48, 16), np.float32))


@pytest.mark.parametrize(("kind", "deep"), [(pto.f32, 64), (pto.f32, 61), (pto.f16, 64)])
def test_a_left_factor_of_f32_is_read_where_it_is(
    kind: Any, deep: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In its boxes, if k is made of whole ones; the right one is always unpacked. Both are loaded,
    because something else reads them too."""
    unpacked, plain = list[Access](), factors_module.unpack

    def noted(s: Any, to: Access, *given: Any, **named: Any) -> None:
        unpacked.append(to)
        plain(s, to, *given, **named)

    monkeypatch.setattr(factors_module, "unpack", noted)

    @pto.kernel(profile="a5")
    def product(a: pto.Global[Any], b: pto.Global[Any], c: pto.Global[Any]) -> None:
        a_mat = pto.tile(48, 64, kind, role="mat", valid=(48, deep))
        b_mat = pto.tile(64, 96, kind, role="mat", valid=(deep, 96))
        left = pto.tile(48, 64, kind, role="left", valid=(48, deep))
        right = pto.tile(64, 96, kind, role="right", valid=(deep, 96))
        acc = pto.tile(48, 96, pto.f32, role="acc")
        isa.tload(a_mat, a[:, :])
        isa.tload(b_mat, b[:, :])
        isa.tmov(pto.tile(48, 64, kind, role="left", valid=(48, deep)), a_mat)
        isa.tmov(pto.tile(64, 96, kind, role="right", valid=(deep, 96)), b_mat)
        isa.tmov(left, a_mat)
        isa.tmov(right, b_mat)
        isa.tmatmul(acc, left, right)
        isa.tstore(c[:, :], acc)

    given = normal(48, deep, kind=kind.numpy), normal(deep, 96, kind=kind.numpy)
    agree(product, *given, np.zeros((48, 96), np.float32))
    in_place = kind is pto.f32 and deep == 64
    assert len(unpacked) == (1 if in_place else 2), unpacked


# ---- loads


def _loads(kernel: Any, *args: Any, blocks: Any = 1) -> int:
    """The number of loads that are left out, if both engines agree."""
    ours, theirs = ([np.copy(a) for a in args] for _ in "ab")
    kernel[blocks](*theirs, engine="reference")
    report = kernel[blocks](*ours, engine="jit")
    for mine, other in zip(ours, theirs, strict=True):
        same(mine, other)
    return report.forwarded.count("pto.tload")


@pytest.mark.parametrize("kind", ["f32", "f16", "bf16"])
@pytest.mark.parametrize("size", [(128, 192, 128), (72, 64, 64), (10, 64, 128), (128, 70, 60)])
def test_products_read_rows_of_global_memory(kind: str, size: tuple[int, int, int]) -> None:
    """Also windows of larger matrices; tiles at an edge that are no whole runs are loaded."""
    dtype, (m, k, n) = getattr(pto, kind), size

    @pto.kernel(profile="a5")
    def gemm(x: pto.Global[Any], y: pto.Global[Any], z: pto.Global[pto.f32]) -> None:
        i, j = pto.block_idx(0) * 64, pto.block_idx(1) * 64
        acc = pto.zeros(64, 64, pto.f32, role="acc")
        for at in pto.range(0, x.shape[1], 32):
            acc = pto.dot(pto.load(x[i:, at:], 64, 32), pto.load(y[at:, j:], 32, 64), acc=acc)
        pto.store(z[i:, j:], acc)

    given = normal(m, k, kind=dtype.numpy), normal(k, n, kind=dtype.numpy)
    blocks = pto.cdiv(m, 64), pto.cdiv(n, 64)
    assert _loads(gemm, *given, np.zeros((m, n), np.float32), blocks=blocks) > 0


@pytest.mark.parametrize("rows", [1, 3, 6, 7, 12, 13, 16, 22, 61])
def test_blocks_of_rows(rows: int) -> None:
    """Any number of rows is cut into blocks; the first one unpacks the right factor."""

    @pto.kernel(profile="a5")
    def product(a: pto.Global[pto.f32], b: pto.Global[pto.f32], c: pto.Global[pto.f32]) -> None:
        a_mat, b_mat, left, right, acc = factors(pto.f32, 64, 32, 128)
        for tile in (a_mat, left):
            pto.set_validshape(tile, rows, 32)
        pto.set_validshape(acc, rows, 128)
        isa.tload(a_mat, a[:, :])
        isa.tload(b_mat, b[:, :])
        isa.tmov(left, a_mat)
        isa.tmov(right, b_mat)
        isa.tmatmul(acc, left, right)
        isa.tmatmul_acc(acc, acc, left, right)
        isa.tstore(c[:, :], acc)

    agree(product, normal(rows, 32), normal(32, 128), np.zeros((rows, 128), np.float32))


@pytest.mark.parametrize("turned", [False, True])
def test_a_right_factor_in_rows_is_prefetched(
    turned: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Columns of an array are unpacked before the product, which has nothing to ask for then."""
    asked = list[str]()
    monkeypatch.setattr(Text, "prefetch", lambda _, pointer: asked.append(pointer))

    @pto.kernel(profile="a5")
    def gemm(x: pto.Global[pto.f32], y: pto.Global[pto.f32], z: pto.Global[pto.f32]) -> None:
        acc = pto.zeros(64, 128, pto.f32, role="acc")
        for at in pto.range(0, x.shape[1], 32):
            window = y[:, at : at + 32].T if turned else y[at : at + 32, :]
            acc = pto.dot(pto.load(x[:, at:], 64, 32), pto.load(window, 32, 128), acc=acc)
        pto.store(z, acc)

    y = normal(128, 96) if turned else normal(96, 128)
    _loads(gemm, normal(64, 96), y, np.zeros((64, 128), np.float32))
    assert bool(asked) is not turned


def _overwritten(a: Any, a_mat: Any, left: Any, acc: Any) -> None:
    isa.tstore(a[:32, :], acc)  # what the load has read
    isa.tmov(left, a_mat)


def _read_by_others(a: Any, a_mat: Any, left: Any, acc: Any) -> None:
    isa.tmov(left, a_mat)
    isa.tmov(pto.tile(32, 32, pto.f32, role="left"), a_mat)


def _loaded_again(a: Any, a_mat: Any, left: Any, acc: Any) -> None:
    isa.tmov(left, a_mat)
    isa.tload(a_mat, a[32:, :])
    isa.tmov(left, a_mat)


@pytest.mark.parametrize(
    ("between", "left_out"), [(_overwritten, 1), (_read_by_others, 2), (_loaded_again, 3)]
)
def test_loads_that_products_cannot_replace(between: Callable[..., None], left_out: int) -> None:
    """Of the loads before `between` all but the last one are left out; before a store to global
    memory only the one whose product comes earlier."""

    @pto.kernel(profile="a5")
    def product(a: pto.Global[pto.f32], b: pto.Global[pto.f32], c: pto.Global[pto.f32]) -> None:
        a_mat, b_mat, left, right, acc = factors(pto.f32, 32, 32, 32)
        isa.tload(b_mat, b[:, :])
        isa.tmov(right, b_mat)
        isa.tload(a_mat, b[:, :])
        isa.tmov(left, a_mat)
        isa.tmatmul(acc, left, right)
        isa.tload(a_mat, a[:32, :])
        between(a, a_mat, left, acc)
        isa.tmatmul_acc(acc, acc, left, right)
        isa.tstore(c[:, :], acc)

    given = normal(64, 32), normal(32, 32)
    found = _loads(product, *given, np.zeros((32, 32), np.float32))
    assert found == left_out, found
