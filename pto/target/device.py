"""Devices by name, and a profile narrowed to one of them."""

from __future__ import annotations

from dataclasses import replace

from pto.core.errors import fail, nearest
from pto.target.devices import DEVICES, DeviceSpec
from pto.target.facts import Profile

__all__ = ["DEVICES", "DeviceSpec", "device", "devices_of", "narrow", "profile_of_soc", "smallest"]

_BY_NAME = {word.lower(): row for row in DEVICES for word in (row.name, row.soc, *row.aliases)}

# SoC names by their beginning, the most specific first. PTOAS reads 950 and 910_95 as a5
# (PTOOps.td, TSCATTER); 910_93 is the 910C: pto-isa, dispatch_mega_combine.
_SOC_FAMILIES = (
    ("ascend950", "a5"),
    ("ascend910_95", "a5"),
    ("ascend910_93", "a2a3"),
    ("ascend910b", "a2a3"),
    ("ascend910c", "a2a3"),
)


def device(name: str) -> DeviceSpec:
    """The device of this name, in any spelling: `910b1`, `Ascend910B1`, `Ascend950PR_9589`."""
    found = _BY_NAME.get(name.strip().lower())
    if found is None:
        raise fail("PTO-U021", f"there is no device `{name}`", help=_advice(name))
    return found


def _advice(name: str) -> str:
    family = _family(name)
    if family is not None:
        names = ", ".join(row.name for row in devices_of(family))
        return f"`{name}` belongs to profile {family}; its devices are {names}"
    close = nearest(name.lower(), (row.name for row in DEVICES))
    return close or nearest(name, (row.soc for row in DEVICES)) or _all_names()


def _all_names() -> str:
    return f"the devices are {', '.join(row.name for row in DEVICES)}"


def _family(soc: str) -> str | None:
    lower = soc.strip().lower()
    return next((name for prefix, name in _SOC_FAMILIES if lower.startswith(prefix)), None)


def profile_of_soc(spec: str) -> str:
    """The profile a device-spec string belongs to; a family such as `Ascend950` is enough."""
    known = _BY_NAME.get(spec.strip().lower())
    family = known.profile if known else _family(spec)
    if family is None:
        raise fail("PTO-U021", f"there is no device `{spec}`", help=_advice(spec))
    return family


def devices_of(profile_name: str) -> tuple[DeviceSpec, ...]:
    return tuple(row for row in DEVICES if row.profile == profile_name)


def smallest(profile: Profile, space: str) -> DeviceSpec | None:
    """The device with the smallest buffer, if it is smaller than the profile's."""
    rows = devices_of(profile.name)
    tight = min(rows, key=lambda row: row.buffers[space], default=None)
    if tight is None or tight.buffers[space] >= profile.buffers[space]:
        return None
    return tight


def narrow(profile: Profile, chip: DeviceSpec) -> Profile:
    """The profile with this device's buffer sizes; everything else stays the profile's."""
    if chip.profile != profile.name:
        raise fail(
            "PTO-X004",
            f"device {chip.name} has profile {chip.profile}, the program is for {profile.name}",
            help=f"leave the device out, or choose one of {profile.name}: "
            + (", ".join(row.name for row in devices_of(profile.name)) or "it has none"),
        )
    return replace(profile, buffers=chip.buffers, device=chip.name)
