"""Profiles: lookup, configuration, and what the ISA's union allows them."""

from __future__ import annotations

import pickle
from dataclasses import FrozenInstanceError

import pytest

from pto.core.dtypes import dtype
from pto.core.errors import PtoError
from pto.core.layout import LAYOUTS
from pto.core.memory import Space
from pto.core.tile import Role
from pto.target.facts import EDITIONS, Profile
from pto.target.feature import FEATURES, comparison
from pto.target.profile import PROFILES, ROWS, profile


def error(name: str, **options: object) -> tuple[str, str, str | None]:
    with pytest.raises(PtoError) as caught:
        profile(name, **options)  # pyright: ignore[reportArgumentType]
    (finding,) = caught.value.diagnostics
    return finding.code, finding.message, finding.help


@pytest.mark.parametrize(("spelling", "name"), [
    ("cpu", "cpu"), ("CPU", "cpu"), ("a2a3", "a2a3"), ("a3", "a2a3"), ("A2", "a2a3"),
    ("a5", "a5"), (" A5 ", "a5"),
])  # fmt: skip
def test_spellings(spelling: str, name: str) -> None:
    assert profile(spelling).name == name


def test_the_default_edition_is_current() -> None:
    assert profile("a5") is profile("a5", edition="current")
    assert profile("a5").edition == "current"
    assert str(profile("a5", edition="manual")) == "a5 manual"


def test_unknown_profile() -> None:
    assert error("a22a3") == (
        "PTO-U020", "there is no profile `a22a3`", "did you mean `a2a3`?",
    )  # fmt: skip
    assert error("ascend") == (
        "PTO-U020", "there is no profile `ascend`", "the profiles are cpu, a2a3, a5",
    )  # fmt: skip


def test_unknown_edition() -> None:
    assert error("a5", edition="old") == (
        "PTO-U022", "there is no edition `old`", "the editions are current, april, manual",
    )  # fmt: skip


def test_cpu_ub_size_from_the_call() -> None:
    assert profile("cpu", ub_bytes=1 << 20).buffers.ub == 1048576
    assert profile("cpu").buffers.ub == 524288


def test_cpu_sizes_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PTO_CPU_SIM_UB_BYTES", "262144")
    monkeypatch.setenv("PTO_CPU_SIM_L0C_BYTES", "65536")
    buffers = profile("cpu").buffers
    assert (buffers.ub, buffers.l0c, buffers.l1) == (262144, 65536, 524288)
    assert profile("cpu", ub_bytes=64).buffers.ub == 64
    assert profile("a5").buffers.l0c == 262144


@pytest.mark.parametrize("text", ["256K", "-32", "0", "33", "1e6", "٣٢", "2147483648", "9" * 40])
def test_bad_size_in_the_environment(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv("PTO_CPU_SIM_UB_BYTES", text)
    code, message, _ = error("cpu")
    assert (code, message) == (
        "PTO-U023", f"PTO_CPU_SIM_UB_BYTES is `{text}`, which is not a buffer size",
    )  # fmt: skip


def test_only_cpu_has_a_configurable_ub() -> None:
    assert error("a5", ub_bytes=1024) == (
        "PTO-U023",
        "the UB of profile a5 is fixed at 262144 bytes, not 1024",
        "only profile cpu has a configurable UB",
    )


def test_buffer_sizes() -> None:
    """pto-isa buffer_limits.hpp; UB: Target Profiles."""
    kib = {n: {k: v / 1024 for k, v in profile(n).buffers.items()} for n in ("a2a3", "a5")}
    assert kib["a2a3"] == {
        "ub": 256, "l1": 512, "l0a": 64, "l0b": 64, "l0c": 128, "bias": 1, "fixpipe": 2,
        "scale_a": 0, "scale_b": 0,
    }  # fmt: skip
    assert kib["a5"] == {
        "ub": 256, "l1": 512, "l0a": 64, "l0b": 64, "l0c": 256, "bias": 4, "fixpipe": 4,
        "scale_a": 4, "scale_b": 4,
    }  # fmt: skip


def test_buffers_read_as_a_mapping() -> None:
    buffers = profile("a5").buffers
    assert buffers["l1"] == buffers.l1
    assert "items" not in buffers
    with pytest.raises(KeyError):
        buffers["l2"]


def test_synchronisation() -> None:
    a2a3, a5 = profile("a2a3").sync, profile("a5").sync
    for sync in (a2a3, a5):
        assert (sync.event_ids, sync.cross_core_ids, sync.queue_depth) == (8, 16, 32)
        assert (sync.flag_identity, sync.flag_arity) == ("src dst id", "queue")
    assert (a2a3.buffer_ids, a5.buffer_ids) == (0, 32)
    assert (a2a3.memory_ordered, a5.memory_ordered) == ({"S"}, {"S", "V"})
    assert (a2a3.cross_core, a2a3.cross_core_counter_max) == ("modes", 15)
    assert (a5.cross_core, a5.second_vector_id_offset) == ("one_to_one", 16)


def test_custom_pads_by_edition() -> None:
    """Data Format Reference has them on A5; the headers define them for every target."""
    assert {p.name for p in ROWS if p.edition == "manual" and p.supports("custom_pad")} == {"a5"}
    assert all(p.supports("custom_pad") for p in ROWS if p.edition == "current")


@pytest.mark.parametrize("edition", EDITIONS)
@pytest.mark.parametrize("name", ["cpu", "a2a3"])
def test_no_profile_has_what_a5_lacks(name: str, edition: str) -> None:
    """a5 is the union of the ISA; the others narrow it and contradict nothing."""
    target, union = profile(name, edition=edition), profile("a5", edition=edition)
    present = {s.feature.key for s in target.features if s.present}
    assert present < {s.feature.key for s in union.features if s.present}
    assert target.element_types < union.element_types
    assert set(target.cells) <= set(union.cells)
    assert {p.name for p in target.pipes} == {p.name for p in union.pipes}
    for fact in ("register_bytes", "vlanes", "group_reduction_slots"):
        assert getattr(target.vector, fact) == getattr(union.vector, fact)
    if name != "cpu":  # whose sizes are the user's
        assert all(size <= union.buffers[space] for space, size in target.buffers.items())


def test_editions_differ_only_where_decided() -> None:
    for name in PROFILES:
        current, manual = profile(name), profile(name, edition="manual")
        same = ("title", "socs", "buffers", "sync", "alignment", "outside_valid", "element_types")
        assert all(getattr(current, field) == getattr(manual, field) for field in same)
        assert current.cells != manual.cells


def test_every_profile_answers_every_feature() -> None:
    for target in ROWS:
        assert [s.feature.key for s in target.features] == list(FEATURES)


def test_a_column_must_have_a_word_for_every_row() -> None:
    with pytest.raises(KeyError):
        comparison(mx="Supported")


def test_every_cell_and_feature_is_cited() -> None:
    assert all(cell.cite for target in ROWS for cell in target.cells)
    assert all(row.cite for row in FEATURES.values())


def test_profiles_are_frozen_and_travel_between_processes() -> None:
    target: Profile = profile("a5")
    assert pickle.loads(pickle.dumps(target)) == target
    assert len({target, profile("a5"), profile("a5", edition="manual")}) == 2
    with pytest.raises(FrozenInstanceError):
        target.name = "a6"  # pyright: ignore[reportAttributeAccessIssue]


def test_the_data_speaks_of_types_layouts_roles_and_spaces_that_exist() -> None:
    for target in ROWS:
        assert all(dtype(name).name == name for name in target.element_types)
        assert {cell.layout for cell in target.cells} <= set(LAYOUTS)
        assert {cell.role for cell in target.cells} <= {role.value for role in Role}
        assert set(target.buffers) == {space.value for space in Space if space.is_local}
