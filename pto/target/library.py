"""Differences of the C++ headers from the manual and PTOAS, by profile. Data only.

C++ kernels are written against the headers: for them the headers decide. On `cpu` they are a
simulator with plain arrays as tiles.
"""

from __future__ import annotations

from dataclasses import replace

from pto.target.facts import Profile, Scaling, VectorUnit


def library(profile: Profile) -> Profile:
    """The profile as C++ kernels see it."""
    profile = replace(profile, headers=True)
    if profile.name == "a2a3":  # SetMadTF32Mode of pto_tile.hpp sets CTRL, which is HF32 there
        profile = replace(profile, tf32=True, tf32_mantissa=11)
    if profile.name != "cpu":
        return replace(profile, vector=_chip(profile), tf32_round="away")
    buffers = profile.buffers
    return replace(
        profile,
        # TCmps.hpp and TSel.hpp of pto-isa include/pto/cpu
        vector=replace(profile.vector, scalar_compare_mask="bytes", select_mask="bytes"),
        shared_exponents="simulator",  # TQuant.hpp
        # common.hpp, quantize_element; TExtract.hpp and TInsert.hpp require no role
        scaling=Scaling("any", offset="unsigned", relu_of_nan="zero", unlike="values"),
        buffers=replace(buffers, bias=buffers.ub, fixpipe=buffers.ub),  # both lie in UB there
    )


def _chip(profile: Profile) -> VectorUnit:
    """TCmps.hpp of a5, TPairReduceSum.hpp of both, TPartArgOp.hpp of a2a3, TPartArgBinOps.hpp:121
    of a5."""
    changes = {"scalar_compare_mask": "rows", "odd_neighbour": "left", "equal_parts": "src0"}
    return replace(profile.vector, **changes)
