"""Order between memory and caches: fences, barriers of a memory domain, invalidated cache lines.

The simulator has no caches: a read sees the last write, so these rows only order accesses.
"""

from __future__ import annotations

from pto.isa.meaning.order import flags as meaning
from pto.isa.row.instr import Attr, Family, read
from pto.isa.row.order import FullFence, Publish, WriteBack

_TD = "PTOAS include/PTO/IR/PTOOps.td (2026-08)"
_VTD = "PTOAS include/PTO/IR/VPTOOps.td (2026-08)"

CACHE = Family(
    "caches",
    "what a cache holds is dropped or written back",
    "scalar",
    text="$operands @cache <? , @dst > {} : types",
    pipe="S",
    cost="register",
)


CACHE.row(
    "cmo.cacheinvalid",
    "cached global memory is dropped before a scalar reads it: all of it, or the line at addr",
    body=meaning.IN_ORDER,
    order=WriteBack("addr"),
    operands=read("addr?", "gm place"),
    attrs=Attr("space", "address_space", values=("gm",)),
    text="<1 $addr single_cache_line !space=gm : types | all @space > {}",
    profiles="a2a3 a5",
    example="pto.cmo.cacheinvalid all #pto.address_space<gm>",
    cite=_TD,
)
CACHE.row(
    "dcci",
    "a line at ptr, or the whole data cache, is written back and dropped",
    body=meaning.IN_ORDER,
    order=WriteBack("ptr", "cache", "ENTIRE_DATA_CACHE"),
    operands=read("ptr", "gm or ub pointer"),
    attrs=(
        Attr("cache", "dcci_cache_line", required=True),
        Attr("dst", "dcci_dst", meaning="where lines go"),
    ),
    profiles="a5",
    scope="outside vecscope",
    example="pto.dcci %ptr #pto.dcci_cache_line<SINGLE_CACHE_LINE> : !pto.ptr<i8>",
    cite=_VTD,
)

FENCE = Family("fences", "all earlier work is done and seen", "scalar", pipe="ALL", cost="barrier")

FULL_FENCE = FENCE.row(
    "fence.barrier_all",
    "every pipe waits until all work is done, and what it wrote is visible in scope",
    body=meaning.IN_ORDER,
    order=FullFence(""),
    attrs=Attr("scope", "fence_scope", values=("gm", "all"), required=True),
    text="@scope {}",
    profiles="a2a3 a5",
    notes="a program with no other order still leaves flags to a compiler",
    example="pto.fence.barrier_all #pto.fence_scope<gm>",
    cite=_TD,
    cxx="= pipe_barrier(PIPE_ALL); dsb(DSB_DDR)",
)
FENCE.row(
    "dsb",
    "earlier accesses to a memory domain are done before later ones begin",
    body=meaning.IN_ORDER,
    order=Publish("mem", ("DDR", "ALL")),
    attrs=Attr("mem", "dsb_mem", required=True),
    text="@mem {}",
    pipe="S",
    profiles="a5",
    scope="outside vecscope",
    example="pto.dsb #pto.dsb_mem<DDR>",
    cite=_VTD,
)
