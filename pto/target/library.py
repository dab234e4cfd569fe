"""What the headers of C++ do otherwise than the manual and PTOAS say, by profile. Data only.

C++ kernels are written against the headers: for them the headers decide. On `cpu` they are a
simulator, whose tiles are plain arrays.
"""

from __future__ import annotations

from dataclasses import replace

from pto.target.facts import Profile, Scaling


def library(profile: Profile) -> Profile:
    """A profile as C++ kernels meet it."""
    vector = profile.vector
    if profile.name == "cpu":
        return replace(
            profile,
            # TCmps.hpp and TSel.hpp of pto-isa include/pto/cpu
            vector=replace(vector, scalar_compare_mask="bytes", select_mask="bytes"),
            shared_exponents="simulator",  # TQuant.hpp
            buffers=replace(profile.buffers, bias=profile.buffers.ub, fixpipe=profile.buffers.ub),
            # common.hpp, quantize_element; TExtract.hpp and TInsert.hpp ask for no role
            scaling=Scaling("any", offset="unsigned", relu_of_nan="zero", unlike="values"),
        )
    return replace(profile, vector=replace(vector, scalar_compare_mask="rows"))
