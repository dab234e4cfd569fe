"""Enumerated attributes: their words, in one place, and how MLIR spells each kind.

A kind is spelled `#pto.pipe<PIPE_V>` (angle), `#pto<round_mode ROUND>` (plain) or as its number, as
MLIR does for the predicates of arith. A word has the number after it (`split2=2`), or the next one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

PIPES = ("S", "V", "M", "MTE1", "MTE2", "MTE3", "ALL", "MTE4", "MTE5", "V2", "FIX")


Spelling = Literal["angle", "plain", "number"]


@dataclass(frozen=True, slots=True)
class EnumKind:
    name: str
    words: tuple[str, ...]
    spelling: Spelling
    numbers: tuple[int, ...]

    def number(self, word: str) -> int:
        return self.numbers[self.words.index(word)]

    def word(self, number: int) -> str | None:
        """The word for a number, or None; of several words the last."""
        return dict(zip(self.numbers, self.words, strict=True)).get(number)

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

_SYNC_OPS = """TLOAD=0 TSTORE_ACC TSTORE_VEC TMOV_M2L TMOV_M2S TMOV_M2B TMOV_M2V TMOV_V2M TMATMUL
 TVEC TVECWAIT_EVENT"""
_OLD_SYNC_OPS = """EVENT_LOAD_FROM_GM EVENT_STORE_FROM_ACC EVENT_STORE_FROM_VEC
 EVENT_MOVE_MAT_TO_LEFT EVENT_MOVE_MAT_TO_SCALAR EVENT_MOVE_MAT_TO_BIAS EVENT_MOVE_MAT_TO_VEC
 EVENT_MOVE_VEC_TO_MAT EVENT_COMPUTE_MATMUL EVENT_COMPUTE_VEC EVENT_VEC_WAITPOINT"""
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
    "ld_l2cache": "nmfv nmlv nmprs nmpref nakeep naclean nadrop idsfv=8 idslv idsprs idspref exfv"
    " exlv exprs expref",
    "tinsert_mode": "split2=2 split4",
    "sync_op_type": _SYNC_OPS,
    "pipe_event_type": f"{_OLD_SYNC_OPS} {_SYNC_OPS}",  # two words a number
    "mask_pattern": "P0101=1 P1010 P0001 P0010 P0100 P1000 P1111",
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
    "st_phase": "unspecified partial=2 final",
    "acc_phase": "unspecified partial=2 final",
    "unit_flag_ctrl": "off check_only=2 check_and_clear",
    "acc_store_atomic_type": "f32=1 f16 s16 s32 s8 bf16",
}
_PREDICATES = {
    "cmpi_predicate": "eq ne slt sle sgt sge ult ule ugt uge",
    "cmpf_predicate": "false oeq ogt oge olt ole one ord ueq ugt uge ult ule une uno true",
}


def _enum(name: str, text: str, spelling: Spelling) -> EnumKind:
    words, numbers = list[str](), list[int]()
    for entry in text.split():
        word, _, number = entry.partition("=")
        words.append(word)
        numbers.append(int(number) if number else numbers[-1] + 1 if numbers else 0)
    return EnumKind(name, tuple(words), spelling, tuple(numbers))


ENUMS: dict[str, EnumKind] = {
    **{name: _enum(name, words, "angle") for name, words in _ANGLE.items()},
    **{name: _enum(name, words, "plain") for name, words in _PLAIN.items()},
    **{name: _enum(name, words, "number") for name, words in _PREDICATES.items()},
}


def kinds_of(kind: str) -> tuple[EnumKind, ...]:
    """The enums an attribute of this kind may be: `a|b` names two; other kinds have none."""
    names = kind.split("|")
    return tuple(ENUMS[name] for name in names) if names[0] in ENUMS else ()
