"""Profiles by name and edition, and findings about what a profile does not have.

Their data types are in `facts.py`; the values are in one file a profile.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, replace

from pto.core.errors import Diagnostic, Note, fail, nearest
from pto.target import a2a3, a5, cpu
from pto.target.defaults import DEFAULTS
from pto.target.devices import DEVICES, DeviceSpec
from pto.target.facts import EDITIONS, Buffers, Profile
from pto.target.feature import FEATURES

# Every profile in every edition, as published: no environment variable, no device applied.
ROWS = tuple(row for module in (cpu, a2a3, a5) for row in module.EDITIONS)

PROFILES = tuple(dict.fromkeys(row.name for row in ROWS))

# PTOAS has --pto-arch=a3 and pto.target_arch = "a3" for both generations, a2 and a3.
ALIASES = {"a2": "a2a3", "a3": "a2a3"}

LARGEST_BUFFER = 1 << 30  # a typing slip must not allocate the host's memory


_ROWS = {(row.name, row.edition): row for row in ROWS}


def profile_name(name: str) -> str:
    """The profile a spelling means, capitals aside."""
    if not isinstance(name, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        help = f"the profiles are {', '.join(PROFILES)}"
        raise fail("PTO-U020", f"a profile is a name, not {name!r}", help=help)
    lower = name.strip().lower()
    full_name = ALIASES.get(lower, lower)
    if full_name not in PROFILES:
        advice = nearest(lower, (*PROFILES, *ALIASES))
        raise fail(
            "PTO-U020",
            f"there is no profile `{name}`",
            help=advice or f"the profiles are {', '.join(PROFILES)}",
        )
    return full_name


def profile(name: str, *, edition: str = "current", ub_bytes: int | None = None) -> Profile:
    """The profile of this name. Only `cpu` takes a UB size, given here or in the environment."""
    full_name = profile_name(name)
    if edition not in EDITIONS:
        raise fail(
            "PTO-U022",
            f"there is no edition `{edition}`",
            help=f"the editions are {', '.join(EDITIONS)}",
        )
    row = _ROWS[full_name, edition]
    if full_name != "cpu":
        _refuse_size(row, ub_bytes)
        return row
    return replace(row, buffers=_cpu_buffers(row.buffers, ub_bytes))


def _refuse_size(row: Profile, ub_bytes: int | None) -> None:
    if ub_bytes is not None:
        raise fail(
            "PTO-U023",
            f"the UB of profile {row.name} is fixed at {row.buffers.ub} bytes, not {ub_bytes}",
            help="only profile cpu has a configurable UB",
        )


def _cpu_buffers(default: Buffers, ub_bytes: int | None) -> Buffers:
    sizes = {
        space: _bytes(variable, text)
        for space, variable in cpu.SIZE_VARIABLES.items()
        if (text := os.environ.get(variable, ""))
    }
    if ub_bytes is not None:
        sizes["ub"] = _bytes("ub_bytes", str(ub_bytes))
    return replace(default, **sizes)


def _bytes(origin: str, text: str) -> int:
    """A buffer size from text; a bad one is an error, where the C++ simulator drops it silently."""
    size = int(text) if text.isascii() and text.isdigit() and len(text) < 12 else 0
    if not 0 < size <= LARGEST_BUFFER or size % 32:
        raise fail(
            "PTO-U023",
            f"{origin} is `{text}`, which is not a buffer size",
            help=f"use a multiple of 32 bytes, from 32 to {LARGEST_BUFFER}",
        )
    return size


_SCALE_ROLES = frozenset({"scale_left", "scale_right"})  # PTO manual: required by MX formats


def check_tile(
    target: Profile, role: str, layout: str, fractal: int | None, dtype: str, *, pad: str = "null"
) -> tuple[Diagnostic, ...]:
    """Everything this profile refuses about a tile; empty when it is legal."""
    findings = (
        check_layout(target, role, layout, fractal),
        check_type(target, dtype, subject=f"{role} tile"),
        check_feature(target, "mx", subject=f"{role} tile") if role in _SCALE_ROLES else None,
        check_feature(target, "custom_pad", subject=f"{role} tile") if pad == "custom" else None,
    )
    return tuple(finding for finding in findings if finding)


def check_layout(
    target: Profile, role: str, layout: str, fractal: int | None = None
) -> Diagnostic | None:
    """PTO-X001 when the role may not have the layout."""
    if target.allows_layout(role, layout, fractal):
        return None
    box = "" if fractal is None or layout in ("ND", "DN") else f" with fractal {fractal}"
    cites = dict.fromkeys(cell.cite for cell in target.legal_layouts(role))
    return Diagnostic(
        "PTO-X001",
        f"{role} tile: layout {layout}{box} is not legal under profile {target}; "
        + target.explain_layout(role),
        notes=tuple(Note(cite) for cite in cites),
        help=_elsewhere(target, lambda other: other.allows_layout(role, layout, fractal)),
    )


def check_type(target: Profile, dtype: str, *, subject: str) -> Diagnostic | None:
    """PTO-X002 when the profile has no elements of this type."""
    if target.allows_type(dtype):
        return None
    gate = next((row for row in FEATURES.values() if dtype in row.types), None)
    row = f"; {gate.title}: {target.feature(gate.key).word}" if gate else ""
    return Diagnostic(
        "PTO-X002",
        f"{subject}: {dtype} elements are not legal under profile {target}{row}",
        notes=(Note(gate.cite),) if gate else (),
        help=_elsewhere(target, lambda other: other.allows_type(dtype)),
    )


def check_feature(target: Profile, key: str, *, subject: str) -> Diagnostic | None:
    """PTO-X003 when `subject` needs a feature the profile lacks."""
    support = target.feature(key)
    if support.present:
        return None
    return Diagnostic(
        "PTO-X003",
        f"{subject}: needs {support.feature.title},"
        f" which profile {target} lists as: {support.word}",
        notes=(Note(support.feature.cite),),
        help=_elsewhere(target, lambda other: other.supports(key)),
    )


def _elsewhere(target: Profile, accepts: Callable[[Profile], bool]) -> str | None:
    """Where the same thing is legal: another profile, or this one in the other edition."""
    accepting = {(row.name, row.edition) for row in ROWS if accepts(row)}
    others = [row.name for row in ROWS if (row.name, target.edition) in accepting]
    if others:
        return f"legal under {', '.join(dict.fromkeys(others))}"
    if (target.name, "current") in accepting:
        return "legal in the current edition; not in the manual's table"
    return None


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
    spec = _BY_NAME.get(name.strip().lower())
    if spec is None:
        raise fail("PTO-U021", f"there is no device `{name}`", help=_advice(name))
    return spec


def _advice(name: str) -> str:
    family = _family(name)
    if family is not None:
        names = ", ".join(row.name for row in devices_of(family))
        return f"`{name}` belongs to profile {family}; its devices are {names}"
    close = nearest(name.lower(), (row.name for row in DEVICES))
    every = f"the devices are {', '.join(row.name for row in DEVICES)}"
    return close or nearest(name, (row.soc for row in DEVICES)) or every


def _family(soc: str) -> str | None:
    lower = soc.strip().lower()
    return next((name for prefix, name in _SOC_FAMILIES if lower.startswith(prefix)), None)


def profile_of_soc(spec: str) -> str:
    """The profile a device-spec string belongs to; a family such as `Ascend950` is enough."""
    spec_found = _BY_NAME.get(spec.strip().lower())
    family = spec_found.profile if spec_found else _family(spec)
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
    if chip is None and DEFAULTS.device is not None:
        usual = device(DEFAULTS.device)
        chip = usual if usual.profile == row.name else None
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
    return DEFAULTS.text, "the program names none"
