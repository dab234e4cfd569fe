"""Profile `a2a3`: Ascend 910B and Ascend 910C. Data only."""

from __future__ import annotations

from dataclasses import replace

from pto.target import npu
from pto.target.facts import SHARED_SOURCE, Buffers, PipeInfo, Profile, Sync
from pto.target.feature import CUSTOM_PAD, Support, comparison, element_types
from pto.target.legality import CURRENT_CELLS, SEED_CELLS

BUFFERS = Buffers(
    ub=256 * 1024,  # PTO manual, A2A3 Profile; devices have 192 KB: decisions_isa.md, UB size
    l1=512 * 1024,  # pto-isa buffer_limits.hpp, for this and the rest
    l0a=64 * 1024,
    l0b=64 * 1024,
    l0c=128 * 1024,
    bias=1024,
    fixpipe=2048,
    scale_a=0,
    scale_b=0,
)

PIPES = (  # pto-isa event.hpp
    PipeInfo("S", "scalar"),
    PipeInfo("V", "vector", "vector"),
    PipeInfo("M", "cube", "cube"),
    PipeInfo("MTE1", "L1 -> L0A, L0B, bias table", "cube"),
    PipeInfo("MTE2", "GM -> UB, L1"),
    PipeInfo("MTE3", "UB, L1 -> GM"),
    PipeInfo("FIX", "L0C -> GM, L1; L1 -> fixpipe buffer", "cube"),
)

SYNC = Sync(
    event_ids=npu.EVENT_IDS,
    cross_core_ids=npu.CROSS_CORE_IDS,
    buffer_ids=0,  # get_buf and rls_buf are a5's
    queue_depth=32,  # pypto's cost model, A2A3 pipe.h
    memory_ordered=frozenset({"S"}),  # V needs barriers: decisions_isa.md, order in a pipe
    # A product of ten boxes of 16 x 16 or more is done before the next reads it: decisions_isa.md
    own_order=npu.FIXPIPE_ORDER | {("M", "l0c", 10 * 1024)},
    cross_core="modes",  # FFTS: all cubes or vectors, the vector pair, broadcast or reduce
    cross_core_counter_max=15,  # four bits a flag
    second_vector_id_offset=0,
    # Two flags of one source and id were one on a 910B: decisions_isa.md
    flag_warnings=frozenset({SHARED_SOURCE}),
    queue_slots="gm",  # PTOAS PTOOps.td, initialize_l2g2l_pipe
    whole_tile_vectors=2,  # pto-isa TPush.hpp: NO_SPLIT needs both in the handshake
    # pto-isa TSync.hpp, form with an operation
    tsync_pipes=frozenset({"S", "V", "M", "MTE1", "MTE2", "MTE3", "FIX", "ALL"}),
)

COMPARISON = comparison(  # PTO manual, Profiles: Target Profile Comparison, column A2A3 Profile
    tile_instructions="Full (hardware)",
    vector_instructions="Emulated (tile-vector bridge)",
    matmul="Hardware CUBE",
    mx="Not applicable",
    fractal_layouts="Simulated",  # decisions_isa.md, fractal layouts on a2a3
    ub_size="256 KB/core",
    vector_width="N=64 / N=128 / N=256",
    fp8="Not supported",
    unaligned_store="Not supported",
    align_state="Not supported",
    hif8_fp4="Not supported",
    collectives="Supported",
    atomic_store="Supported",
    pair_select="Not supported",
    compact_modes="Supported",
    group_reduction="Not applicable",
)

CURRENT = Profile(
    name="a2a3",
    edition="current",
    title="Ascend 910B and Ascend 910C",
    socs=("Ascend 910B", "Ascend 910C"),
    buffers=BUFFERS,
    vector=replace(npu.VECTOR, masked_repeats=True),
    pipes=PIPES,
    sync=SYNC,
    separate_cores=True,
    alignment=npu.ALIGNMENT,
    outside_valid="poison",  # PTO manual, Tiles And Valid Regions: Valid Region
    load_padding="block",  # pto-isa TLoad.hpp
    tf32=False,  # pto-isa settf32mode.md
    stray_index="undefined",  # pto-isa TGather.hpp
    scatter_clears=True,  # pto-isa TScatter.hpp
    # Custom pads: the headers define PadValueCustom for every target.
    features=(*COMPARISON, Support(CUSTOM_PAD, "Supported")),
    element_types=element_types(COMPARISON),
    cells=CURRENT_CELLS,
    fill_begins="block",  # pto-isa a2a3/TFillPad.hpp: decisions_isa.md, fill in place
    lacks_fixpipe_modes=npu.FIXPIPE_MODES_OF_A5,
)

MANUAL = replace(
    CURRENT,
    edition="manual",
    vector=replace(npu.MANUAL_VECTOR, masked_repeats=True),
    pipes=npu.as_in_manual(PIPES),
    # PTO manual, Data Format: Custom Pad Values (A5)
    features=(*COMPARISON, Support(CUSTOM_PAD, "Not supported")),
    cells=SEED_CELLS,
)

EDITIONS = (CURRENT, npu.of_april(CURRENT), MANUAL)
