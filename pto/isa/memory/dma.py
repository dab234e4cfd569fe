"""DMA between global memory and UB, within UB, and from UB to L1. Registers: `registers.py`."""

from __future__ import annotations

from pto.isa.meaning.memory import dma
from pto.isa.row.instr import Attr, Family, Operand, read, write
from pto.isa.rules.buffer import LOOP_GROUPS, complete, same_width, within
from pto.isa.rules.rule import dtype_in

NBURST = "nburst ( $n_burst , $nburst_src_stride , $nburst_dst_stride )"
LOOPS = "<* <1 loop1 | loop > ( ~loop $loop_counts , $loop_src_strides , $loop_dst_strides ) >"
GAPS = (
    "$source , $destination , $len_burst nburst ( $n_burst , $src_stride , $dst_stride ) {} :"
    " types(source,destination,n_burst,len_burst,src_stride,dst_stride)"
)
_PAD = "<? pad ( ~pad $pad_value <? , $left_padding_count , $right_padding_count > ) >"
_COUNT_BITS = (1 << 21) - 1  # 16 bits in the manual, 21 in the lowering
_GM_BITS, _UB_BITS = (1 << 40) - 1, (1 << 21) - 1
_WORD = (1 << 16) - 1


def numbers(*names: str) -> tuple[Operand, ...]:
    """Operands of type i64, the type of every length, count and stride."""
    return tuple(read(name, "i64") for name in names)


def between(source: str, destination: str) -> tuple[Operand, Operand]:
    """The ends of a copy, of these kinds."""
    return read("source", source), write("destination", destination)


BURST = numbers("len_burst", "n_burst", "nburst_src_stride", "nburst_dst_stride")
LOOP = numbers("loop_counts*", "loop_src_strides*", "loop_dst_strides*")

DMA = Family(
    "dma",
    "bursts of bytes between two memories",
    "dma",
    text="$operands {} : types",
    rules=(same_width("source", "destination"),),
    subject="source",
    cost="move",
)

DMA.row(
    "mte_gm_ub",
    "for each loop, r < n_burst: copy len_burst bytes from source + r*nburst_src_stride to"
    " destination + r*nburst_dst_stride; pad fills UB rows",
    body=dma.MTE_GM_UB,
    operands=(
        *between("gm buffer", "ub buffer"),
        *numbers("l2_cache_ctl"),
        *BURST,
        *LOOP,
        read("pad_value?", "element"),
        *numbers("left_padding_count?", "right_padding_count?"),
    ),
    text=f"$source , $destination , $l2_cache_ctl , $len_burst {NBURST} {LOOPS} {_PAD}"
    " {} : types",
    pipe="MTE2",
    rules=(
        LOOP_GROUPS,
        complete("pad", "left_padding_count", "right_padding_count"),
        dtype_in("pad_value", "i8 i16 i32 f16 bf16 f32"),
        same_width("pad_value", "destination"),
        within("l2_cache_ctl", 0, 15),
        within("len_burst", 0, _COUNT_BITS),
        within("n_burst", 0, _COUNT_BITS),
        within("nburst_src_stride", 0, _GM_BITS),
        within("nburst_dst_stride", 0, _UB_BITS),
        within("left_padding_count", 0, 255),
        within("right_padding_count", 0, 255),
    ),
    aliases="dma_load",
    notes=(
        "strides are bytes from start to start; loops are listed from inner to outer",
        "pad(v) fills a row up to the next 32 bytes, pad(v, l, r) puts l and r elements around it;"
        " the manual's pseudo-code fills up to the destination stride instead",
        "l2_cache_ctl: 2 bits in the manual, 4 bits where other instructions name the same hint",
    ),
    cite=(
        "PTO-Gym docs/PTO-micro-Instruction-SPEC.md:1773",
        "pto-isa docs/isa/scalar/ops/dma-copy/copy-gm-to-ubuf.md",
    ),
)
DMA.row(
    "mte_ub_gm",
    "for each loop, r < n_burst: copy len_burst bytes from source + r*nburst_src_stride to"
    " destination + r*nburst_dst_stride",
    body=dma.MTE_UB_GM,
    operands=(*between("ub buffer", "gm buffer"), *BURST, *numbers("l2_cache_ctl?"), *LOOP),
    text=f"$source , $destination , $len_burst {NBURST} <? l2_cache_ctl ( $l2_cache_ctl ) >"
    f" {LOOPS} {{}} : types",
    pipe="MTE3",
    rules=(
        LOOP_GROUPS,
        within("len_burst", 0, _COUNT_BITS),
        within("n_burst", 0, _COUNT_BITS),
        within("nburst_src_stride", 0, _UB_BITS),
        within("nburst_dst_stride", 0, _GM_BITS),
    ),
    aliases="dma_store",
    notes="strides are bytes from start to start; padding in UB rows is not written",
    cite=(
        "PTO-Gym docs/PTO-micro-Instruction-SPEC.md:1825",
        "pto-isa docs/isa/scalar/ops/dma-copy/copy-ubuf-to-gm.md",
    ),
)

_GAPPED = numbers("n_burst", "len_burst", "src_stride", "dst_stride")
_GAP_RULES = tuple(within(name, 0, _WORD) for name in ("n_burst", "len_burst"))
_GAP_NOTE = "len_burst and both strides count 32 bytes, and the strides are gaps between bursts"
DMA.row(
    "mte_ub_ub",
    "n_burst bursts of len_burst*32 bytes; after each, source and destination advance by"
    " (len_burst + gap)*32 bytes",
    body=dma.MTE_LOCAL,
    operands=(*between("ub pointer", "ub pointer"), *_GAPPED),
    text=GAPS,
    pipe="V",
    rules=_GAP_RULES,
    aliases="dma_copy",
    notes=(_GAP_NOTE, "the pipe is not stated; TMOV within UB is the same copy and runs on V"),
    cite=(
        "PTO-Gym docs/PTO-micro-Instruction-SPEC.md:1869",
        "pto-isa docs/isa/scalar/ops/dma-copy/copy-ubuf-to-ubuf.md",
    ),
)
DMA.row(
    "mte_ub_l1",
    "n_burst bursts of len_burst*32 bytes; after each, source and destination advance by"
    " (len_burst + gap)*32 bytes",
    body=dma.MTE_LOCAL,
    operands=(*between("ub pointer", "l1 pointer"), *_GAPPED),
    text=GAPS,
    pipe="MTE3",
    rules=_GAP_RULES,
    profiles="a5",
    notes=(_GAP_NOTE, "a2a3 has no path from UB to L1"),
    cite=(
        "PTO-Gym docs/PTO-micro-Instruction-SPEC.md:1903",
        "pto-isa docs/isa/scalar/ops/dma-copy/mte-ub-l1.md",
    ),
)

_GM_TO_UB = (
    *between("gm buffer", "ub buffer"),
    *numbers("sid", "n_burst", "len_burst", "left_padding_count", "right_padding_count"),
    read("data_select_bit", "i1"),
    *numbers("l2_cache_ctl", "gm_stride", "ub_stride"),
)
DMA.row(
    "copy_gm_to_ubuf",
    "n_burst bursts of len_burst bytes from global memory to UB, repeated by the outtoub loop"
    " registers",
    body=dma.COPY_GM_TO_UBUF,
    attrs=Attr("has_pad", "any", meaning="of a compiler: the counts of padding say it"),
    operands=_GM_TO_UB,
    pipe="MTE2",
    notes=(
        "strides are bytes from start to start; set_loop_size_outtoub and the loop strides repeat"
        " the copy",
        "pad counts are elements in goldens, bytes in the manual's page",
        "the manual writes the destination first and no pad operands, as the C function does",
    ),
    cite=("pto-isa docs/isa/scalar/ops/dma-copy/copy-gm-to-ubuf.md", "PTOAS VPTOOps.td:838"),
)
_UB_TO_GM = (
    *between("ub buffer", "gm buffer"),
    *numbers("sid", "n_burst", "len_burst", "reserved", "burst_dst_stride", "burst_src_stride"),
)
DMA.row(
    "copy_ubuf_to_gm",
    "n_burst bursts of len_burst bytes from UB to global memory, repeated by the ubtoout loop"
    " registers",
    body=dma.COPY_UBUF_TO_GM,
    operands=_UB_TO_GM,
    pipe="MTE3",
    notes="the destination stride comes before the source stride",
    cite=("pto-isa docs/isa/scalar/ops/dma-copy/copy-ubuf-to-gm.md", "PTOAS VPTOOps.td:2429"),
)

# name: source, destination, pipe, profiles
_LOCAL = {
    "copy_ubuf_to_ubuf": ("ub", "ub", "V", "cpu a2a3 a5"),
    "copy_ubuf_to_cbuf": ("ub", "l1", "MTE3", "a5"),
    "copy_cbuf_to_ubuf": ("l1", "ub", "MTE1", "a5"),
}
for _name, (_from, _to, _pipe, _profiles) in _LOCAL.items():
    _operands = (
        *between(f"{_from} pointer", f"{_to} pointer"),
        *numbers("sid", "n_burst", "len_burst", "src_stride", "dst_stride"),
    )
    DMA.row(
        _name,
        f"n_burst bursts of len_burst*32 bytes from {_from} to {_to}, gaps of 32 bytes between",
        body=dma.COPY_LOCAL,
        cxx=f"{_name} destination source sid n_burst len_burst src_stride dst_stride",
        operands=_operands,
        pipe=_pipe,
        profiles=_profiles,
        rules=_GAP_RULES,
        notes=(_GAP_NOTE,)
        + (("sid names the vector sub-block that takes part",) if _profiles == "a5" else ()),
        cite="PTOAS VPTOOps.td:917",
    )
