"""Devices: names, figures, and that they narrow their profile and contradict nothing."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pto.core.errors import PtoError
from pto.target.profile import (
    DEVICES,
    DeviceSpec,
    choose,
    device,
    devices_of,
    narrow,
    profile,
    profile_of_soc,
    smallest,
)


def error(name: str) -> tuple[str, str, str | None]:
    with pytest.raises(PtoError) as caught:
        device(name)
    (finding,) = caught.value.diagnostics
    return finding.code, finding.message, finding.help


# Platform files of pypto: cube cores, vector cores, MHz, HBM bytes, L2 bytes.
FIGURES = {
    "910b1": (24, 48, 1850, 68719476736, 201326592),
    "910b2": (24, 48, 1800, 68719476736, 201326592),
    "910b3": (20, 40, 1800, None, 201326592),
    "910b4": (20, 40, 1500, 34359738368, 100663296),
    "910c": (24, 48, 1850, 68719476736, 201326592),
    "950pr": (32, 64, 1650, 137438953472, 134217728),
    "950pr_9579": (28, 56, 1650, 137438953472, 134217728),
    "950pr_9599": (36, 72, None, None, None),
    "950dt": (32, 64, 1650, 154618822656, 134217728),
    "950dt_9572": (28, 56, 1650, 103079215104, 134217728),
    "950dt_9582": (32, 64, 1650, 103079215104, 134217728),
}


def test_every_device_has_its_published_figures() -> None:
    assert {
        d.name: (d.cube_cores, d.vector_cores, d.cube_mhz, d.hbm_bytes, d.l2_bytes) for d in DEVICES
    } == FIGURES


@pytest.mark.parametrize(("spelling", "name"), [
    ("910B1", "910b1"), ("Ascend910B1", "910b1"), ("ascend910c", "910c"),
    ("Ascend950PR_9589", "950pr"), ("950pr_9589", "950pr"), ("Ascend950PR", "950pr"),
    ("Ascend950DT_9572", "950dt_9572"), ("Ascend910_9599", "950pr_9599"),
])  # fmt: skip
def test_spellings(spelling: str, name: str) -> None:
    assert device(spelling).name == name


def test_no_spelling_means_two_devices() -> None:
    words = [w.lower() for d in DEVICES for w in {d.name, d.soc.lower(), *d.aliases}]
    assert len(words) == len(set(words))


@pytest.mark.parametrize("chip", DEVICES, ids=lambda d: d.name)
def test_a_device_narrows_and_never_contradicts(chip: DeviceSpec) -> None:
    for edition in ("current", "manual"):
        whole = profile(chip.profile, edition=edition)
        narrowed = narrow(whole, chip)
        assert all(size <= whole.buffers[space] for space, size in chip.buffers.items())
        assert 0 < chip.usable_ub <= chip.buffers.ub
        assert replace(narrowed, buffers=whole.buffers, device=None) == whole
        assert narrowed.device == chip.name
    assert chip.vector_cores == 2 * chip.cube_cores  # a core: one cube, two vector sub-blocks


@pytest.mark.parametrize(("name", "ub", "usable"), [
    ("910b1", 196608, 188416), ("910c", 196608, 188416), ("950pr", 262144, 253952),
])  # fmt: skip
def test_ub_of_a_device(name: str, ub: int, usable: int) -> None:
    """buffer_limits.hpp: 192 KB with 8 KB scratch at 184 KB; 256 KB of which 248 are planned."""
    chip = device(name)
    assert (chip.buffers.ub, chip.usable_ub) == (ub, usable)


def test_the_tightest_device_of_a_profile() -> None:
    tight = smallest(profile("a2a3"), "ub")
    assert tight is not None
    assert tight.buffers.ub == 196608
    assert smallest(profile("a2a3"), "l1") is None
    assert smallest(profile("a5"), "ub") is None
    assert smallest(profile("cpu"), "ub") is None


def test_unknown_device() -> None:
    assert error("910b5")[:2] == ("PTO-U021", "there is no device `910b5`")
    assert "`910b4`" in (error("910b5")[2] or "")
    assert error("H100")[2] == (
        "the devices are 910b1, 910b2, 910b3, 910b4, 910c, 950pr_9579, 950pr, 950pr_9599,"
        " 950dt_9572, 950dt, 950dt_9582"
    )


def test_a_family_is_no_device_but_names_its_members() -> None:
    assert error("Ascend910B") == (
        "PTO-U021",
        "there is no device `Ascend910B`",
        "`Ascend910B` belongs to profile a2a3; its devices are 910b1, 910b2, 910b3, 910b4, 910c",
    )


def test_device_of_another_profile() -> None:
    with pytest.raises(PtoError) as caught:
        narrow(profile("a5"), device("910c"))
    (finding,) = caught.value.diagnostics
    assert finding.code == "PTO-X004"
    assert finding.message == "device 910c has profile a2a3, the program is for a5"
    with pytest.raises(PtoError) as caught:
        narrow(profile("cpu"), device("910c"))
    assert (caught.value.diagnostics[0].help or "").endswith("one of cpu: it has none")


@pytest.mark.parametrize(("spec", "name"), [
    ("Ascend910B1", "a2a3"), ("Ascend910B3", "a2a3"), ("Ascend950", "a5"),
    ("Ascend910_9599", "a5"), ("Ascend910_9391", "a2a3"), ("Ascend950PR_958b", "a5"),
])  # fmt: skip
def test_device_spec_strings_of_programs(spec: str, name: str) -> None:
    assert profile_of_soc(spec) == name


@pytest.mark.parametrize("spec", ["Ascend310P", "Ascend910A", ""])
def test_a_device_spec_of_no_known_family(spec: str) -> None:
    with pytest.raises(PtoError, match=r"PTO-U021.*there is no device"):
        profile_of_soc(spec)


def test_the_request_comes_before_the_program() -> None:
    target = choose(profile_name="a5", target_arch="a3", device_spec="Ascend910B1")
    assert (target.profile.name, target.reason) == ("a5", "as requested")
    target = choose(device_name="910b1", target_arch="a5")
    assert (target.profile.name, target.profile.buffers.ub) == ("a2a3", 196608)


def test_the_declared_arch_comes_before_the_declared_device() -> None:
    target = choose(target_arch="A5", device_spec="Ascend910B1")
    assert str(target) == 'profile a5 (from pto.target_arch = "A5")'
    target = choose(device_spec="Ascend910B1")
    assert str(target) == 'profile a2a3 (from pto.device-spec = "Ascend910B1")'
    assert target.device is None
    assert target.profile.buffers.ub == 262144


def test_a_program_that_declares_nothing_is_for_a2a3() -> None:
    assert str(choose(edition="manual")) == "profile a2a3 manual (the program names none)"


def test_a_requested_device_must_fit_the_requested_profile() -> None:
    with pytest.raises(PtoError, match="PTO-X004"):
        choose(profile_name="a5", device_name="910b1")
    assert choose(profile_name="a3", device_name="910b1").profile.device == "910b1"


def test_devices_of_a_profile() -> None:
    assert [d.name for d in devices_of("a2a3")] == ["910b1", "910b2", "910b3", "910b4", "910c"]
    assert devices_of("cpu") == ()
