"""`pto.diff`: the element, the tile, the block and the line are those that a person planted."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import pto
from pto import isa

HERE = Path(__file__)
X = np.random.default_rng(4).standard_normal((40, 128), dtype=np.float32)


def line_of(mark: str) -> int:
    """The line of this file that ends in `# mark`."""
    lines = HERE.read_text(encoding="utf-8").splitlines()
    return next(n for n, text in enumerate(lines, 1) if text.endswith(f"# {mark}"))


@pto.kernel
def doubled_late(x: pto.Global[pto.f32], y: pto.Global[pto.f32]) -> None:
    i = pto.block_idx() * 16
    for k in pto.range(4):
        t = pto.tile(16, 32, pto.f32)
        u = pto.tile(16, 32, pto.f32)
        isa.tload(t, x[i:, k * 32 :])
        isa.tadds(u, t, 1.0)
        if k == 2:
            isa.tmuls(u, u, 2.0)  # planted
        isa.tstore(y[i:, k * 32 :], u)  # stored


def test_the_element_its_tile_its_block_and_its_line():
    args = (X, np.zeros_like(X))
    found = pto.diff(doubled_late[3], lambda x, y: x + 1, args)
    assert found
    assert (found.first.argument, found.first.index) == ("y", (0, 64))
    assert found.first.got == 2 * (X[0, 64] + np.float32(1))
    assert found.first.ulp == 1 << 23  # twice as much: one more in the exponent
    assert found.count == 40 * 32
    assert found.blame.block == 0
    source = found.blame.source
    assert (source.tile, source.row, source.col) == ("u", 0, 0)
    assert found.blame.maker.op.loc.line == line_of("planted")
    assert found.blame.store.op.loc.line == line_of("stored")
    assert found.blame.maker.counters == (2,)


def test_it_reads_as_a_finding():
    text = str(pto.diff(doubled_late[3], lambda x, y: x + 1, (X, np.zeros_like(X))))
    assert "PTO-U073" in text
    assert "1,280 of 5,120 elements of y differ" in text
    assert f"{HERE}:{line_of('planted')}" in text
    assert "u[0, 0] was last written by tmuls on block 0 (k=2)" in text
    assert "^^^^^^^^^" in text


def test_arguments_stay_as_they_are():
    y = np.zeros_like(X)
    pto.diff(doubled_late[3], lambda x, y: x + 1, (X, y))
    assert not y.any()


def test_no_difference_is_false_and_says_so():
    def reference(x: Any, y: Any) -> Any:
        y[:] = x + 1
        y[:, 64:96] *= 2

    found = pto.diff(doubled_late[3], reference, (X, np.zeros_like(X)))
    assert not found
    assert found.count == 0
    assert str(found).startswith("no difference: doubled_late on")
    found.require_none()


@pto.kernel
def last_block_wrong(x: pto.Global[pto.f32], y: pto.Global[pto.f32]) -> None:
    i = pto.block_idx()
    t = pto.tile(16, 128, pto.f32)
    isa.tload(t, x[i * 16 :, :])
    if i == 2:
        isa.tadds(t[4:8, 32:64], t[4:8, 32:64], 1.0)  # window
    isa.tstore(y[i * 16 :, :], t)


def test_a_window_inside_the_tile_of_a_later_block():
    found = pto.diff(last_block_wrong[3], lambda x, y: x, (X, np.zeros_like(X)))
    assert found.first.index == (2 * 16 + 4, 32)
    assert found.blame.block == 2
    assert (found.blame.source.tile, found.blame.source.row, found.blame.source.col) == ("t", 4, 32)
    assert found.blame.maker.op.loc.line == line_of("window")
    assert found.count == 4 * 32


@pto.kernel
def matmul(a: pto.Global[pto.f16], b: pto.Global[pto.f16], c: pto.Global) -> None:
    a_mat = pto.tile(32, 32, pto.f16, role="mat")
    b_mat = pto.tile(32, 32, pto.f16, role="mat")
    left = pto.tile(32, 32, pto.f16, role="left")
    right = pto.tile(32, 32, pto.f16, role="right")
    acc = pto.tile(32, 32, pto.f32, role="acc")
    isa.tload(a_mat, a)
    isa.tload(b_mat, b)
    isa.tmov(left, a_mat)
    isa.tmov(right, b_mat)
    isa.tmatmul(acc, left, right)  # product
    isa.tstore(c, acc)


@pytest.mark.parametrize("kind", [np.float32, np.float16])
def test_through_a_boxed_layout_and_a_conversion(kind: Any):
    a = np.arange(32 * 32, dtype=np.float16).reshape(32, 32) % 7
    b = np.eye(32, dtype=np.float16)
    wanted = (a @ b).astype(kind)
    wanted[17, 29] += 1
    found = pto.diff(matmul, lambda a, b, c: wanted, (a, b, np.zeros((32, 32), kind)))
    assert (found.first.index, found.count) == ((17, 29), 1)
    source = found.blame.source
    assert (source.tile, source.row, source.col) == ("acc", 17, 29)
    assert found.blame.maker.op.loc.line == line_of("product")


@pto.kernel
def added(x: pto.Global[pto.f32], y: pto.Global[pto.f32]) -> None:
    for k in pto.range(3):
        t = pto.tile(8, 64, pto.f32)
        isa.tload(t, x[k * 8 : k * 8 + 8, :64])
        isa.tstore(y, t, atomicType="atomic_add")  # atomic


def test_an_element_that_is_added_to():
    x = np.ones((24, 64), np.float32)
    found = pto.diff(added, lambda x, y: np.full((8, 64), 4.0), (x, np.zeros((8, 64), np.float32)))
    assert found.first.got == 3.0
    assert found.blame.store.op.loc.line == line_of("atomic")
    assert found.blame.store.counters == (2,)
    assert found.blame.source.tile == "t"
    assert found.blame.maker.name == "tload"


@pto.kernel
def half_written(x: pto.Global[pto.i32], y: pto.Global[pto.i32]) -> None:
    t = pto.tile(1, 64, pto.i32)
    isa.tload(t, x)
    isa.tstore(y[:32], t[:, 0:32])
    isa.store_scalar(y, 40, pto.scalar(5, pto.i32))  # scalar


def test_what_nobody_wrote_is_told():
    x = np.arange(64, dtype=np.int32)
    found = pto.diff(half_written, lambda x, y: x, (x, np.zeros_like(x)))
    assert found.first.index == (32,)
    assert found.first.ulp == 32
    assert found.blame is None
    assert "no instruction wrote this element" in str(found)
    assert "off by 32" in str(found)


def test_a_scalar_store_has_no_tile():
    x = np.arange(64, dtype=np.int32)
    wanted = {"y": np.concatenate([x[:32], np.zeros(32, np.int32)])}
    found = pto.diff(half_written, lambda x, y: wanted, (x, np.zeros_like(x)))
    assert (found.first.index, found.first.got) == ((40,), 5)
    assert found.blame.source is None
    assert found.diagnostic.loc.line == line_of("scalar")


@pto.kernel
def two_results(x: pto.Global[pto.f32], y: pto.Global[pto.f32], z: pto.Global[pto.f32]) -> None:
    t = pto.tile(8, 64, pto.f32)
    isa.tload(t, x)
    isa.tstore(y, t)
    isa.tstore(z, t)


def test_several_results_and_results_by_name():
    x = np.ones((8, 64), np.float32)
    args = (x, np.zeros_like(x), np.zeros_like(x))
    both = pto.diff(two_results, lambda x, y, z: (x, x + 1), args)
    assert both.first.argument == "z"
    assert [part.count for part in both.parts] == [0, 512]
    assert pto.diff(two_results, lambda x, y, z: {"y": x + 1}, args).first.argument == "y"
    assert not pto.diff(two_results, lambda x, y, z: (x, x), args)
    assert not pto.diff(two_results, lambda x, y, z: {"z": 1.0}, args)


@pytest.mark.parametrize(
    "wanted", [{"w": 1.0}, {"n": 1.0}, np.zeros(3, np.float32), (1.0, 1.0, 1.0, 1.0)]
)
def test_what_does_not_fit_is_said(wanted: Any):
    x = np.ones((8, 64), np.float32)
    with pytest.raises(pto.PtoError) as caught:
        pto.diff(two_results, lambda *args: wanted, (x, x.copy(), x.copy()))
    assert caught.value.code == "PTO-U075"


def test_one_array_given_twice_stays_one():
    @pto.kernel
    def in_place(x: pto.Global[pto.f32], y: pto.Global[pto.f32]) -> None:
        t = pto.tile(8, 64, pto.f32)
        for _ in range(2):
            isa.tload(t, x)
            isa.tadds(t, t, 1.0)
            isa.tstore(y, t)

    x = np.zeros((8, 64), np.float32)
    assert not pto.diff(in_place, lambda x, y: np.full((8, 64), 2.0), (x, x))
    found = pto.diff(in_place, lambda x, y: np.full((8, 64), 3.0), (x, x))
    assert found.first.got == 2.0
    assert found.blame.maker.name == "tadds"


def test_tolerances_are_honoured():
    x = np.linspace(1, 2, 8 * 64, dtype=np.float32).reshape(8, 64)

    def off(by: float) -> Callable[..., npt.NDArray[Any]]:
        return lambda x, y, z: x.astype(np.float64) * (1 + by)

    args = (x, np.zeros_like(x), np.zeros_like(x))
    assert pto.diff(two_results, off(1e-5), args)
    assert not pto.diff(two_results, off(1e-5), args, rtol=1e-4)
    assert not pto.diff(two_results, off(1e-7), args, ulp=2)


def test_scalars_and_constants_go_to_both():
    @pto.kernel
    def scaled(
        x: pto.Global[pto.f32], s: pto.Scalar[pto.f32], y: pto.Global[pto.f32], n: int
    ) -> None:
        t = pto.tile(8, 64, pto.f32)
        isa.tload(t, x)
        isa.tmuls(t, t, s)
        isa.tadds(t, t, float(n))
        isa.tstore(y, t)

    x = np.ones((8, 64), np.float32)
    y = np.zeros_like(x)
    assert not pto.diff(scaled, lambda x, s, y, n: x * s + n, (x, 2.0, y, 3))
    assert not pto.diff(scaled, lambda x, s, y, n: x * s + n, (x, 2.0, y), named={"n": 4})
    found = pto.diff(scaled, lambda x, s, y, n: x * s + n + 1, (x, 2.0, y, 3))
    assert found.blame.maker.name == "tadds"


def test_a_kernel_that_fails_tells_why():
    @pto.kernel
    def stuck(x: pto.Global[pto.f32]) -> None:
        isa.wait_flag("MTE2", "V", 0)

    with pytest.raises(pto.PtoError) as caught:
        pto.diff(stuck, lambda x: x, (np.ones((8, 64), np.float32),))
    assert caught.value.code == "PTO-D100"


def test_an_engine_that_disagrees_is_told(monkeypatch: pytest.MonkeyPatch):
    """As if an engine had computed something else than the reference engine does."""
    run = pto.Kernel.run

    def broken(self: pto.Kernel, *args: Any, **named: Any) -> Any:
        report = run(self, *args, **named)
        args[1][0, 0] = 77.0
        return report

    monkeypatch.setattr(pto.Kernel, "run", broken)
    x = np.ones((8, 64), np.float32)
    found = pto.diff(two_results, lambda x, y, z: {"y": x}, (x, x.copy(), x.copy()))
    assert (found.first.got, found.first.wanted) == (77.0, 1.0)
    assert "the reference engine, leaves another value" in found.doubt
    assert found.doubt in str(found)


def test_a_difference_is_told_even_where_nobody_can_be_blamed(monkeypatch: pytest.MonkeyPatch):
    def fails(*args: Any) -> Any:
        raise pto.PtoError(pto.Diagnostic("PTO-M001", "out of bounds"))

    monkeypatch.setattr("pto.lang.diff.diff.blame", fails)
    x = np.ones((8, 64), np.float32)
    found = pto.diff(two_results, lambda x, y, z: {"y": x + 1}, (x, x.copy(), x.copy()))
    assert found.blame is None
    assert "under the sanitizer the run ends with" in str(found)
    assert "no instruction wrote" not in str(found)
