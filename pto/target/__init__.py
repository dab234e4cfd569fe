"""Targets: what each profile of the ISA allows, and the devices that narrow it. Frozen data."""

from pto.target.check import check_feature, check_layout, check_tile, check_type
from pto.target.choose import Target, choose
from pto.target.device import DeviceSpec, device, devices_of, narrow, profile_of_soc, smallest
from pto.target.facts import Buffers
from pto.target.profile import EDITIONS, PROFILES, Edition, Profile, profile, profile_name

__all__ = [
    "EDITIONS",
    "PROFILES",
    "Buffers",
    "DeviceSpec",
    "Edition",
    "Profile",
    "Target",
    "check_feature",
    "check_layout",
    "check_tile",
    "check_type",
    "choose",
    "device",
    "devices_of",
    "narrow",
    "profile",
    "profile_name",
    "profile_of_soc",
    "smallest",
]
