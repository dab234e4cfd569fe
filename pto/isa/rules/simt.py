"""Rules of SIMT rows: values that may come in pairs, signs, launches, slots, conversions."""

from __future__ import annotations

import math
from dataclasses import replace

from pto.isa.row import types as t
from pto.isa.rules.rule import Case, Rule, odd_one, rule, rule_of

MAX_ITEMS = 2048  # work items in a launch
SLOTS = 123  # 32-bit words that outlive an entry


def _names(type: t.Type | None) -> tuple[str, ...]:
    """Possible element type names of a value; `vector<2xf16>` is f16x2."""
    if isinstance(type, t.Vector) and type.shape == (2,):
        return tuple(f"{name}x2" for name in type.elem.names)
    return type.names if isinstance(type, t.Scalar) else ()


def _shown(type: t.Type | None) -> str:
    names = _names(type)
    return names[0] if names else "absent" if type is None else type.kind


def _is_pack(type: t.Type) -> bool:
    """fp8 elements that fill one word of 32 or 64 bits."""
    eight = isinstance(type, t.Vector) and bool({"f8e4m3", "f8e5m2"} & set(type.elem.names))
    return isinstance(type, t.Vector) and eight and type.shape in ((4,), (8,))


def value_in(name: str, allowed: str) -> Rule:
    words = tuple(allowed.split())

    def test(case: Case) -> str | None:
        type = case.type(name)
        return None if type is None or set(_names(type)) & set(words) else f"it is {_shown(type)}"

    sentence = (
        f"expects {name} to be {' or '.join(filter(None, (', '.join(words[:-1]), words[-1])))}"
    )
    return Rule("value-in", "PTO-T096", sentence, test)


@rule_of("PTO-T097", "expects {names} to have one type")
def same_type(case: Case, *names: str) -> str | None:
    return odd_one([(n, case.type(n)) for n in names], _shown)


@rule("PTO-T097", "expects value to have the element type of ptr")
def element_of(value: t.Type, ptr: t.Ptr | t.MemRef) -> str | None:
    fits = set(_names(value)) & set(_names(ptr.elem)) or (value == ptr.elem and _is_pack(value))
    return None if fits else f"value is {_shown(value)}, ptr holds {_shown(ptr.elem)}"


def _is_integer(type: t.Type | None) -> bool:
    return isinstance(type, t.Scalar) and type.is_integer


@rule("PTO-T098", "expects an integer value if signed or unsigned is written", id="float-sign")
def float_has_no_sign(case: Case) -> str | None:
    if "signedness" not in case.op.attrs or _is_integer(case.type("value")):
        return None
    return f"it is {_shown(case.type('value'))}"


@rule("PTO-T098", "expects signed or unsigned for an integer value", id="int-sign")
def int_needs_sign(case: Case) -> str | None:
    if "signedness" in case.op.attrs or not _is_integer(case.type("value")):
        return None
    return "neither is written"


@rule("PTO-M090", "expects 64-bit atomics in global memory", id="wide-atomic")
def no_wide_ub(case: Case) -> str | None:
    ptr, value = case.type("ptr"), case.type("value")
    wide = isinstance(value, t.Scalar) and value.dtype is not None and value.dtype.bits == 64
    if not wide or not isinstance(ptr, t.Ptr) or ptr.space.value != "ub":
        return None
    return f"{_shown(value)} is in ub"


@rule("PTO-S095", f"expects a launch of 1 to {MAX_ITEMS} work items")
def launch_size(case: Case) -> str | None:
    """The sizes are operands, or attributes of a section."""
    sizes = [case.number(n) for n in ("dimX", "dimY", "dimZ")]
    static = [n for n in sizes if n is not None]
    bad = any(n < 1 for n in static) or math.prod(static) > MAX_ITEMS
    return f"it is {' x '.join('?' if n is None else str(n) for n in sizes)}" if bad else None


section_size = replace(launch_size, id="section-size")


def slot_words(type: t.Type) -> int:
    """How many 32-bit words a kept value takes."""
    bits = type.dtype.bits if isinstance(type, t.Scalar) and type.dtype else 32
    return 2 if bits > 32 else 1


@rule_of(
    "PTO-S096",
    f"expects slot to be from 0 to {SLOTS - 1}, and even with room for two for 64-bit values",
    id="slot",
)
def slot_fits(case: Case, value: str) -> str | None:
    slot, type = case.number("slot"), case.type(value)
    if slot is None or type is None:
        return None
    words = slot_words(type)
    fits = 0 <= slot <= SLOTS - words and slot % words == 0
    return None if fits else f"slot is {slot} for {_shown(type)}"


# ---- conversions: source, its destinations, the roundings. PTOAS, verifyConvertControls

_ALL = "rafcz"
_CONVERSIONS = (
    ("i32", "f32 f16 bf16", _ALL),
    ("i64", "f32", _ALL),
    ("f32", "i32 i64 bf16 f32", _ALL),
    ("f32", "f16", _ALL + "o"),
    ("f16 bf16", "i32 f32 f16 bf16", _ALL),
    ("f32x2", "f16x2", _ALL + "o"),
    ("f32x2", "bf16x2", _ALL),
    ("f16x2 bf16x2", "f32x2", _ALL),
    ("f32x2", "f8e4m3x2 f8e5m2x2", "r"),
    ("f32x2 f16x2", "hifloat8x2", "ah"),
    ("f8e4m3x2 f8e5m2x2 hifloat8x2", "f32x2 f16x2", _ALL),
    ("bf16x2", "float4_e1m2x2 float4_e2m1x2", _ALL),
    ("float4_e1m2x2 float4_e2m1x2", "bf16x2", _ALL),
)
_ROUNDINGS = {
    (a, b): words
    for sources, dests, words in _CONVERSIONS
    for a in sources.split()
    for b in dests.split()
}


def _pair(case: Case) -> tuple[str, str]:
    return _shown(case.type("src")), _shown(case.type("dst"))


@rule("PTO-T099", "expects a conversion that exists")
def _convert_pair(case: Case) -> str | None:
    pair = _pair(case)
    return None if pair in _ROUNDINGS else f"it is {pair[0]} to {pair[1]}"


@rule("PTO-T099", "expects a rounding mode of this conversion")
def _convert_rounding(case: Case, rounding: str) -> str | None:
    words = _ROUNDINGS.get(_pair(case))
    if words is None or rounding in words:
        return None
    return f"{' to '.join(_pair(case))} takes {' '.join(words)}, it is {rounding}"


@rule("PTO-T099", "expects sat for a conversion from float to integer")
def _convert_sat(case: Case) -> str | None:
    if not _is_integer(case.type("dst")) or case.word("saturation") == "sat":
        return None
    return f"{' to '.join(_pair(case))} is nosat"


@rule("PTO-T098", "expects signed or unsigned if, and only if, one type is an integer")
def _convert_sign(case: Case) -> str | None:
    needed = _is_integer(case.type("src")) or _is_integer(case.type("dst"))
    written = "signedness" in case.op.attrs
    if needed == written:
        return None
    return f"{' to '.join(_pair(case))} {'has a sign' if written else 'has none'}"


CONVERT = (
    _convert_pair,
    _convert_rounding,
    _convert_sat,
    _convert_sign,
)
