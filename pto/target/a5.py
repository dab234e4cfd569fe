"""Profile `a5`: Ascend 950 PR and Ascend 950 DT. Data only."""

from __future__ import annotations

from dataclasses import replace

from pto.core.constants import VLANE_BYTES
from pto.target import npu
from pto.target.facts import Buffers, PipeInfo, Profile, Sync
from pto.target.feature import CUSTOM_PAD, Support, comparison, element_types
from pto.target.legality import CURRENT_CELLS, MX_CELLS, SEED_CELLS

BUFFERS = Buffers(
    ub=256 * 1024,  # PTO manual, Target Profiles: A5 Profile
    l1=512 * 1024,  # pto-isa buffer_limits.hpp, for this and the rest
    l0a=64 * 1024,
    l0b=64 * 1024,
    l0c=256 * 1024,
    bias=4096,
    fixpipe=4096,
    scale_a=4096,
    scale_b=4096,
)

PIPES = (  # pto-isa event.hpp; platform files 950*.ini of pypto
    PipeInfo("S", "scalar"),
    PipeInfo("V", "vector", "vector"),
    PipeInfo("M", "cube", "cube"),
    PipeInfo("MTE1", "L1 -> L0A, L0B, bias table, scale buffers", "cube"),
    PipeInfo("MTE2", "GM -> UB, L1"),
    PipeInfo("MTE3", "UB -> GM, L1"),
    PipeInfo(
        "FIX", "L0C -> GM, L1, UB; L1 -> fixpipe buffer"
    ),  # moves from vec to mat count as FIX
)

SYNC = Sync(
    event_ids=npu.EVENT_IDS,
    cross_core_ids=npu.CROSS_CORE_IDS,
    buffer_ids=32,  # micro-instruction manual
    queue_depth=32,  # not published for a5: a2a3's figure
    memory_ordered=frozenset({"S", "V"}),  # pto-isa event.hpp
    own_order=npu.FIXPIPE_ORDER | {("M", "l0c", 0)},  # PTOAS puts no barrier there
    cross_core="one_to_one",
    cross_core_counter_max=None,
    second_vector_id_offset=16,  # pto-isa a5/TSync.hpp: id and id + 16
    queue_slots="local",  # PTOAS PTOOps.td, initialize_l2l_pipe
    whole_tile_vectors=1,  # pto-isa TPush.hpp: a5 NO_SPLIT uses one
    # pto-isa TSync.hpp, form with an operation
    tsync_pipes=frozenset({"MTE2", "MTE3", "ALL"}),
)

COMPARISON = comparison(  # PTO manual, Profiles: Target Profile Comparison, column A5 Profile
    tile_instructions="Full (hardware)",
    vector_instructions="Full native",
    matmul="Hardware CUBE",
    mx="Supported",
    fractal_layouts="Full hardware",
    ub_size="256 KB/core",
    vector_width="N=64 / N=128 / N=256",
    fp8="Supported",
    unaligned_store="Supported",
    align_state="Supported",
    hif8_fp4="Supported",
    collectives="Supported",
    atomic_store="Supported",
    pair_select="Supported",
    compact_modes="Supported",
    group_reduction="Supported",
)

CURRENT = Profile(
    name="a5",
    edition="current",
    title="Ascend 950 PR and Ascend 950 DT",
    socs=("Ascend 950 PR", "Ascend 950 DT"),
    buffers=BUFFERS,
    # PTO-Gym tcmps: dense, as PTOAS expands it; the headers of pto-isa keep the rows of dst.
    vector=replace(npu.VECTOR, scalar_compare_mask="dense", row_source="first"),
    pipes=PIPES,
    sync=SYNC,
    # Manual, vlds: NORM needs a 32-byte aligned address, vldas and vldus take any.
    separate_cores=True,
    alignment=replace(npu.ALIGNMENT, vector=VLANE_BYTES),
    outside_valid="poison",  # PTO manual, Tiles And Valid Regions: Valid Region
    load_padding="block",  # pto-isa TLoad.hpp
    tf32=True,  # micro-instruction manual, mad, tf32_mode
    stray_index="undefined",  # pto-isa TGather.hpp
    scatter_clears=True,  # pto-isa include/pto/npu/a5/TScatter.hpp
    features=(*COMPARISON, Support(CUSTOM_PAD, "Supported")),  # PTO manual, Custom Pad Values (A5)
    element_types=element_types(COMPARISON),
    cells=(*CURRENT_CELLS, *MX_CELLS),
    row_scales="words",  # pto-isa include/pto/npu/a5/TQuant.hpp, TQuant_Int8Sym
)

MANUAL = replace(
    CURRENT,
    edition="manual",
    vector=replace(npu.MANUAL_VECTOR, row_source="first"),
    pipes=npu.as_in_manual(PIPES),
    cells=SEED_CELLS,
    row_scales="column",
)

EDITIONS = (CURRENT, npu.of_april(CURRENT), MANUAL)
