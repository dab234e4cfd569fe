"""Profiles by name and edition.

Their data types are in `facts.py`; the values are in one file a profile.
"""

from __future__ import annotations

import os
from dataclasses import replace
from typing import get_args

from pto.core.errors import fail, nearest
from pto.target import a2a3, a5, cpu
from pto.target.facts import Buffers, Edition, Profile

__all__ = [
    "ALIASES",
    "EDITIONS",
    "PROFILES",
    "ROWS",
    "Edition",
    "Profile",
    "profile",
    "profile_name",
]

EDITIONS: tuple[Edition, ...] = get_args(Edition)

# Every profile in every edition, as published: no environment variable, no device applied.
ROWS = tuple(row for module in (cpu, a2a3, a5) for row in module.EDITIONS)

PROFILES = tuple(dict.fromkeys(row.name for row in ROWS))

# PTOAS says --pto-arch=a3 and pto.target_arch = "a3" for both generations, a2 and a3.
ALIASES = {"a2": "a2a3", "a3": "a2a3"}

LARGEST_BUFFER = 1 << 30  # a typing slip must not allocate the host's memory


_ROWS = {(row.name, row.edition): row for row in ROWS}


def profile_name(name: str) -> str:
    """The profile a spelling means, capitals aside."""
    lower = name.strip().lower()
    known = ALIASES.get(lower, lower)
    if known not in PROFILES:
        advice = nearest(lower, (*PROFILES, *ALIASES))
        raise fail(
            "PTO-U020",
            f"there is no profile `{name}`",
            help=advice or f"the profiles are {', '.join(PROFILES)}",
        )
    return known


def profile(name: str, *, edition: str = "current", ub_bytes: int | None = None) -> Profile:
    """The profile of this name. Only `cpu` takes a UB size, given here or in the environment."""
    known = profile_name(name)
    if edition not in EDITIONS:
        raise fail(
            "PTO-U022",
            f"there is no edition `{edition}`",
            help=f"the editions are {', '.join(EDITIONS)}",
        )
    row = _ROWS[known, edition]
    if known != "cpu":
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
