"""PTO manual, Execution Agents And Target Profiles: the comparison, row by row, and its prose."""

from __future__ import annotations

import re

import pytest

from pto.target.facts import Profile
from pto.target.feature import COMPARISON
from pto.target.profile import PROFILES, profile

TABLE = """
Tile instructions (pto.t*) | Full (emulated) | Full (hardware) | Full (hardware)
Vector instructions (pto.v*) | Emulated (scalar loops) | Emulated (tile-vector bridge) | Full native
Matmul (TMATMUL) | Software fallback | Hardware CUBE | Hardware CUBE
MX format (int8→int32 acc) | Not applicable | Not applicable | Supported
Fractal layouts (NZ/ZN/FR/RN) | Simulated | Simulated | Full hardware
Vector tile buffer size | Configurable | 256 KB/core | 256 KB/core
Vector width (f32 / f16,bf16 / i8) | N=64 / N=128 / N=256 | N=64 / N=128 / N=256 | N=64 / N=128 / N=256
FP8 types (e4m3 / e5m2) | Not supported | Not supported | Supported
Vector unaligned store (vstu) | Not supported | Not supported | Supported
Vector alignment state (vstu/vstas) | Not supported | Not supported | Supported
hifloat8_t, float4_e* types | Not supported | Not supported | Supported
Block-scoped collective comm | Not supported | Supported | Supported
Atomic store variants | Not supported | Supported | Supported
vselr, vselrv2 (pair select) | Not supported | Not supported | Supported
TEXTRACT compact modes | Simulated | Supported | Supported
VLane group reduction | Not applicable | Not applicable | Supported
"""  # noqa: E501

ROWS = [[cell.strip() for cell in line.split(" | ")] for line in TABLE.strip().splitlines()]


def every_profile() -> list[Profile]:
    return [profile(name, edition=e) for name in PROFILES for e in ("current", "manual")]


def test_the_comparison_has_these_rows_in_this_order() -> None:
    assert [row.title for row in COMPARISON] == [row[0] for row in ROWS]


@pytest.mark.parametrize("edition", ["current", "manual"])
@pytest.mark.parametrize("row", ROWS, ids=[row[0] for row in ROWS])
def test_each_profile_gives_the_seeds_word(row: list[str], edition: str) -> None:
    title, *words = row
    for name, word in zip(("cpu", "a2a3", "a5"), words, strict=True):
        target = profile(name, edition=edition)
        support = next(s for s in target.features if s.feature.title == title)
        assert support.word == word
        assert target.supports(support.feature.key) is (not word.startswith("Not "))


def test_vector_width_row_holds_in_numbers() -> None:
    for target in every_profile():
        widths = [int(n) for n in re.findall(r"N=(\d+)", target.feature("vector_width").word)]
        assert [target.vector.lanes(size) for size in (4, 2, 1)] == widths == [64, 128, 256]


def test_buffer_size_row_holds_in_bytes() -> None:
    for target in every_profile():
        word = target.feature("ub_size").word
        if word == "256 KB/core":
            assert target.buffers.ub == 262144
        else:
            assert (target.name, word) == ("cpu", "Configurable")


@pytest.mark.parametrize(("size", "per_vlane", "per_register"), [
    (1, 32, 256), (2, 16, 128), (4, 8, 64), (8, 4, 32),
])  # fmt: skip
def test_elements_per_vlane(size: int, per_vlane: int, per_register: int) -> None:
    """The table under Vector Register Architecture: 8 VLanes of 32 bytes."""
    vector = profile("a5").vector
    assert (vector.vlanes, vector.vlane_bytes) == (8, 32)
    assert vector.vlane_bytes // size == per_vlane
    assert vector.lanes(size) == per_register


def test_fp8_and_float4_rows_decide_the_element_types() -> None:
    a5_only = {"f8e4m3", "f8e5m2", "hifloat8", "float4_e1m2x2", "float4_e2m1x2"}  # Data Format
    standard = {"f16", "bf16", "f32", "i8", "u8", "i16", "u16", "i32", "u32"}  # Data Format
    for target in every_profile():
        assert standard | {"i64", "u64"} <= target.element_types
        has = a5_only & target.element_types
        assert has == (a5_only if target.name == "a5" else set())


def test_mx_scales_exist_where_mx_does() -> None:
    """A5 Profile: MX block-scale formats with explicit TileLeftScale and TileRightScale."""
    assert profile("a5").allows_type("e8m0")
    assert profile("a5").buffers.scale_a > 0
    assert profile("a5").buffers.scale_b > 0
    assert not profile("a2a3").allows_type("e8m0")
    assert not profile("cpu").allows_type("e8m0")
    assert profile("a2a3").buffers.scale_a == profile("a2a3").buffers.scale_b == 0


def test_group_reduction_results_by_edition() -> None:
    """Data Format writes dst[g*K]; programs of today find the eight results side by side."""
    for target in every_profile():
        slots = {"manual": "vlane_first", "current": "contiguous"}[target.edition]
        assert target.vector.group_reduction_slots == slots


@pytest.mark.parametrize(("pipe", "work"), [
    ("MTE1", "GM -> vector tile buffer"),
    ("MTE2", "GM -> local tile buffer"),
    ("MTE3", "local tile buffer -> GM"),
])  # fmt: skip
@pytest.mark.parametrize("name", PROFILES)
def test_mte_directions_of_the_manual(name: str, pipe: str, work: str) -> None:
    """MTE Pipeline Detail."""
    pipes = {row.name: row.work for row in profile(name, edition="manual").pipes}
    assert pipes[pipe] == work


def test_every_pipe_of_the_core_picture_exists() -> None:
    for target in every_profile():
        assert all(target.has_pipe(name) for name in ("S", "V", "M", "MTE1", "MTE2", "MTE3"))


def test_socs_of_the_profiles() -> None:
    assert profile("a2a3").socs == ("Ascend 910B", "Ascend 910C")
    assert profile("a5").socs == ("Ascend 950 PR", "Ascend 950 DT")


@pytest.mark.parametrize("name", ["a2a3", "a5"])
def test_alignment_of_the_manual(name: str) -> None:
    """Address Alignment: GM and local by element, DMA by 32-byte block, GM advised at 32."""
    rules = profile(name).alignment
    assert (rules.gm_element, rules.local_element) == (True, True)
    assert (rules.dma, rules.gm_advised) == (32, 32)


def test_cpu_accepts_unaligned_addresses() -> None:
    rules = profile("cpu").alignment
    assert (rules.gm_element, rules.local_element) == (False, False)
    assert (rules.dma, rules.gm_advised, rules.base) == (1, 1, 1)
