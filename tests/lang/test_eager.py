"""Eager mode: what is called is done, and can be looked at."""

from __future__ import annotations

import numpy as np
import pytest

import pto
from pto import isa


def test_instructions_work_at_once_on_slices_of_arrays():
    x = np.arange(96, dtype=np.float32).reshape(6, 16)
    y = np.zeros((8, 32), np.float32)
    with pto.eager("a5"):
        t = pto.tile(16, 16, pto.f32)
        isa.tload(t, x[1:6, 0:9])
        assert t.valid == (5, 9)
        isa.tadds(t, t, 0.5)
        isa.tstore(y[2:7, 4:13], t)
    expected = np.zeros_like(y)
    expected[2:7, 4:13] = x[1:6, 0:9] + 0.5
    assert np.array_equal(y, expected)


def test_print_shows_values_and_the_valid_region():
    with pto.eager("a5"):
        t = pto.tile(8, 8, pto.f32)
        isa.tload(t, np.array([[1.5, 2.5], [3.5, 4.5]], np.float32))
        lines = str(t).splitlines()
    assert lines[0].endswith("valid 2x2")
    assert lines[1].split() == ["1.5", "2.5", "|", *["·"] * 6]
    assert lines[2].split() == ["3.5", "4.5", "|", *["·"] * 6]
    assert set(lines[3]) == {"-"}
    assert len(lines) == 10


def test_numbers_and_control_are_pythons():
    with pto.eager("a5", block=3, blocks=7):
        assert (pto.block_idx(), pto.block_num()) == (3, 7)
        assert [i * 2 for i in pto.range(3)] == [0, 2, 4]
        total = 1
        while total < 3:
            total += pto.block_idx()
        assert total == 4


def test_registers_work():
    x = np.arange(64, dtype=np.float32)
    y = np.zeros_like(x)
    with pto.eager("a5"):
        t = pto.tile(1, 64, pto.f32)
        isa.tload(t, x)
        with pto.vecscope():
            v = isa.vlds(t, 0)
            isa.vsts(isa.vsel(v * 2.0, v, v > 31.0), t, 0)
        isa.tstore(y, t)
    assert np.array_equal(y, np.where(x > 31, x * 2, x))


def test_legality_is_checked_where_it_is_called():
    with pto.eager("a2a3"):
        t = pto.tile(16, 32, pto.i8)
        with pytest.raises(pto.PtoError) as caught:
            isa.tadd(t, t, t)
    assert caught.value.code == "PTO-X011"
    assert caught.value.diagnostics[0].loc is not None
    assert caught.value.diagnostics[0].loc.file == __file__


def test_a_refused_instruction_changes_nothing():
    with pto.eager("a5"):
        t = pto.tile(16, 16, pto.f32)
        small = pto.tile(16, 16, pto.f32)
        isa.tload(small, np.ones((4, 4), np.float32))
        with pytest.raises(pto.PtoError):
            isa.tand(t, small, small)
        assert t.valid == (16, 16)


def test_dropped_tiles_give_their_room_back():
    with pto.eager("a5"):
        for _ in range(10):
            t = pto.tile(256, 128, pto.f32)  # half of the buffer
            assert t.valid == (256, 128)


def test_kernels_run_inside_eager_mode():
    @pto.kernel
    def twice(x: pto.Global[pto.f32]) -> None:
        t = pto.tile(1, 64, pto.f32)
        isa.tload(t, x)
        isa.tadd(t, t, t)
        isa.tstore(x, t)

    x = np.ones(64, np.float32)
    with pto.eager("a5"):
        twice(x)
    assert (x == 2).all()


def test_numpy_is_a_copy_of_the_valid_region():
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    with pto.eager("a5"):
        t = pto.tile(8, 8, pto.f32)
        isa.tload(t, x)
        held = t.numpy()
        isa.tadds(t, t, 1.0)
        assert np.array_equal(t.numpy(), x + 1)
    assert np.array_equal(held, x)


def test_a_traced_tile_has_no_values_yet():
    @pto.kernel(profile="a5")
    def look(x: pto.Global[pto.f32]):
        t = pto.tile(8, 8, pto.f32)
        isa.tload(t, x)
        t.numpy()

    with pytest.raises(pto.KernelError, match="a traced tile has no values yet"):
        look(np.zeros((8, 8), np.float32))
