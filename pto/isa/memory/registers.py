"""Registers that later copies and the fixpipe read: loops, strides, pad, quantisation, atomics."""

from __future__ import annotations

from pto.isa.meaning.memory.dma import CONFIG as BODIES
from pto.isa.memory.dma import numbers
from pto.isa.row.instr import Family, read
from pto.isa.rules.buffer import within
from pto.isa.rules.rule import dtype_in

CONFIG = Family(
    "dma configuration",
    "a register of a transfer engine; it holds until it is written again",
    "dma",
    operands=numbers("value"),
    text="$operands {} : types",
    pipe="S",
    subject="value",
    cost="register",
)
_PAIR = numbers("first", "second")
_COUNT = (1 << 21) - 1

for _way, _words, _pipe in (
    ("outtoub", "copies from global memory to UB", "MTE2"),
    ("ubtoout", "copies from UB to global memory", "MTE3"),
):
    CONFIG.row(
        f"set_loop_size_{_way}",
        f"loop counts of later {_words}: first is loop2, second is loop1",
        body=BODIES[f"set_loop_size_{_way}"],
        operands=_PAIR,
        pipe=_pipe,
        rules=(within("first", 0, _COUNT), within("second", 0, _COUNT)),
        notes=(
            "the manual names the operands loop1, loop2 in this order; PTOAS packs first<<21 |"
            " second and puts the innermost loop in loop2; the bytes moved are the same",
            "deprecated since ISA 0.6: write loop(...) on the copy",
        ),
        cite=f"pto-isa docs/isa/scalar/ops/dma-copy/set-loop-size-{_way}.md",
    )
    for _loop in ("loop1", "loop2"):
        CONFIG.row(
            f"set_{_loop}_stride_{_way}",
            f"{_loop} strides of later {_words}: first is the source's, second the destination's,"
            " in bytes",
            body=BODIES[f"set_{_loop}_stride_{_way}"],
            operands=_PAIR,
            pipe=_pipe,
            notes="without effect while the loop sizes are 1",
            cite=f"pto-isa docs/isa/scalar/ops/dma-copy/set-{_loop}-stride-{_way}.md",
        )

# Packed words: packLoopPair of PTOAS, and the emitters that call it.
_PACKED = {
    "set_loop_size_outtol1": ("loop counts of GM to L1 copies: loop2<<21 | loop1", 366),
    "set_loop1_stride_outtol1": ("loop1 byte strides of GM to L1 copies: src | dst<<40", 365),
    "set_loop2_stride_outtol1": ("loop2 byte strides of GM to L1 copies: src | dst<<40", 364),
    "set_pad_val_outtol1": ("pad value of GM to L1 copies", 373),
    "set_mte2_nz_para": (
        "nd2nz and dn2nz destination: group | loop2<<16 | loop3<<32 | loop4<<48, in 32 bytes",
        372,
    ),
    "set_quant_pre": ("scalar quantisation of the fixpipe: f32 bits", 416),
    "set_relu_alpha": ("scalar relu slope of the fixpipe: f32 bits", 417),
    "set_fix_clip_relu": ("clip value of the fixpipe: f16 bits or 16 bits of an integer", 418),
    "set_fpc": (
        "fixpipe parameter addresses: relu (addr & 0xffff)>>6 in bits 7:0, quantisation"
        " (addr & 0xffff)>>7 in bits 15:8",
        419,
    ),
}
for _name, (_meaning, _line) in _PACKED.items():
    _pipe = "MTE2" if _name.startswith("set_loop") else None
    CONFIG.row(_name, _meaning, body=BODIES[_name], pipe=_pipe, cite=f"PTOAS VPTOOps.td:{_line}")
for _name, _meaning in {
    "set_loop3_para": "fixpipe loop3: count | src_stride<<16 | dst_stride<<32",
    "set_channel_para": "fixpipe nz2dn: loop0_src_stride<<48",
}.items():
    CONFIG.row(
        _name,
        f"{_meaning}; first has the low 40 bits, second the high 24",
        body=BODIES[_name],
        operands=_PAIR,
        cite="PTOAS VPTOOps.td:370",
    )
CONFIG.row(
    "set_mov_pad_val",
    "pad value of later GM to UB copies with data_select_bit = 1",
    body=BODIES["set_mov_pad_val"],
    operands=read("value", "element"),
    rules=dtype_in("value", "i8 i16 i32 f16 bf16 f32"),
    cite="PTOAS VPTOOps.td:350",
)
_ATOMIC_TYPES = {"f32": "f32", "f16": "f16", "s16": "i16", "s32": "i32", "s8": "i8", "bf16": "bf16"}
_ATOMIC_KINDS = {
    "none": "replace what is there",
    "add": "add to what is there",
    "max": "keep the larger",
    "min": "keep the smaller",
}
for _name, _words in {
    **{f"set_atomic_{n}": f"combine as {kind}" for n, kind in _ATOMIC_TYPES.items()},
    **{f"set_atomic_{n}": kind for n, kind in _ATOMIC_KINDS.items()},
}.items():
    CONFIG.row(
        _name,
        f"later writes to global memory {_words}",
        body=BODIES[_name],
        operands=(),
        text="{}",
        needs="atomic_store",
        cite="PTOAS VPTOOps.td:420",
    )
