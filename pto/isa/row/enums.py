"""Enumerated attributes: their words, in one place, and how MLIR spells each kind.

A kind is spelled `#pto.pipe<PIPE_V>` (angle), `#pto<round_mode ROUND>` (plain) or as its number, as
MLIR does for the predicates of arith. Numbers are positions unless `numbers` says otherwise.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

PIPES = ("S", "V", "M", "MTE1", "MTE2", "MTE3", "ALL", "MTE4", "MTE5", "V2", "FIX")


@dataclass(frozen=True, slots=True)
class EnumKind:
    name: str
    words: tuple[str, ...]
    spelling: Literal["angle", "plain", "number"]
    numbers: tuple[int, ...] = ()

    def number(self, word: str) -> int:
        index = self.words.index(word)
        return self.numbers[index] if self.numbers else index

    def word(self, number: int) -> str | None:
        """The word for a number, or None."""
        if self.numbers:
            pairs = dict(zip(self.numbers, self.words, strict=True))
            return pairs.get(number)
        return self.words[number] if 0 <= number < len(self.words) else None

    def spell(self, word: str) -> str:
        """The attribute in the generic form."""
        if self.spelling == "number":
            return f"{self.number(word)} : i64"
        angle = self.spelling == "angle"
        return f"#pto.{self.name}<{word}>" if angle else f"#pto<{self.name} {word}>"


_QUANT_MODES = """no_convert f32_f16 qf322hif8_pre_vec qf322hif8_pre_scalar qf322hif8_pre_hybrid_vec
 qf322hif8_pre_hybrid_scalar deqs32_int_vec deqs32_int_scalar req8_vec req8_scalar deqf16_vec
 deqf16_scalar qf322fp8_pre_vec qf322fp8_pre_scalar qf322f32_pre_vec qf322f32_pre_scalar f32_bf16
 qf162b8_pre_vec qf162b8_pre_scalar qf162s4_pre_vec qf162s4_pre_scalar req4_vec req4_scalar
 qf322b8_pre_vec qf322b8_pre_scalar qf322s4_pre_vec qf322s4_pre_scalar deqs16_vec deqs16_scalar
 qf162s16_pre_vec qf162s16_pre_scalar qf322f16_pre_vec qf322f16_pre_scalar qf322bf16_pre_vec
 qf322bf16_pre_scalar qs322bf16_pre_vec qs322bf16_pre_scalar"""

_PRECISE = "div exp log recip rem rsqrt sqrt fmod pow"
_ANGLE = {
    "fence_scope": "local_memory gm all",
    "dsb_mem": "ALL DDR UB SEQ",
    "dcci_cache_line": "SINGLE_CACHE_LINE ENTIRE_DATA_CACHE",
    "dcci_dst": "CACHELINE_ALL CACHELINE_UB CACHELINE_OUT CACHELINE_ATOMIC",
    "sync_all_mode": "hard soft",
    "sync_core_type": "aiv_only aic_only mix",
    "address_space": "zero gm mat left right acc vec bias scaling",
    "pipe": " ".join(f"PIPE_{p}" for p in PIPES)
    + " VIRTUAL_PIPE_MTE2_L1A VIRTUAL_PIPE_MTE2_L1B PIPE_NUM",
    "event": " ".join(f"EVENT_ID{i}" for i in range(8)),
    "membar": "VV_ALL VST_VLD VLD_VST VST_VST VS_ALL VST_LD VLD_ST VST_ST SV_ALL ST_VLD LD_VST"
    " ST_VST SS_ALL ST_LD LD_ST ST_ST",
    "layout": "nd dn nz",
    "kernel_kind": "cube vector",
    "padmode": "PadNull PadFirstElem PadValue",
    "acc_to_vec_mode": "single_mode_vec0 single_mode_vec1 dual_mode_split_m dual_mode_split_n",
    "blayout": "row_major col_major",
    "slayout": "none_box row_major col_major",
    "pad_value": "null zero max min",
    "compact_mode": "null normal row_plus_one",
    "signedness": "signed unsigned",
    "l1cache": "uncache cache",
    "st_l2cache": "nmfv nmlv nmprs nmred naci napw napi nared wbhfv wbhlv wbhprs wbhred wtsfv wtslv"
    " wtsprs wtsred",
    "rounding": "r a f c z o h",
    "saturation": "nosat sat",
}
_PLAIN = {
    **{f"{name}_precision": "default high_precision" for name in _PRECISE.split()},
    "scatter_conflict": "default last",
    "print_format": "width8_precision4 width8_precision2 width10_precision6",
    "quant_scale_alg": "ocp nv",
    "mx_group_axis": "axis0 axis1",
    "vec_store_mode": "nd nz",
    "cmp": "eq ne lt le gt ge",
    "round_mode": "NONE RINT ROUND FLOOR CEIL TRUNC ODD CAST_RINT",
    "precision_mode": "DEFAULT HIGH_PRECISION",
    "saturation_mode": "ON OFF",
    "atomic_type": "atomic_none atomic_add atomic_max atomic_min",  # max, min: PTO manual
    "notify_op": "atomic_add set",
    "wait_cmp": "eq ne gt ge lt le",
    "reduce_op": "sum max min",
    "relu_pre_mode": "no_relu normal_relu scalar_relu vector_relu pwl",
    "mad_unit_flag_mode": "check_only check_and_set",
    "tf32_mode": "round_even round_away",
    "mad_sat_mode": "sat nosat",
    "quant_pre_mode": _QUANT_MODES,
    "acc_store_atomic_op": "add max min",
    "acc_store_mode": "nz2nd nz2dn nz2nz",
    "acc_store_ub_dst_mode": "single split_m split_n",
    "acc_store_sat_mode": "sat nosat sat_preserve_nan",
    "cube_load_frac_mode": "nd2nz dn2nz",
    "gather_oob": "undefined clamp wrap zero",
    "scatter_atomic_op": "none add max min",
    "scatter_oob": "undefined skip clamp wrap",
    "quant_type": "INT8_SYM INT8_ASYM MXFP8 MXFP4_E2M1",
    "coalesce": "row elem",
}
_SYNC_OPS = """TLOAD TSTORE_ACC TSTORE_VEC TMOV_M2L TMOV_M2S TMOV_M2B TMOV_M2V TMOV_V2M TMATMUL TVEC
 TVECWAIT_EVENT"""
_OLD_SYNC_OPS = """EVENT_LOAD_FROM_GM EVENT_STORE_FROM_ACC EVENT_STORE_FROM_VEC
 EVENT_MOVE_MAT_TO_LEFT EVENT_MOVE_MAT_TO_SCALAR EVENT_MOVE_MAT_TO_BIAS EVENT_MOVE_MAT_TO_VEC
 EVENT_MOVE_VEC_TO_MAT EVENT_COMPUTE_MATMUL EVENT_COMPUTE_VEC EVENT_VEC_WAITPOINT"""
_PREDICATES = {
    "cmpi_predicate": "eq ne slt sle sgt sge ult ule ugt uge",
    "cmpf_predicate": "false oeq ogt oge olt ole one ord ueq ugt uge ult ule une uno true",
}
_LOAD_CACHE = """nmfv nmlv nmprs nmpref nakeep naclean nadrop idsfv idslv idsprs idspref exfv exlv
 exprs expref"""
_NUMBERED = (
    EnumKind("ld_l2cache", tuple(_LOAD_CACHE.split()), "angle", (*range(7), *range(8, 16))),
    EnumKind("tinsert_mode", ("split2", "split4"), "angle", (2, 3)),
    EnumKind("sync_op_type", tuple(_SYNC_OPS.split()), "angle"),
    EnumKind(  # of two words for one number the later is the one we print
        "pipe_event_type",
        (*_OLD_SYNC_OPS.split(), *_SYNC_OPS.split()),
        "angle",
        (*range(11), *range(11)),
    ),
    EnumKind("st_phase", ("unspecified", "partial", "final"), "plain", (0, 2, 3)),
    EnumKind("acc_phase", ("unspecified", "partial", "final"), "plain", (0, 2, 3)),
    EnumKind("unit_flag_ctrl", ("off", "check_only", "check_and_clear"), "plain", (0, 2, 3)),
    EnumKind(
        "acc_store_atomic_type",
        ("f32", "f16", "s16", "s32", "s8", "bf16"),
        "plain",
        (1, 2, 3, 4, 5, 6),
    ),
    EnumKind(
        "mask_pattern",
        ("P0101", "P1010", "P0001", "P0010", "P0100", "P1000", "P1111"),
        "angle",
        (1, 2, 3, 4, 5, 6, 7),
    ),
)

ENUMS: dict[str, EnumKind] = {
    **{name: EnumKind(name, tuple(words.split()), "angle") for name, words in _ANGLE.items()},
    **{name: EnumKind(name, tuple(words.split()), "plain") for name, words in _PLAIN.items()},
    **{name: EnumKind(name, tuple(words.split()), "number") for name, words in _PREDICATES.items()},
    **{kind.name: kind for kind in _NUMBERED},
}


def kinds_of(kind: str) -> tuple[EnumKind, ...]:
    """The enums an attribute of this kind may be: `a|b` names two; other kinds have none."""
    names = kind.split("|")
    return tuple(ENUMS[name] for name in names) if names[0] in ENUMS else ()
