"""PTO manual, TileType-Layout Compatibility Matrix: every cell, in the edition that follows it."""

from __future__ import annotations

from itertools import product

import pytest

from pto.target.profile import PROFILES, profile

ORDERS = ("RowMajor", "ColMajor")
STRIPES = ("NoneBox", "RowMajor", "ColMajor")

# Layout names: Data Format Reference, Fractal Layout Encoding (NN: PTOAS PTO_IR_manual.md).
NAMES = {
    ("RowMajor", "NoneBox"): "ND",
    ("ColMajor", "NoneBox"): "DN",
    ("ColMajor", "RowMajor"): "NZ",
    ("RowMajor", "ColMajor"): "ZN",
    ("RowMajor", "RowMajor"): "ZZ",
    ("ColMajor", "ColMajor"): "NN",
}

# TileType | Supported BLayout | Supported SLayout | box bytes. A box is CUBE_BLOCK_SIZE (512) in
# Layout Reference's constants; an MX scale box is MX_ROW_LEN x MX_COL_LEN bytes (16 x 2).
MATRIX = {
    "vec": (("RowMajor", "ColMajor"), "NoneBox", None),
    "mat": (("RowMajor", "ColMajor"), "NoneBox", None),
    "acc": (("RowMajor", "ColMajor"), "NoneBox", None),
    # Fractal NZ, which the table Fractal Layout Values spells ColMajor, RowMajor.
    "left": (("RowMajor", "ColMajor"), "RowMajor", 512),
    "scale_left": (("RowMajor",), "RowMajor", 32),
    "scale_right": (("ColMajor",), "ColMajor", 32),
    "scalar": (("RowMajor",), "NoneBox", None),
}


@pytest.mark.parametrize("name", PROFILES)
@pytest.mark.parametrize("role", MATRIX)
def test_every_cell_of_the_matrix(name: str, role: str) -> None:
    manual = profile(name, edition="manual")
    orders, stripe, box = MATRIX[role]
    for blayout, slayout, fractal in product(ORDERS, STRIPES, (512, 1024, 32)):
        listed = blayout in orders and slayout == stripe and box in (None, fractal)
        assert manual.allows_layout(role, NAMES[blayout, slayout], fractal) is listed, (
            blayout,
            slayout,
            fractal,
        )


@pytest.mark.parametrize("name", PROFILES)
def test_right_is_backend_specific_and_means_the_typed_alias(name: str) -> None:
    """The matrix leaves Right to the backend and points to pto_tile.hpp: TileRight is ZN, 512."""
    manual = profile(name, edition="manual")
    assert manual.allows_layout("right", "ZN", 512)
    assert not manual.allows_layout("right", "ZN", 1024)


@pytest.mark.parametrize("name", PROFILES)
@pytest.mark.parametrize("role", ["bias", "scaling"])
def test_a_tile_type_without_a_row_is_illegal(name: str, role: str) -> None:
    """'Using a combination not listed in this table is an illegal PTO program.'"""
    manual = profile(name, edition="manual")
    assert not any(manual.allows_layout(role, layout) for layout in NAMES.values())


@pytest.mark.parametrize("role", [*MATRIX, "right"])
def test_fr_and_rn_are_in_no_row(role: str) -> None:
    manual = profile("a5", edition="manual")
    assert not manual.allows_layout(role, "FR", 512)
    assert not manual.allows_layout(role, "RN", 512)


@pytest.mark.parametrize("name", PROFILES)
def test_the_current_edition_accepts_all_the_matrix_does(name: str) -> None:
    manual, current = profile(name, edition="manual"), profile(name)
    assert set(manual.cells) < set(current.cells)
