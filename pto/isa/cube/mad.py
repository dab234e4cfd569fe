"""Matrix products: L0A x L0B to L0C. How tiles get there is in `load.py`."""

from __future__ import annotations

from pto.isa.cube.load import ELSEWHERE
from pto.isa.meaning.cube import mad
from pto.isa.memory.dma import numbers
from pto.isa.row.instr import Attr, Family, Operand, read, update, write
from pto.isa.row.types import Scalar
from pto.isa.rules.buffer import multiple_of, within
from pto.isa.rules.rule import Case, Rule, rule, same_dtype

_SPEC = "PTO-Gym docs/PTO-micro-Instruction-SPEC.md"
_MANUAL = "pto-isa docs/isa/cube/ops/mad"

# Which products exist, as lhs x rhs = dst. a2a3: pto-isa TMatmul.hpp. a5: PTOAS's dispatch of
# MAD and the pairs of fp8 that TMATMUL takes.
_PRODUCTS = {
    "a2a3": "i8 i8 i32, f16 f16 f32, bf16 bf16 f32, f32 f32 f32",
    "a5": "i8 i8 i32, f16 f16 f32, f16 f16 f16, f16 f16 i32, bf16 bf16 f32, f32 f32 f32,"
    " f8e4m3 f8e4m3 f32, f8e4m3 f8e5m2 f32, f8e5m2 f8e4m3 f32, f8e5m2 f8e5m2 f32,"
    " hifloat8 hifloat8 f32, f16 i4x2 f16, f16 i4x2 f32, f16 i8 f16, f16 i8 f32, f16 e8m0 f16,"
    " f16 e8m0 f32",
}


def _elements(case: Case) -> list[Scalar]:
    elems = [case.elem(n) for n in ("lhs", "rhs", "dst")]
    return [e for e in elems if e is not None]


def _combination(profile: str) -> Rule:
    triples = [tuple(t.split()) for t in _PRODUCTS[profile].split(",")]

    def test(case: Case) -> str | None:
        elems = _elements(case)
        for triple in triples:
            if all(name in e.names for name, e in zip(triple, elems, strict=False)):
                return None
        lhs, rhs, dst = (e.name for e in elems)
        return f"{lhs} x {rhs} to {dst} is none"

    sentence = f"expects lhs, rhs and dst of a product that {profile} has"
    return Rule("product-types", "PTO-T092", sentence, test).on(profile)


@rule("PTO-T093", "expects f32 if tf32_mode is written")
def _tf32_f32(case: Case) -> str | None:
    if "tf32_mode" not in case.op.attrs:
        return None
    elems = _elements(case)
    return None if all(e.name == "f32" for e in elems) else _shown(elems)


@rule("PTO-T093", "expects floats if sat or nosat is written")
def _sat_floats(case: Case) -> str | None:
    if "sat_mode" not in case.op.attrs:
        return None
    elems = _elements(case)
    return None if all(e.is_float for e in elems) else _shown(elems)


def _shown(elems: list[Scalar]) -> str:
    return ", ".join(f"{n} is {e.name}" for n, e in zip(("lhs", "rhs", "dst"), elems, strict=False))


_COMBINATION = tuple(_combination(profile) for profile in _PRODUCTS)
_LISTS = tuple(f"lhs, rhs, dst on {profile}: {text}" for profile, text in _PRODUCTS.items())
_SIZES = tuple(within(name, 1, 4095) for name in ("m", "n", "k"))  # fields of 12 bits
_BIAS_TYPE = same_dtype("bias", "dst")

_FP8, _FP4 = ("f8e4m3", "f8e5m2"), ("float4_e1m2x2", "float4_e2m1x2")


@rule("PTO-T063", "expects both operands to be fp8, or both fp4")
def _mx_pair(case: Case) -> str | None:
    elems = [case.elem(name) for name in ("lhs", "rhs")]
    kinds_of = [set(e.names) for e in elems if e is not None]
    if len(kinds_of) < 2 or any(all(f & set(kinds) for f in kinds_of) for kinds in (_FP8, _FP4)):
        return None
    return _shown([e for e in elems if e is not None])


_ATTRS = (
    Attr("unit_flag_mode", "mad_unit_flag_mode", meaning="wait for the tile; set: mark it ready"),
    Attr("disable_gemv", "unit", meaning="m = 1 only: the left tile is laid out as for a matrix"),
    Attr("sat_mode", "mad_sat_mode", meaning="clamp inf, zero NaN; or keep them; else CTRL[48]"),
    Attr("tf32_mode", "tf32_mode", meaning="round f32 inputs to tf32 first"),
    Attr("n_dir", "unit", meaning="produce along n; values do not change"),
)
_PLAIN_ATTRS = tuple(a for a in _ATTRS if a.name != "tf32_mode")

MAD = Family(
    "matrix product",
    "a product of the tiles in L0A and L0B, kept in L0C",
    "cube",
    text="$operands {} : types",
    pipe="M",
    subject="lhs",
    cost="product",
)


def _tiles(dst: Operand, bias: bool) -> tuple[Operand, ...]:
    tiles = (read("lhs", "l0a pointer"), read("rhs", "l0b pointer"), dst)
    return (*tiles, read("bias", "bias pointer")) if bias else tiles


def _text(operands: tuple[Operand, ...], tf32: bool) -> str:
    values = " , ".join(f"${o.name}" for o in operands)
    rounding = "| tf32_mode ( @tf32_mode )" if tf32 else ""
    clauses = f"unit_flag ( @unit_flag_mode ) | &disable_gemv | @sat_mode {rounding} | &n_dir"
    return f"{values} <| {clauses} > {{}} : types"


_SCALES = "the scales are those loaded to the same pointers by mte_l1_l0a_mx, mte_l1_l0b_mx"
# name: meaning, accumulates, has bias, spec line
_SUM = "sum over k of lhs[m,k]*rhs[k,n]"
_MX_SUM = "sum over k of lhs[m,k]*2^(sa[m,k/32]-127) * rhs[k,n]*2^(sb[k/32,n]-127)"
_PRODUCT_ROWS = {
    "mad": (f"dst[m,n] = {_SUM}", False, False, 5704),
    "mad_acc": (f"dst[m,n] += {_SUM}", True, False, 5749),
    "mad_bias": (f"dst[m,n] = {_SUM}, plus bias[n]", False, True, 5777),
    "mad_mx": (f"dst[m,n] = {_MX_SUM}", False, False, 5816),
    "mad_mx_acc": (f"dst[m,n] += {_MX_SUM}", True, False, 5848),
    "mad_mx_bias": (f"dst[m,n] = {_MX_SUM}, plus bias[n]", False, True, 5875),
}
for _name, (_meaning, _adds, _bias, _line) in _PRODUCT_ROWS.items():
    _mx = "_mx" in _name
    _dst = update("dst", "l0c pointer") if _adds else write("dst", "l0c pointer")
    _operands = (*_tiles(_dst, _bias), *numbers("m", "n", "k"))
    _own = (_mx_pair, multiple_of("k", 64).as_warning) if _mx else (*_COMBINATION, _tf32_f32)
    MAD.row(
        _name,
        _meaning,
        body=mad.MAD_BIAS if _bias else mad.MAD_ACC if _adds else mad.MAD,
        operands=_operands,
        attrs=_PLAIN_ATTRS if _mx else _ATTRS,
        text=_text(_operands, tf32=not _mx),
        a5=" ".join((*_FP8, *_FP4)) if _mx else None,
        needs="mx" if _mx else "",
        rules=(*_own, _sat_floats, *_SIZES, *((_BIAS_TYPE,) if _bias else ())),
        notes=(
            *((_SCALES,) if _mx else (*_LISTS, ELSEWHERE)),
            "the sum runs over k in order from 0 in f32, product and sum rounded each; the old"
            " accumulator or the bias is added last",
            "without sat or nosat CTRL[48] decides; a program that never writes CTRL keeps inf"
            " and NaN",
            "clauses are read in any order and printed in the manual's",
        ),
        cite=(f"{_SPEC}:{_line}", f"{_MANUAL}/{_name.replace('_', '-')}.md"),
    )

_WORD = "xt = m | k<<12 | n<<24 | unit flag<<55 | disable_gemv<<61 | bias<<62 | clear first<<63"
for _name, _bias, _mx, _line in (
    ("mad_raw", False, False, 1910),
    ("mad_bias_raw", True, False, 1931),
    ("mad_mx_raw", False, True, 1953),
    ("mad_mx_bias_raw", True, True, 1974),
):
    _operands = (*_tiles(update("dst", "l0c pointer"), _bias), read("xt", "i64"))
    MAD.row(
        _name,
        f"{_name.removesuffix('_raw')} with its sizes in one word: {_WORD}",
        body=mad.MAD_RAW,
        operands=_operands,
        a5=" ".join((*_FP8, *_FP4)) if _mx else None,
        needs="mx" if _mx else "",
        rules=(*((_mx_pair,) if _mx else _COMBINATION), *((_BIAS_TYPE,) if _bias else ())),
        cite=f"PTOAS VPTOOps.td:{_line}",
    )
