"""Chips for which times are computed: a device, with the costs of its profile."""

from __future__ import annotations

from dataclasses import dataclass, replace

from pto.core.errors import fail
from pto.isa.cost.shown import CHIPS
from pto.observe.timing.overrides import Overrides, applied
from pto.target.costs import Chip, Costs, LaunchKind
from pto.target.defaults import DEFAULTS
from pto.target.devices import DeviceSpec
from pto.target.profile import device as find_device
from pto.target.profile import devices_of

_USUAL = {"a2a3": "910b1", "a5": "950pr"}


@dataclass(frozen=True, slots=True)
class Bench:
    """A device and its costs."""

    device: DeviceSpec
    costs: Costs
    kind: LaunchKind = "mix"  # of launches

    @property
    def chip(self) -> Chip:
        """The chip of the profile, with the memory bandwidth of this device."""
        chip, scale, new = self.costs.chip, self.device.memory_scale, self.device.new_scale
        return replace(
            chip,
            hbm_read=chip.hbm_read * scale,
            hbm_write=chip.hbm_write * scale,
            hbm_new=chip.hbm_new * (scale if new is None else new),
            kind=self.kind,
        )

    def of_kind(self, sides: set[str]) -> Bench:
        """The same chip for launches that use the cores of these sides."""
        kind: LaunchKind = (
            "vector" if sides == {"vector"} else "mix" if "vector" in sides else "cube"
        )
        return replace(self, kind=kind)

    @property
    def mhz(self) -> float:
        return self.device.cube_mhz or self.chip.mhz

    @property
    def l2_bytes(self) -> float:
        """As on the measured chips, scaled to this one."""
        return float(self.device.l2_bytes or self.chip.l2_bytes)


def bench(device: str | None, profile: str, costs: Overrides | None = None) -> Bench:
    """The chip of this name, or the usual one of a profile; `costs` replace some of its own."""
    if profile not in CHIPS:
        raise fail(
            "PTO-C002",
            f"profile {profile} is not a chip, so it has no times",
            help="name a device, such as --device 910b1",
        )
    usual = DEFAULTS.device and find_device(DEFAULTS.device)
    named = device or (usual.name if usual and usual.profile == profile else _USUAL[profile])
    chip_found = find_device(named)
    if chip_found.profile != profile:
        raise fail(
            "PTO-C002",
            f"{chip_found.name} has profile {chip_found.profile}, but the kernel is for {profile}",
        )
    known = CHIPS[profile]
    return Bench(chip_found, applied(known, costs) if costs else known)


def benches(profile: str) -> list[Bench]:
    """Every chip of a profile."""
    return [Bench(device, CHIPS[profile]) for device in devices_of(profile)]
