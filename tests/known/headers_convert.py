"""TCVT: facts of a2a3/TCvt.hpp and a5/TCvt.hpp."""

from __future__ import annotations

from tests.known.headers import Fact

_CALL = "tcvt vec:16x32x{} -> vec:16x32x{}"
_MODE = _CALL + " {{rmode = #pto<round_mode {}>}}"


def _pair(where: str, profiles: str, wrong: str, right: str) -> Fact:
    source, target = wrong.split()
    says = f"there is no conversion of {source} to {target}"
    return Fact(
        where,
        says,
        profiles,
        _CALL.format(source, target),
        _CALL.format(*right.split()),
        "PTO-T041",
    )


FACTS = [
    _pair("a5/TCvt.hpp", "a5", "i16 i8", "i16 ui8"),
    _pair("a5/TCvt.hpp", "a5", "i32 i8", "i32 ui8"),
    _pair("a5/TCvt.hpp", "a5", "ui32 i8", "ui32 ui8"),
    _pair("a5/TCvt.hpp", "a5", "ui8 i16", "ui8 ui16"),
    _pair("a5/TCvt.hpp", "a5", "i8 ui16", "i8 i16"),
    _pair("a2a3/TCvt.hpp", "a2a3", "i8 i16", "i8 f16"),
    Fact(
        "a2a3/TCvt.hpp:789",
        "i32 to f16 takes no rounding mode",
        "a2a3",
        _MODE.format("i32", "f16", "FLOOR"),
        _MODE.format("i32", "f16", "RINT"),
        "PTO-T046",
        "warning",
    ),
    Fact(
        "a2a3/TCvt.hpp:42-790",
        "CAST_ODD is a case of f32 to f16 alone",
        "a2a3",
        _MODE.format("f32", "bf16", "ODD"),
        _MODE.format("f32", "f16", "ODD"),
        "PTO-T046",
        "warning",
    ),
    Fact(
        "a5/TCvt.hpp:528,1125",
        "f32 is rounded into f8 to nearest even",
        "a5",
        _MODE.format("f32", "f8E4M3FN", "FLOOR"),
        _MODE.format("f32", "f8E4M3FN", "RINT"),
        "PTO-T046",
        "warning",
    ),
    Fact(
        "a5/TCvt.hpp:2828",
        "no saturation is set for hifloat8",
        "a5",
        "tcvt vec:16x32xf32 -> vec:16x32x!pto.hif8 {satmode = #pto<saturation_mode ON>}",
        "tcvt vec:16x32xf32 -> vec:16x32x!pto.hif8 {satmode = #pto<saturation_mode OFF>}",
        "PTO-T046",
        "warning",
    ),
]
