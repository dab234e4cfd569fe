"""The modes of tile conversions: which rounding and saturation a target has for a pair of types."""

from __future__ import annotations

from pto.core.dtypes import HIFLOAT8, DType, pair_rounding
from pto.core.floats import Round, round_mode
from pto.isa.row import types as t
from pto.isa.rules.rule import LIBRARY, Case, rule

Pair = tuple[str, str]

_INTO_F8 = {("f32", "f8e4m3"), ("f32", "f8e5m2")}
_INTO_F4 = {("bf16", "float4_e1m2x2"), ("bf16", "float4_e2m1x2")}
_WORDS = {Round.RINT: "to nearest even", Round.TRUNC: "toward zero"}


def _is_missing(profile: str, pair: Pair, mode: str) -> bool:
    """True if no source has this mode for the pair; the header takes the default of the pair.

    a2a3/TCvt.hpp: CAST_ODD is a case of f32 to f16 alone, and vconv_deq takes no mode. On a5:
    what neither a5/TCvt.hpp nor the vcvt of PTOAS (VPTO.cpp, lookupVcvtContract) has.
    """
    if profile == "cpu":
        return False
    if profile == "a2a3":
        only_nearest, has_odd = pair == ("i32", "f16"), pair == ("f32", "f16")
        return mode != "RINT" if only_nearest else mode == "ODD" and not has_odd
    if pair in _INTO_F8:
        return mode in ("FLOOR", "CEIL", "ODD")
    if pair[1] == "hifloat8":
        return mode not in ("RINT", "ROUND")
    return mode == "ODD" and (pair == ("f32", "f32") or pair in _INTO_F4)


def _is_ignored(profile: str, pair: Pair, mode: str) -> bool:
    """True if a5/TCvt.hpp takes the default of the pair, while PTOAS passes the mode on."""
    if profile != "a5" or _is_missing(profile, pair, mode):
        return False
    if pair in _INTO_F8:
        return mode in ("ROUND", "TRUNC")
    return mode == "ODD" and pair != ("f32", "f16")


def _types(case: Case) -> tuple[DType, DType] | None:
    """The types of src and dst, None if a type has no elements."""
    src, dst = case.elem("src"), case.elem("dst")
    if src is None or dst is None or src.dtype is None or dst.dtype is None:
        return None
    return src.dtype, dst.dtype


def _is_exact(src: DType, dst: DType) -> bool:
    """True if nothing is rounded: every value of src is one of dst, or both are integers."""
    widens = dst.is_float and src.itemsize < dst.itemsize
    return widens or not (src.is_float or dst.is_float)


def _asked(case: Case) -> tuple[Pair, Round] | None:
    """The pair of types and the requested mode; None if the conversion does not round."""
    types, mode = _types(case), round_mode(case.word("rmode") or "RINT")
    if types is None or mode is Round.NONE or _is_exact(*types):
        return None
    return (types[0].name, types[1].name), mode


def rounding(case: Case) -> Round:
    """The mode in which a target rounds; NONE is the default of the pair."""
    types, request = _types(case), _asked(case)
    mode, profile = round_mode(case.word("rmode") or "RINT"), case.profile
    if types is not None and types[1] is HIFLOAT8:  # the hardware has one mode
        return Round.NONE
    if request is not None:
        pair, name = request[0], request[1].name
        by_header = profile.headers and _is_ignored(profile.name, pair, name)
        if by_header or _is_missing(profile.name, pair, name):
            mode = Round.NONE
    same = types is not None and types[0] is types[1]
    return Round.RINT if same and mode is Round.NONE else mode


@rule("PTO-T046", "expects a rounding mode that the pair of types has", severity="warning")
def mode_exists(case: Case) -> str | None:
    """The value is what the header of the chip gives: the default of the pair."""
    request, types = _asked(case), _types(case)
    if request is None or types is None:
        return None
    (src, dst), mode = request
    if not _is_missing(case.profile.name, (src, dst), mode.name):
        return None
    real = pair_rounding(rounding(case), types[0].is_float, types[1])
    return f"{src} to {dst} rounds {_WORDS.get(real, 'to nearest, ties away')}, not by {mode.name}"


@rule(LIBRARY, "expects a rounding mode that the header passes on", severity="warning")
def header_has_mode(case: Case) -> str | None:
    """A run rounds like PTOAS, where vcvt has the mode."""
    request = _asked(case)
    if request is None or not _is_ignored(case.profile.name, request[0], request[1].name):
        return None
    (src, dst), mode = request
    return f"{src} to {dst} takes no {mode.name}"


@rule("PTO-T046", "expects no satmode ON into hifloat8", severity="warning")
def saturates(satmode: str, src: t.Scalar, dst: t.Scalar) -> str | None:
    """a5/TCvt.hpp sets no bit of CTRL for this pair, and PTOAS writes NOSAT."""
    if satmode != "ON" or dst.dtype is not HIFLOAT8:
        return None
    return f"{src.name} to hifloat8 keeps infinities and NaN, and more than 32768 is infinite"
