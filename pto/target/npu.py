"""Data that hardware profiles share, and the manual's words for the work of pipes."""

from __future__ import annotations

from dataclasses import replace

from pto.core.constants import BLOCK_BYTE_SIZE, VLANE_COUNT, VREG_BYTES
from pto.target.facts import Alignment, PipeInfo, Profile, VectorUnit

# Manual, Vector Register Format: 256 bytes everywhere, 8 VLanes of 32 bytes. Group results are
# in lanes 0..7: micro-instruction manual, vcgadd.
VECTOR = VectorUnit(VREG_BYTES, VLANE_COUNT, group_reduction_slots="contiguous")

# PTO manual, Data Format: Group Reduction and VLanes: dst[g*K] = sum, the other lanes zero.
MANUAL_VECTOR = replace(VECTOR, group_reduction_slots="vlane_first")

# Manual, Address Alignment: DMA blocks of 32 bytes, GM and local accesses by element, GM advised
# at 32 bytes. Start of a tile: pto-isa buffer_limits.hpp.
ALIGNMENT = Alignment(
    gm_element=True, gm_advised=32, dma=BLOCK_BYTE_SIZE, local_element=True, base=32, vector=1
)

EVENT_IDS = 8  # pto-isa event.hpp
CROSS_CORE_IDS = 16  # micro-instruction manual

_SEED_WORK = {  # PTO manual, Target Profiles: MTE Pipeline Detail
    "MTE1": "GM -> vector tile buffer",
    "MTE2": "GM -> local tile buffer",
    "MTE3": "local tile buffer -> GM",
}


def as_in_manual(pipes: tuple[PipeInfo, ...]) -> tuple[PipeInfo, ...]:
    """The same pipes with the work that the manual gives them (it does not name FIX)."""
    return tuple(replace(pipe, work=_SEED_WORK.get(pipe.name, pipe.work)) for pipe in pipes)


def of_april(current: Profile) -> Profile:
    """The profile for programs of April 2026: the unit of an immediate has changed since."""
    vector = replace(current.vector, predicate_immediate="byte")
    return replace(current, edition="april", vector=vector)


FIXPIPE_MODES_OF_A5 = ("qs322bf16", "qf322hif8", "qf322fp8")

# A table of the fixpipe buffer is loaded and used with no barrier of FIX: PTO-Gym, fixpipe cases.
FIXPIPE_ORDER = frozenset({("FIX", "fixpipe", 0)})
