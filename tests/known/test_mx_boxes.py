"""Exponents of MX groups brought into the boxes that the cube takes (TMOV X->ZZ)."""

from __future__ import annotations

import numpy as np
import pytest

from pto.core.errors import PtoError
from tests.machine import Bench


def boxes(exponents: np.ndarray) -> np.ndarray:
    """Box by box of 16 rows and two groups, row by row in each."""
    rows, groups = exponents.shape
    return np.array(
        [
            exponents[16 * r + i, 2 * g + j]
            for r in range(rows // 16)
            for g in range(groups // 2)
            for i in range(16)
            for j in range(2)
        ],
        np.uint8,
    )


@pytest.mark.parametrize(
    ("source", "rows", "groups"), [((16, 4), 16, 4), ((1, 64), 16, 4), ((32, 32), 32, 32)]
)
def test_groups_along_a_row(source: tuple[int, int], rows: int, groups: int) -> None:
    exponents = np.random.default_rng(1).integers(0, 256, (rows, groups)).astype(np.uint8)
    bench = Bench("a5")
    bench.tile("s", f"vec, {source[0]}x{source[1]}xui8", exponents.reshape(source))
    bench.tile("t", "vec, 1x160xui8")
    z = bench.tile("z", f"vec, {rows}x{groups}xui8, slayout=row_major")
    bench.run("pto.tmov ins(%s : {s}, %t : {t}) outs(%z : {z})")
    found = z.memory.view(z.address, rows * groups)
    assert np.array_equal(found, boxes(exponents))


def test_groups_along_a_column_are_turned() -> None:
    exponents = np.random.default_rng(2).integers(0, 256, (4, 32)).astype(np.uint8)
    bench = Bench("a5")
    bench.tile("s", "vec, 4x32xui8", exponents)
    bench.tile("t", "vec, 1x32xui8")
    z = bench.tile("z", "vec, 4x32xui8, slayout=row_major")
    body = "pto.tmov ins(%s : {s}, %t : {t}) outs(%z : {z}) {grpAxis = #pto<mx_group_axis axis0>}"
    bench.run(body)
    found = z.memory.view(z.address, 128)
    assert np.array_equal(found, boxes(exponents.T))


@pytest.mark.parametrize(("source", "valid"), [((8, 4), (16, 4)), ((16, 4), (16, 3))])
def test_boxes_that_are_not_there_are_refused(
    source: tuple[int, int], valid: tuple[int, int]
) -> None:
    bench = Bench("a5")
    bench.tile("s", f"vec, {source[0]}x{source[1]}xui8")
    bench.tile("t", "vec, 1x160xui8")
    bench.tile("z", "vec, 16x4xui8, slayout=row_major", valid=valid)
    with pytest.raises(PtoError) as caught:
        bench.run("pto.tmov ins(%s : {s}, %t : {t}) outs(%z : {z})")
    assert caught.value.code == "PTO-S044"
    assert (bench["z"] == 0xA5).all()
