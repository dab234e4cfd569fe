"""What a profile refuses: the sentences, with their values and where the thing is legal."""

from __future__ import annotations

import pytest

from pto.core.errors import Diagnostic
from pto.target.profile import check_feature, check_layout, check_tile, check_type, profile

A5_TYPES = ["f8e4m3", "f8e5m2", "hifloat8", "float4_e1m2x2", "float4_e2m1x2", "e8m0"]


def only(findings: tuple[Diagnostic, ...]) -> Diagnostic:
    (finding,) = findings
    return finding


def test_a_legal_tile_has_no_findings() -> None:
    assert check_tile(profile("a2a3"), "vec", "ND", 512, "f16") == ()
    assert check_tile(profile("a5"), "scale_left", "ZZ", 32, "e8m0", pad="custom") == ()


def test_illegal_layout_lists_the_legal_ones() -> None:
    found = only(check_tile(profile("a5"), "right", "NZ", 512, "f16"))
    assert found.code == "PTO-X001"
    assert found.message == (
        "right tile: layout NZ with fractal 512 is not legal under profile a5; "
        "right tiles may be ND, NN (fractal 512), ZN (fractal 512), RN (fractal 512)"
    )
    assert found.help is None
    assert any("Tiles And Valid Regions" in note.message for note in found.notes)


def test_wrong_box_size_is_named() -> None:
    found = only(check_tile(profile("a5"), "left", "NZ", 1024, "f16"))
    assert "layout NZ with fractal 1024 is not legal" in found.message


def test_a_layout_of_another_profile_says_which() -> None:
    found = check_layout(profile("a2a3"), "mat", "NN", 32)
    assert found is not None
    assert found.help == "legal under cpu, a5"


def test_a_layout_of_the_other_edition_says_so() -> None:
    found = check_layout(profile("a5", edition="manual"), "acc", "NZ", 1024)
    assert found is not None
    assert found.message == (
        "acc tile: layout NZ with fractal 1024 is not legal under profile a5 manual; "
        "acc tiles may be ND, DN"
    )
    assert found.help == "legal in the current edition; not in the manual's table"


def test_a_role_without_a_row() -> None:
    found = check_layout(profile("a5", edition="manual"), "bias", "ND")
    assert found is not None
    assert found.message.endswith("the layout table of a5 manual has no row for bias tiles")


@pytest.mark.parametrize("name", ["cpu", "a2a3"])
@pytest.mark.parametrize("dtype", A5_TYPES)
def test_a5_types_under_other_profiles(name: str, dtype: str) -> None:
    found = only(check_tile(profile(name), "vec", "ND", 512, dtype))
    assert found.code == "PTO-X002"
    assert found.message.startswith(
        f"vec tile: {dtype} elements are not legal under profile {name}; "
    )
    assert found.message.endswith(": Not applicable" if dtype == "e8m0" else ": Not supported")
    assert found.help == "legal under a5"


def test_a_type_no_profile_has() -> None:
    found = check_type(profile("a5"), "f128", subject="src")
    assert found is not None
    assert found.message == "src: f128 elements are not legal under profile a5"
    assert found.help is None


def test_missing_feature_quotes_the_row() -> None:
    found = check_feature(profile("cpu"), "unaligned_store", subject="vstu")
    assert found is not None
    assert (found.code, found.help) == ("PTO-X003", "legal under a5")
    assert found.message == (
        "vstu: needs Vector unaligned store (vstu), which profile cpu lists as: Not supported"
    )
    assert check_feature(profile("a5"), "unaligned_store", subject="vstu") is None


def test_all_findings_of_a_tile_not_the_first() -> None:
    codes = [d.code for d in check_tile(profile("a2a3"), "scale_left", "DN", 512, "e8m0")]
    assert codes == ["PTO-X001", "PTO-X002", "PTO-X003"]


def test_custom_pads_under_the_manual() -> None:
    manual = profile("a2a3", edition="manual")
    found = only(check_tile(manual, "vec", "ND", 512, "f32", pad="custom"))
    assert found.code == "PTO-X003"
    assert "custom pad values" in found.message
    assert check_tile(profile("a2a3"), "vec", "ND", 512, "f32", pad="custom") == ()


@pytest.mark.parametrize(("name", "role", "layout", "fractal"), [
    # What public programs write, under the profile each declares.
    ("a2a3", "left", "NZ", 512), ("a2a3", "left", "ZZ", 512), ("a2a3", "acc", "NZ", 1024),
    ("a2a3", "mat", "ZN", 512), ("a2a3", "mat", "ND", 512), ("a2a3", "right", "ZN", 512),
    ("a2a3", "scaling", "ZZ", 512), ("a2a3", "bias", "ND", 512), ("a2a3", "vec", "ND", 1024),
    ("a2a3", "vec", "NZ", 512), ("a5", "left", "NZ", 512), ("a5", "left", "ZZ", 512),
    ("a5", "acc", "NZ", 512), ("a5", "scaling", "ND", 32), ("a5", "scaling", "ZZ", 512),
    ("a5", "vec", "NZ", 512), ("a5", "vec", "DN", 512),
])  # fmt: skip
def test_layouts_of_public_programs(name: str, role: str, layout: str, fractal: int) -> None:
    assert check_layout(profile(name), role, layout, fractal) is None


def test_a_bad_variable_of_another_profile_does_not_matter(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PTO_CPU_SIM_UB_BYTES", "much")
    assert check_feature(profile("a2a3"), "mx", subject="tmatmul.mx") is not None
