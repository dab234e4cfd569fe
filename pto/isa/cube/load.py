"""Around the matrix unit: global memory to L1, and L1 to UB, L0A, L0B, bias and fixpipe buffers.

The products are in `mad.py`; L0C is read back in `fixpipe.py`.
"""

from __future__ import annotations

from dataclasses import replace

from pto.isa.meaning.cube import factors as operands
from pto.isa.meaning.cube import load as cube
from pto.isa.meaning.memory import dma
from pto.isa.memory.dma import BURST, LOOP, LOOPS, NBURST, between, numbers
from pto.isa.row import types as t
from pto.isa.row.instr import Attr, Family, Operand, read, write
from pto.isa.rules.buffer import LOOP_GROUPS, complete, known_aligned, same_width, within
from pto.isa.rules.rule import Case, dtype_in, rule, same_dtype

ELSEWHERE = "documented for a5; other profiles are accepted, because no source excludes them"
_SPEC = "PTO-Gym docs/PTO-micro-Instruction-SPEC.md"
_MANUAL = "pto-isa docs/isa/cube/ops/data-movement"
_SAME_WIDTH = same_width("source", "destination")

CUBE_MOVE = Family(
    "cube data movement",
    "tiles on their way to the matrix unit",
    "cube",
    text="$operands {} : types",
    pipe="MTE1",
    subject="source",
    cost="move",
)

# ---- a pattern in L1


@rule("PTO-T109", "expects fill_word_bits to be 16 or 32")
def _word_bits(fill_word_bits: int) -> str | None:
    return None if fill_word_bits in (16, 32) else f"it is {fill_word_bits}"


_MOST_BLOCKS = 32767
_FILL = ("repeat_times", "block_num_32b", "dst_gap_32b")


@rule(
    "PTO-S141",
    f"expects blocks from 0 to {_MOST_BLOCKS} and an offset in whole blocks of 32 bytes",
)
def _fill_sizes(case: Case) -> str | None:
    for name in _FILL:
        number = case.number(name)
        if number is not None and not 0 <= number <= _MOST_BLOCKS:
            return f"{name} is {number}"
    offset = case.number("byte_offset")
    if offset is not None and (offset < 0 or offset % 32):
        return f"byte_offset is {offset}"
    return None


CUBE_MOVE.row(
    "raw_fill_l1",
    "for r < repeat_times: block_num_32b blocks of 32 bytes get the words of raw_value, dst_gap_32b"
    " blocks are left out",
    body=cube.RAW_FILL_L1,
    operands=(
        write("dst", "l1 buffer"),
        read("byte_offset", "i64"),
        read("raw_value", "i32"),
        *numbers(*_FILL),
    ),
    attrs=Attr("fill_word_bits", "int", required=True, meaning="16 or 32: of each word"),
    pipe="MTE2",
    subject="dst",
    profiles="a5",
    rules=(_word_bits, _fill_sizes),
    notes="the pipe is that of other fills of L1; the page names none",
    cite="PTOAS docs/isa/micro-isa/16-cube-matmul.md:369",
)

# ---- global memory to L1, L1 to UB

_BYTES = "$source , $destination , $len_burst " + NBURST + " " + LOOPS + " {} : types"
CUBE_MOVE.row(
    "mte_gm_l1",
    "for each loop, r < n_burst: copy len_burst bytes from source + r*nburst_src_stride to"
    " destination + r*nburst_dst_stride; no layout change",
    body=cube.MTE_GM_L1,
    operands=(*between("gm buffer", "l1 buffer"), *BURST, *LOOP),
    text=_BYTES,
    pipe="MTE2",
    rules=(_SAME_WIDTH, LOOP_GROUPS),
    aliases="cube_load",
    notes=("strides are bytes from start to start", ELSEWHERE),
    cite=(f"{_SPEC}:5921", f"{_MANUAL}/mte-gm-l1.md"),
)
CUBE_MOVE.row(
    "mte_l1_ub",
    "n_burst bursts of len_burst*32 bytes; after each, source and destination advance by"
    " (len_burst + gap)*32 bytes; loops advance by bytes",
    body=dma.MTE_L1_UB,
    operands=(*between("l1 buffer", "ub buffer"), *BURST, *LOOP),
    text=_BYTES,
    rules=(_SAME_WIDTH, LOOP_GROUPS),
    profiles="a5",
    aliases="cube_store",
    notes=(
        "the manual gives bytes and start-to-start strides; the lowering and the goldens use units"
        " of 32 bytes and gaps, so those decide",
        "writes UB of vector sub-block 0; a2a3 has no path from L1 to UB",
        "loops advance by bytes from start to start",
    ),
    cite=(f"{_SPEC}:5959", f"{_MANUAL}/mte-l1-ub.md"),
)


@rule("PTO-S091", "expects d_value of at most 4 if smallc0_en is set")
def _small_c0(case: Case, d_value: int) -> str | None:
    return None if case.number("smallc0_en") != 1 or d_value <= 4 else f"d_value is {d_value}"


_FRAC = numbers(
    "n_value",
    "d_value",
    "src_inner_stride",
    "group_count",
    "dst_loop2_stride",
    "dst_loop3_stride",
    "dst_loop4_stride",
    "l2_cache_ctrl",
)
_GROUP = "group_count , $dst_loop2_stride , $dst_loop3_stride , $dst_loop4_stride"
CUBE_MOVE.row(
    "mte_gm_l1_frac",
    "v[n,d] = source[g*outer + n*inner + d*E] (nd2nz) or source[g*outer + d*inner + n*E] (dn2nz)"
    " to destination + 32*(g*loop4 + d/C0*loop3 + n*loop2) + d%C0*E, with C0 = 32/E",
    body=cube.MTE_GM_L1_FRAC,
    operands=(
        *between("gm buffer", "l1 buffer"),
        *_FRAC,
        read("smallc0_en", "i1"),
        read("src_outer_stride?", "i64"),
    ),
    attrs=Attr("mode", "cube_load_frac_mode", required=True, meaning="how the source is laid out"),
    text="$source , $destination , @mode , shape ( $n_value , $d_value ) ,"
    " src_layout ( $src_inner_stride <? , $src_outer_stride > ) ,"
    f" dst_group ( ${_GROUP} ) , ctrl ( $l2_cache_ctrl , $smallc0_en ) {{}} :"
    " types(source,destination) , @mode , shape types(n_value,d_value) ,"
    " src_layout ( types(src_inner_stride) <? , types(src_outer_stride) > ) ,"
    " dst_group types(group_count,dst_loop2_stride,dst_loop3_stride,dst_loop4_stride) ,"
    " ctrl types(l2_cache_ctrl,smallc0_en)",
    pipe="MTE2",
    rules=(
        _SAME_WIDTH,
        within("group_count", 1),
        within("src_inner_stride", 0),
        within("src_outer_stride", 0),
        *(within(f"dst_loop{n}_stride", 0) for n in (2, 3, 4)),
        _small_c0,
    ),
    aliases="cube_load_frac",
    notes=(
        "source strides are bytes, destination strides count 32 bytes",
        "unused lanes of the last C0 block become 0; rows from n_value to the next multiple of 16"
        " are not written",
        ELSEWHERE,
    ),
    cite=(f"{_SPEC}:5990", f"{_MANUAL}/mte-gm-l1-frac.md"),
)

# ---- L1 to the operand buffers

_OFFSET, _STEPS = "<? , $start_row , $start_col >", "start_row? start_col? -? -? -? -? -? -?"
_STARTS = (
    complete("a window", "start_row", "start_col"),
    within("start_row", 0),
    within("start_col", 0),
)


def _window(rows: str, cols: str, to: str) -> tuple[Operand, ...]:
    sizes = numbers(rows, cols, "start_row?", "start_col?")
    return (*between("l1 buffer", f"{to} buffer"), *sizes)


_TRANSPOSE = Attr("transpose", "bool", default=False, meaning="transpose on the way")
# name: operands of the size, destination, what it holds, spec line, older name
_TILES = {
    "mte_l1_l0a": ("m", "k", "l0a", "[m,k], or [k,m] with transpose", 6186, "left_load"),
    "mte_l1_l0b": ("k", "n", "l0b", "[n,k], or [k,n] with transpose", 6221, "right_load"),
}
for _name, (_a, _b, _to, _holds, _line, _old) in _TILES.items():
    CUBE_MOVE.row(
        _name,
        f"the NZ tile {_holds} in L1 becomes the {_a} x {_b} operand in {_to}",
        body=operands.MTE_L1_L0A if _to == "l0a" else operands.MTE_L1_L0B,
        operands=_window(_a, _b, _to),
        attrs=_TRANSPOSE,
        text=f"$source , $destination , ${_a} , ${_b} {_OFFSET} {{}} : types",
        generic=f"source destination {_a}? {_b}? {_STEPS}",
        rules=(_SAME_WIDTH, within(_a, 1), within(_b, 1), *_STARTS),
        aliases=_old,
        notes=(
            "start_row (16 rows) and start_col (32 bytes) are newer than most programs; absent,"
            " they are 0",
            "the row pitch of the source is implied: ceil(rows/16)*16; transposed, both sides are"
            " padded to max(16, 32/E), in L0 too: 8-bit tiles fit mad where that is ceil16",
            "L0A holds K1 M1 M0 K0 on a5 and FRACTAL_ZZ on a2a3 (here K1 M1 M0 K0 everywhere);"
            " L0B holds K1 N1 N0 K0",
            ELSEWHERE,
        ),
        cite=(f"{_SPEC}:{_line}", f"{_MANUAL}/{_name.replace('_', '-')}.md"),
    )


_MX_ALIGNED = known_aligned("source", 32), known_aligned("destination", 16)
_SCALES = {
    "mte_l1_l0a_mx": ("m", "k", "l0a", "scale[m][k/32] of the left tile", 6267),
    "mte_l1_l0b_mx": ("k", "n", "l0b", "scale[k/32][n] of the right tile, n-major", 6300),
}
for _name, (_a, _b, _to, _holds, _line) in _SCALES.items():
    CUBE_MOVE.row(
        _name,
        f"load {_holds}: bytes b that stand for 2^(b-127)",
        body=operands.MTE_L1_L0A_MX if _to == "l0a" else operands.MTE_L1_L0B_MX,
        operands=_window(_a, _b, _to),
        text=f"$source , $destination , ${_a} , ${_b} {_OFFSET} {{}} : types",
        generic=f"source destination {_a}? {_b}? {_STEPS}",
        rules=(_SAME_WIDTH, *_STARTS, *_MX_ALIGNED),
        needs="mx",
        notes=(
            "destination is the pointer of the data tile; mad_mx finds the scales by it",
            "programs type the pointers f8E4M3FN although the bytes are e8m0",
        ),
        cite=(f"{_SPEC}:{_line}", f"{_MANUAL}/{_name.replace('_', '-')}.md"),
    )


@rule("PTO-T091", "expects f32 to f32, i32 to i32, f16 to f32 or bf16 to f32")
def _bias_types(source: t.Scalar, destination: t.Scalar) -> str | None:
    pairs = (("f32", "f32"), ("i32", "i32"), ("f16", "f32"), ("bf16", "f32"))
    fits = any(a in source.names and b in destination.names for a, b in pairs)
    return None if fits else f"it is {source.name} to {destination.name}"


_GAPS = numbers("len_burst", "n_burst", "nburst_src_gap", "nburst_dst_gap")
PAYLOAD = replace(
    CUBE_MOVE,
    text="$source , $destination , $len_burst"
    " nburst ( $n_burst , $nburst_src_gap , $nburst_dst_gap ) {} : types",
)
PAYLOAD.row(
    "mte_l1_bt",
    "bias values from L1 to the bias table, f16 and bf16 widened; len_burst and gaps count"
    " 32 bytes of source",
    body=cube.MTE_L1_BT,
    operands=(*between("l1 buffer", "bias buffer"), *_GAPS),
    rules=_bias_types,
    aliases="bias_load",
    notes=ELSEWHERE,
    cite=(f"{_SPEC}:6081", f"{_MANUAL}/mte-l1-bt.md"),
)
PAYLOAD.row(
    "mte_l1_fb",
    "parameters from L1 to the fixpipe buffer, as they are; len_burst and gaps count 64 bytes",
    body=cube.MTE_L1_FB,
    operands=(*between("l1 buffer", "fixpipe buffer"), *_GAPS),
    pipe="FIX",
    aliases="fp_load",
    notes=ELSEWHERE,
    cite=(f"{_SPEC}:6127", f"{_MANUAL}/mte-l1-fb.md"),
)

# ---- low-level forms

_FRACTALS = numbers("m_start", "k_start", "m_step", "k_step", "src_stride", "dst_stride")
_FIELDS = (  # bits of the fields: VPTOOps.td
    *(within(name, 0, 65535) for name in ("m_start", "k_start")),
    *(within(name, 1, 255) for name in ("m_step", "k_step")),
    *(within(name, 1, 65535) for name in ("src_stride", "dst_stride")),
)
_FP4 = "float4_e1m2x2 float4_e2m1x2"
_FOURS = (
    dtype_in("source", _FP4),
    dtype_in("destination", _FP4),
    same_dtype("source", "destination"),
    within("transpose", 0, 1),
)


@rule("PTO-T021", "expects elements of 8 bits or more")
def _whole_elements(case: Case) -> str | None:
    elems = [e for name in ("source", "destination") if (e := case.elem(name))]
    packed = [e.name for e in elems if set(e.names) & set(_FP4.split())]
    return f"it has {packed[0]}" if packed else None


_ND = numbers("sid", "loop1_src_stride", "l2_cache_ctrl", "n_value", "d_value", "loop4_src_stride")
_BLOCKS = numbers("n_burst", "len_burst", "source_gap", "dst_gap")
_TD = "PTOAS VPTOOps.td"
CUBE_MOVE.row(
    "copy_gm_to_cbuf",
    "n_burst bursts of len_burst bytes, repeated by the outtol1 loop registers",
    body=cube.COPY_GM_TO_CBUF,
    operands=(
        *between("gm pointer", "l1 pointer"),
        *numbers("n_burst", "len_burst", "src_stride", "dst_stride"),
    ),
    pipe="MTE2",
    notes=ELSEWHERE,
    cite=f"{_TD}:1037",
)
for _order, _body, _line in (("nd2nz", cube.MULTI_ND2NZ, 1055), ("dn2nz", cube.MULTI_DN2NZ, 1079)):
    CUBE_MOVE.row(
        f"copy_gm_to_cbuf_multi_{_order}",
        f"mte_gm_l1_frac {_order}, its destination pattern in set_mte2_nz_para",
        body=_body,
        operands=(*between("gm pointer", "l1 pointer"), *_ND, read("smallc0_en", "i1")),
        pipe="MTE2",
        notes=ELSEWHERE,
        cite=f"{_TD}:{_line}",
    )
CUBE_MOVE.row(
    "copy_cbuf_to_bt",
    "L1 to bias table in units of 32 bytes; conv_control widens f16 to f32",
    body=cube.COPY_CBUF_TO_BT,
    operands=(*between("l1 pointer", "bias pointer"), read("conv_control", "i1"), *_BLOCKS),
    notes=ELSEWHERE,
    cite=f"{_TD}:1103",
)
CUBE_MOVE.row(
    "copy_cbuf_to_fbuf",
    "L1 to fixpipe buffer in units of 64 bytes",
    body=cube.COPY_CBUF_TO_FBUF,
    operands=(*between("l1 pointer", "fixpipe pointer"), *_BLOCKS),
    pipe="FIX",
    notes=ELSEWHERE,
    cite=f"{_TD}:1123",
)
_SIDES = (("ca", "l0a", (1142, 1166)), ("cb", "l0b", (1190, 1214)))
for _side, _to, (_, _line) in _SIDES:
    CUBE_MOVE.row(
        f"load_cbuf_to_{_side}_s4",
        f"load_cbuf_to_{_side} for 4-bit elements; transpose is an operand",
        body=operands.LOAD_CBUF_S4,
        operands=(*between("l1 pointer", f"{_to} pointer"), *_FRACTALS, read("transpose", "i64")),
        rules=(*_FIELDS, *_FOURS),
        notes=ELSEWHERE,
        cite=f"{_TD}:{_line}",
    )
for _side, _to, (_line, _) in _SIDES:
    CUBE_MOVE.row(
        f"load_cbuf_to_{_side}",
        f"L1 to {_to} by fractals of 512 bytes: start, step and stride count fractals, m in 16"
        " rows, k in 32 bytes",
        body=operands.LOAD_CBUF,
        operands=(*between("l1 pointer", f"{_to} pointer"), *_FRACTALS),
        attrs=_TRANSPOSE,
        rules=(*_FIELDS, _whole_elements),
        notes=ELSEWHERE,
        cite=f"{_TD}:{_line}",
    )
_MX_STEPS = numbers(
    "x_start_position", "y_start_position", "x_step", "y_step", "src_stride", "dst_stride"
)
for _name, _to, _rest, _line in (
    ("load_cbuf_to_ca_mx", "l0a", numbers("m", "k"), 1238),
    ("load_cbuf_to_cb_mx", "l0b", _MX_STEPS, 1253),
):
    CUBE_MOVE.row(
        _name,
        f"MX scales from L1 to the side of {_to}",
        body=operands.MTE_L1_L0A_MX if _to == "l0a" else operands.LOAD_CBUF_TO_CB_MX,
        operands=(*between("l1 pointer", f"{_to} pointer"), *_rest),
        needs="mx",
        cite=f"{_TD}:{_line}",
    )
