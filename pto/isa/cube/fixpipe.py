"""The fixpipe: L0C to global memory, L1 and UB, with quantisation, relu, clip and layout change."""

from __future__ import annotations

from pto.isa.cube.load import ELSEWHERE
from pto.isa.meaning.cube import fixpipe
from pto.isa.memory.dma import between, numbers
from pto.isa.row.instr import Attr, Family, Operand, read
from pto.isa.rules.buffer import within
from pto.isa.rules.fixpipe import ATOMIC, CLAUSES, DUAL, ELEMENTS

_SPEC = "PTO-Gym docs/PTO-micro-Instruction-SPEC.md"
_MANUAL = "pto-isa docs/isa/cube/ops/data-movement"

FIXPIPE = Family(
    "fixpipe",
    "accumulator tiles leave L0C",
    "cube",
    text="$operands {} : types",
    pipe="FIX",
    subject="source",
    rules=ELEMENTS,
    cost="move",
)

_ATTRS = (
    Attr("mode", "acc_store_mode", meaning="layout of the destination; absent: as nz2nd"),
    Attr("unit_flag", "unit_flag_ctrl", meaning="wait until mad marked the tile; clear the mark"),
    Attr("pre_quant_mode", "quant_pre_mode", meaning="scale and convert; _vec: a scale a channel"),
    Attr("pre_relu_mode", "relu_pre_mode", meaning="max(x, 0), or x < 0 scaled by alpha"),
    Attr("sat_mode", "acc_store_sat_mode", meaning="overflow and inf become max, NaN becomes 0"),
)
_ATOMIC_ATTRS = (
    Attr("atomic_type", "acc_store_atomic_type", meaning="element type of the atomic update"),
    Attr("atomic_op", "acc_store_atomic_op", meaning="how new and old value combine"),
)
_BASE = numbers("m", "n", "src_stride", "dst_stride")
_PAYLOADS = (
    read("pre_quant?", "scalar or pointer"),
    read("pre_relu?", "scalar or pointer"),
    read("clip_value?", "element"),
)
_TAIL = numbers(
    "split?", "loop0_src_stride?", "loop3_count?", "loop3_src_stride?", "loop3_dst_stride?"
)
_CLAUSES = (
    "unit_flag ( @unit_flag )",
    "pre_quant ( $pre_quant , mode = @pre_quant_mode )",
    "pre_relu ( <? $pre_relu , > mode = @pre_relu_mode <? , clip = $clip_value > )",
    "nz2nd !mode=nz2nd",
    "nz2dn !mode=nz2dn <? ( $loop0_src_stride ) >",
    "nz2nz !mode=nz2nz <? ( $split ) >",
    "loop3 ( $loop3_count , $loop3_src_stride , $loop3_dst_stride )",
    "sat ( preserve_nan ) !sat_mode=sat_preserve_nan",
    "sat !sat_mode=sat",
    "nosat !sat_mode=nosat",
)
_ATOMIC_CLAUSE = "atomic ( 'type' = @atomic_type , op = @atomic_op )"
_DST_MODE = (
    "dst_mode ( <| $sub_blockid !dst_mode=single | split_m !dst_mode=split_m"
    " | split_n !dst_mode=split_n > )"
)


def _text(operands: tuple[Operand, ...], between: str, *more: str) -> str:
    """The operands every form has, its own ones, the clauses; then types, own ones before those
    of the clauses.
    """
    base = ("source", "destination", *(o.name for o in _BASE))
    typed = (*base, *(o.name for o in operands), *(o.name for o in (*_PAYLOADS, *_TAIL)))
    first = " , ".join(f"${name}" for name in base)
    return (
        f"{first} {between} <|, {' | '.join((*_CLAUSES, *more))} > {{}} : types({','.join(typed)})"
    )


_NOTES = (
    "src_stride counts 16-element rows of L0C, ceil16(m); dst_stride counts destination elements",
    "the manual wants clauses in one order; they are read in any and printed in that",
    "only the m x n elements are written",
    "strides of loop3 count what src_stride and dst_stride count; every known program repeats once",
    "per channel: scale in bits [31:13] of a word as f32 of 10 mantissa bits, offset in [45:37] (9"
    " bits, two's complement), sign of 8-bit results in [46]; a float has the destination's sign",
    "integers: scale, round to nearest even, saturate to 9 (17 for 16-bit) bits, add the offset,"
    " saturate; the CPU header adds the offset before it rounds",
    "relu parameters lie in the segment with address bit 16 set",
)
FIXPIPE.row(
    "mte_l0c_l1",
    "destination in L1 = convert(clip(relu(quantise(source[m,n]))))",
    body=fixpipe.MTE_L0C,
    operands=(*between("l0c buffer", "l1 buffer"), *_BASE, *_PAYLOADS, *_TAIL),
    attrs=_ATTRS,
    text=_text((), ""),
    rules=CLAUSES,
    aliases="acc_store",
    example="pto.mte_l0c_l1 %source, %destination, %m, %n, %src_stride, %dst_stride,"
    " pre_quant(%scale, mode = qf322f16_pre_scalar), pre_relu(mode = normal_relu), nz2nd, sat"
    " : !pto.ptr<f32, l0c>, !pto.ptr<f16, l1>, i64, i64, i64, i64, f32",
    notes=(*_NOTES, ELSEWHERE),
    cite=(f"{_SPEC}:6533", f"{_MANUAL}/mte-l0c-l1.md"),
)
_GM_OWN = numbers("sid", "l2_cache_ctrl")
FIXPIPE.row(
    "mte_l0c_gm",
    "destination in global memory = convert(clip(relu(quantise(source[m,n])))), or combined with"
    " what is there",
    body=fixpipe.MTE_L0C,
    operands=(*between("l0c buffer", "gm buffer"), *_BASE, *_PAYLOADS, *_GM_OWN, *_TAIL),
    attrs=(*_ATTRS, *_ATOMIC_ATTRS),
    text=_text(_GM_OWN, ", $sid , $l2_cache_ctrl", _ATOMIC_CLAUSE),
    rules=(*CLAUSES, *ATOMIC, within("sid", 0, 3), within("l2_cache_ctrl", 0, 15)),
    example="pto.mte_l0c_gm %source, %destination, %m, %n, %src_stride, %dst_stride, %sid,"
    " %l2_cache_ctrl, nz2nd, atomic(type = f32, op = add)"
    " : !pto.ptr<f32, l0c>, !pto.ptr<f32, gm>, i64, i64, i64, i64, i64, i64",
    notes=(*_NOTES, ELSEWHERE),
    cite=(f"{_SPEC}:6598", f"{_MANUAL}/mte-l0c-gm.md"),
)
_UB_OWN = (read("sub_blockid?", "i64"),)
FIXPIPE.row(
    "mte_l0c_ub",
    "destination in UB of one vector sub-block, or half of it in each ="
    " convert(clip(relu(quantise(source[m,n]))))",
    body=fixpipe.MTE_L0C,
    operands=(*between("l0c buffer", "ub buffer"), *_BASE, *_PAYLOADS, *_UB_OWN, *_TAIL),
    attrs=(
        Attr("dst_mode", "acc_store_ub_dst_mode", required=True, meaning="one half, or both"),
        *_ATTRS,
    ),
    text=_text(_UB_OWN, f", {_DST_MODE}"),
    rules=(*CLAUSES, *DUAL, within("sub_blockid", 0, 1)),
    profiles="a5",
    example="pto.mte_l0c_ub %source, %destination, %m, %n, %src_stride, %dst_stride,"
    " dst_mode(split_m), nz2nd : !pto.ptr<f32, l0c>, !pto.ptr<f32, ub>, i64, i64, i64, i64",
    notes=(*_NOTES, "a2a3 has no path from L0C to UB"),
    cite=(f"{_SPEC}:6662", f"{_MANUAL}/mte-l0c-ub.md"),
)

_CONFIG = (
    "config0 = sid | n<<4 | m<<16 | dst_stride<<32; config1 = src_stride | {} | quant[5]<<29 |"
    " clip<<30 | unit flag<<32 | quant[4:0]<<34 | relu<<39 | split<<42 | nz2nd<<43 | nz2dn<<62"
)
_HALVES = "dual<<16 | sub-block<<18"
for _name, _to, _words, _own, _profiles, _line in (
    ("copy_matrix_cc_to_gm", "gm", ("xm", "xt"), "l2<<16", "cpu a2a3 a5", 1276),
    ("copy_matrix_cc_to_cbuf", "l1", ("config0", "config1"), "l2<<16", "cpu a2a3 a5", 1291),
    ("copy_matrix_cc_to_ub", "ub", ("config0", "config1"), _HALVES, "a5", 1307),
):
    FIXPIPE.row(
        _name,
        f"L0C to {_to}, everything in two words: " + _CONFIG.format(_own),
        body=fixpipe.COPY_MATRIX,
        operands=(*between("l0c pointer", f"{_to} pointer"), *numbers(*_words)),
        profiles=_profiles,
        cite=f"PTOAS VPTOOps.td:{_line}",
    )
