"""Logical vectors under another type: converted, or the same bits.

The hardware defines the legal pairs, and which of them round or saturate.
"""

from __future__ import annotations

from pto.isa.meaning.vmi import shape as meaning
from pto.isa.row import types as t
from pto.isa.row.instr import Attr
from pto.isa.rules.rule import Case, rule
from pto.isa.vmi.families import PMODE, TD, family, same_lanes, vector

_CARRIERS = ("bf16x2", "hif8x2", "f4E1M2x2", "f4E2M1x2")  # two values in one element
_TO_SIGNED = {"f32": (32, 16), "f16": (32, 16, 8), "bf16": (32,)}  # bits of the result
_NARROWING = "RAHZ"  # how values may be rounded
_TO_INTEGER = "RAFCZ"  # how values may be rounded
_TO_FP4 = "RAFZC"  # how values may be rounded


def _bits(elem: t.Scalar) -> int:
    return 8 * (elem.itemsize or 0)


def _word(elem: t.Scalar) -> str:
    return elem.name.removeprefix("!pto.")


def _takes(a: t.Scalar, b: t.Scalar) -> tuple[str, bool | None] | None:
    """(allowed roundings, True if a saturation mode is required, None if optional) of a
    conversion; None if there is no such conversion."""
    words = (_word(a), _word(b))
    if any(word in _CARRIERS for word in words):
        if words[0] == "bf16x2" and words[1].startswith("f4"):
            return _TO_FP4, False
        return ("", False) if words[1] == "bf16x2" and words[0].startswith("f4") else None
    if a.is_float and b.is_float:
        if _bits(a) == _bits(b) and words != ("bf16", "f16"):
            return None
        return ("", False) if _bits(a) < _bits(b) else (_NARROWING, True)
    if a.is_float:
        if b.name.startswith("u"):
            return (_TO_INTEGER, True) if words[0] == "f16" and _bits(b) == 8 else None
        if _bits(b) not in _TO_SIGNED.get(words[0], ()):
            return None
        return _TO_INTEGER, (words[0], _bits(b)) != ("f16", 32)
    return "", not b.is_float and _bits(b) < _bits(a)


@rule("PTO-T084", "expects a conversion that exists")
def _logical_pair(source: t.Scalar, result: t.Scalar) -> str | None:
    return None if _takes(source, result) else f"{source.name} becomes {result.name}"


@rule("PTO-T085", "expects the attributes of this conversion")
def _logical_how(case: Case, source: t.Scalar, result: t.Scalar) -> str | None:
    takes = _takes(source, result)
    if takes is None:
        return None
    (roundings, saturates), pair = takes, f"{source.name} to {result.name}"
    rounding, saturate = case.word("rounding"), case.word("saturate")
    if rounding and rounding not in (*roundings,):
        return f"{pair} rounds by {' '.join(roundings) or 'nothing'}, not {rounding}"
    if saturates is not (saturate is not None):
        return f"{pair} {'needs' if saturates else 'takes no'} saturate"
    if saturate == "SAT" and (_word(source), _word(result)) == ("si32", "si8"):
        return f"{pair} cuts, it does not clamp"
    return None


@rule("PTO-T098", "expects types with the sign of the operation")
def _logical_signs(case: Case) -> str | None:
    """Names that say a sign: the types may not say the opposite."""
    wrong = "u" if case.op.row.body is meaning.CONVERT_SIGNED else "s"
    for name in ("source", "result"):
        elem = case.elem(name)
        if elem is not None and elem.name.startswith(wrong):
            return f"{name} is {elem.name}"
    return None


_RULES = (
    same_lanes("source", "result"),
    _logical_pair,
    _logical_how,
)
CONVERT = family(
    "logical conversion",
    "lanes under another type",
    operands=(vector("source"),),
    subject="source",
)
_ROUNDING = Attr("rounding", "str", ("R", "A", "H", "Z", "F", "C", "O"))
_SATURATE = Attr("saturate", "str", ("SAT", "NOSAT"))
for _name, _meaning, _body in (
    ("vcvt", "source converted", meaning.CONVERT),
    ("extsi", "source with its sign extended", meaning.CONVERT_SIGNED),
    ("sitofp", "signed integers as floats", meaning.CONVERT_SIGNED),
    ("fptosi", "floats as signed integers", meaning.CONVERT_SIGNED),
    ("extui", "source with zeros in front", meaning.CONVERT_UNSIGNED),
    ("fptoui", "floats as unsigned integers", meaning.CONVERT_UNSIGNED),
):
    CONVERT.row(
        f"vmi.{_name}",
        _meaning,
        body=_body,
        attrs=(_ROUNDING, _SATURATE, PMODE),
        rules=(*_RULES, *(_logical_signs,) * (_name != "vcvt")),
        aliases="vmi.extf vmi.truncf vmi.trunci" * (_name == "vcvt"),
        notes="signless integers count as unsigned beside integers, as signed beside floats",
        cite=None if _name == "vcvt" else TD,
    )


@rule("PTO-S084", "expects source and result of one size")
def _same_bits(source: t.LogicalVReg, result: t.LogicalVReg) -> str | None:
    before, after = (type.lanes * (type.elem.itemsize or 0) for type in (source, result))
    return None if before == after else f"{before} and {after} bytes"


CONVERT.row(
    "vmi.vinterpret_cast",
    "the same bits as lanes of another type",
    body=meaning.REINTERPRET,
    rules=_same_bits,
    aliases="vmi.bitcast",
)
