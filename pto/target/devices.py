"""Devices: one row for each chip that can be bought, with the figures of its data sheet. Data only.

All figures: platform files of pypto and cost models of pto-isa, unless a comment gives another
source.
None: not published. How fast a device moves and computes belongs to the timing model, not here.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from pto.core.constants import TMP_UB_OFFSET
from pto.target import a2a3, a5
from pto.target.facts import Buffers

GIB = 1 << 30
MIB = 1 << 20


@dataclass(frozen=True, slots=True)
class DeviceSpec:
    """A chip that narrows a profile: buffer sizes, how many cores, clocks and memory."""

    name: str
    soc: str  # as device-spec attributes and tool options spell it
    profile: str
    buffers: Buffers
    usable_ub: int  # bytes below the part the software stack keeps for itself
    cube_cores: int
    vector_cores: int
    cube_mhz: int | None
    vector_mhz: int | None
    hbm_bytes: int | None
    l2_bytes: int | None
    dies: int = 1
    memory_scale: float = 1.0  # rate of its memory, beside the chips that were measured
    new_scale: float | None = None  # the same for inputs that no launch has read; None: as above
    aliases: tuple[str, ...] = ()


# Profile, buffers, and bytes of UB that programs may use.
_Family = tuple[str, Buffers, int]

# UB 192 KB: platform file A2A3.ini of pypto, pto-isa buffer_limits.hpp; the last 8 KB, from
# TMP_UB_OFFSET on, are scratch of instructions without a tmp operand: PTO manual, Constants
# Reference.
_910: _Family = ("a2a3", replace(a2a3.BUFFERS, ub=192 * 1024), TMP_UB_OFFSET)

# 256 KB physical, of which platform files give programs 248: 950*.ini of pypto.
_950: _Family = ("a5", a5.BUFFERS, 248 * 1024)


def _chip(
    family: _Family,
    soc: str,
    cubes: int,
    mhz: int | None,
    hbm: int | None,
    l2: int | None,
    vector_mhz: int | None = None,
) -> DeviceSpec:
    """A chip, named by its SoC, with two vector cores for each cube."""
    name, clocks = soc.removeprefix("Ascend").lower(), (mhz, vector_mhz)
    return DeviceSpec(name, soc, *family, cubes, 2 * cubes, *clocks, hbm, l2)


# 950DT: 3.3 TB/s of 1 GB of arrays in turn, 3.03 of 256 MB: pto-kernels, mxfp4_quant_a5
# and fast_hadamard_a5; platform files of pypto have 61 to 80 bytes a cycle of a core, 950PR 31
def _dt(chip: DeviceSpec) -> DeviceSpec:
    return replace(chip, memory_scale=2.0, new_scale=2.42)


DEVICES = (
    _chip(_910, "Ascend910B1", 24, 1850, 64 * GIB, 192 * MIB),
    _chip(_910, "Ascend910B2", 24, 1800, 64 * GIB, 192 * MIB),
    _chip(_910, "Ascend910B3", 20, 1800, None, 192 * MIB),
    # 800 GB/s of 1600: platform files of pypto
    replace(_chip(_910, "Ascend910B4", 20, 1500, 32 * GIB, 96 * MIB), memory_scale=0.5),
    # One die of the package; a program sees a die, not the pair.
    replace(_chip(_910, "Ascend910C", 24, 1850, 64 * GIB, 192 * MIB), dies=2),
    _chip(_950, "Ascend950PR_9579", 28, 1650, 128 * GIB, 128 * MIB, 1650),
    # `950pr` and `950dt` alone mean the most common part, 32 cubes, with every figure published.
    replace(
        _chip(_950, "Ascend950PR_9589", 32, 1650, 128 * GIB, 128 * MIB, 1650),
        name="950pr",
        aliases=("950pr_9589", "Ascend950PR"),
    ),
    # pto-isa's test runner takes the older SoC name for this one.
    replace(_chip(_950, "Ascend950PR_9599", 36, None, None, None), aliases=("Ascend910_9599",)),
    _dt(_chip(_950, "Ascend950DT_9572", 28, 1650, 96 * GIB, 128 * MIB)),
    replace(
        _dt(_chip(_950, "Ascend950DT_9581", 32, 1650, 144 * GIB, 128 * MIB)),
        name="950dt",
        aliases=("950dt_9581", "Ascend950DT"),
    ),
    _dt(_chip(_950, "Ascend950DT_9582", 32, 1650, 96 * GIB, 128 * MIB)),
)
