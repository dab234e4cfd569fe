"""The profile and device for which a program is checked: as requested, else as declared."""

from __future__ import annotations

from dataclasses import dataclass

from pto.target.device import DeviceSpec, device, narrow, profile_of_soc
from pto.target.facts import Profile
from pto.target.profile import profile

DEFAULT = "a2a3"  # of programs in text and C++; PTOAS: --pto-arch is a3 unless given
PYTHON = "a5"  # of kernels in Python and of eager mode


@dataclass(frozen=True, slots=True)
class Target:
    """A profile, the device it was narrowed to if any, and why it was chosen."""

    profile: Profile
    device: DeviceSpec | None
    reason: str
    declared: bool = True  # False: no target was named, this is the default

    def __str__(self) -> str:
        return f"profile {self.profile} ({self.reason})"


def choose(
    *,
    profile_name: str | None = None,
    device_name: str | None = None,
    target_arch: str | None = None,
    device_spec: str | None = None,
    edition: str = "current",
) -> Target:
    """The target of a program. Only a requested device narrows the profile.

    Programs carry device-spec strings of other generations than the one they are compiled for,
    so a declared arch outweighs a declared device, and a declared device gives its profile only.
    """
    chip = device(device_name) if device_name else None
    name, reason = _name_and_reason(profile_name, chip, target_arch, device_spec)
    row = profile(name, edition=edition)
    declared = any((profile_name, device_name, target_arch, device_spec))
    return Target(narrow(row, chip) if chip else row, chip, reason, declared)


def _name_and_reason(
    profile_name: str | None,
    chip: DeviceSpec | None,
    target_arch: str | None,
    device_spec: str | None,
) -> tuple[str, str]:
    if profile_name:
        return profile_name, "as requested"
    if chip:
        return chip.profile, f"as device {chip.name} was requested"
    if target_arch:
        return target_arch, f'from pto.target_arch = "{target_arch}"'
    if device_spec:
        return profile_of_soc(device_spec), f'from pto.device-spec = "{device_spec}"'
    return DEFAULT, "the program names none"
