"""Profile `cpu`: the reference simulator as the manual describes it, for legality. Data only.

A program that it forbids may still run under another profile.
"""

from __future__ import annotations

from dataclasses import replace

from pto.target import a2a3, npu
from pto.target.facts import Alignment, Buffers, Profile
from pto.target.feature import CUSTOM_PAD, Support, comparison, element_types
from pto.target.legality import CURRENT_CELLS, MX_CELLS, SEED_CELLS

BUFFERS = Buffers(
    ub=512 * 1024,  # pto-isa buffer_limits.hpp; configurable: PTO manual, Profiles: CPU Simulator
    l1=512 * 1024,  # pto-isa buffer_limits.hpp, for this and the rest
    l0a=64 * 1024,
    l0b=64 * 1024,
    l0c=128 * 1024,
    # The C++ simulator maps these two to UB without a limit of their own; ours are the largest of a
    # hardware profile.
    bias=4096,
    fixpipe=4096,
    scale_a=4096,
    scale_b=4096,
)

# pto-isa NPUMemoryModel.hpp
SIZE_VARIABLES = {
    "ub": "PTO_CPU_SIM_UB_BYTES",
    "l1": "PTO_CPU_SIM_L1_BYTES",
    "l0a": "PTO_CPU_SIM_L0A_BYTES",
    "l0b": "PTO_CPU_SIM_L0B_BYTES",
    "l0c": "PTO_CPU_SIM_L0C_BYTES",
}

# PTO manual, Data Format: Address Alignment: unaligned addresses are accepted.
ALIGNMENT = Alignment(gm_element=False, gm_advised=1, dma=1, local_element=False, base=1, vector=1)

COMPARISON = comparison(  # PTO manual, Profiles: Target Profile Comparison, column CPU Simulator
    tile_instructions="Full (emulated)",
    vector_instructions="Emulated (scalar loops)",
    matmul="Software fallback",
    mx="Not applicable",
    fractal_layouts="Simulated",
    ub_size="Configurable",
    vector_width="N=64 / N=128 / N=256",
    fp8="Not supported",
    unaligned_store="Not supported",
    align_state="Not supported",
    hif8_fp4="Not supported",
    collectives="Not supported",
    atomic_store="Not supported",
    pair_select="Not supported",
    compact_modes="Simulated",
    group_reduction="Not applicable",
)

CURRENT = Profile(
    name="cpu",
    edition="current",
    title="CPU simulator",
    socs=(),
    buffers=BUFFERS,
    vector=npu.VECTOR,
    pipes=a2a3.PIPES,
    # The simulator's own flags are empty functions; a program clean under the stricter hardware
    # rule is clean everywhere.
    sync=a2a3.SYNC,
    alignment=ALIGNMENT,
    outside_valid="raw",  # PTO manual, Tiles And Valid Regions: Valid Region
    load_padding="tile",  # pto-isa TLoad.hpp
    tf32=False,  # pto-isa settf32mode.md
    stray_index="harmless",  # pto-isa TGather.hpp
    scatter_clears=False,  # pto-isa TScatter.hpp
    features=(*COMPARISON, Support(CUSTOM_PAD, "Supported")),  # as a2a3
    element_types=element_types(COMPARISON),
    cells=(*CURRENT_CELLS, *MX_CELLS),  # fractal layouts are simulated, all of them
    f16_roundings="one",  # decisions_isa.md, arithmetic of the C++ simulator
    lacks_fixpipe_modes=npu.FIXPIPE_MODES_OF_A5,
)

MANUAL = replace(
    CURRENT,
    edition="manual",
    vector=npu.MANUAL_VECTOR,
    pipes=a2a3.MANUAL.pipes,
    features=(*COMPARISON, Support(CUSTOM_PAD, "Not supported")),  # as a2a3
    cells=SEED_CELLS,
)

EDITIONS = (CURRENT, npu.of_april(CURRENT), MANUAL)
