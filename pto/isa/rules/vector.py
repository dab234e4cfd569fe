"""Rules of vector rows: registers, masks and alignment states must match.

Also the element types of a register by width. Rules of a single subfamily are in its file.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Literal, TypedDict

from pto.isa.row import types as t
from pto.isa.row.instr import Family, Result, reads
from pto.isa.rules.rule import Case, Rule, odd_one, rule_of

vector_family = partial(Family, section="vector", pipe="V", scope="vecscope")
predicate_family = partial(vector_family, section="predicate")

STRIDES = reads("block_stride repeat_stride", "i16")  # of blocks of 32 bytes
MOVED_BASE = Result("updated_base", "ub buffer", optional=True)
INTEGERS = "i8 u8 i16 u16 i32 u32"
WORDS = "i32 u32"
HALVES_AND_WORDS = "i16 u16 i32 u32"
FLOATS = "f16 f32"
WIDE_FLOATS = "f16 bf16 f32"

_ELEMENTS = {8: "i8 u8", 16: "i16 u16 f16 bf16", 32: "i32 u32 f32", 64: "i64 u64"}
# PTO manual, Target Profiles: Target Profile Comparison: fp8, hif8_fp4, mx
_A5_BYTES = "f8e4m3 f8e5m2 hifloat8 e8m0 float4_e1m2x2 float4_e2m1x2"
WIDEST_MASK = 32  # there is no b64: 64-bit elements use a b32 mask
LOAD_STATES = ("pto.vldas", "pto.vldus")
STORE_STATES = ("pto.init_align", "pto.pstu", "pto.vstus", "pto.vstur", "pto.vstu")


class Lists(TypedDict):
    """The element types of a row, one list per profile."""

    cpu: str
    a2a3: str
    a5: str


def widths(*bits: int) -> Lists:
    """Every element type of these widths; a5 has additional 8-bit formats."""
    everywhere = " ".join(_ELEMENTS[b] for b in bits)
    on_a5 = f"{everywhere} {_A5_BYTES}" if 8 in bits else everywhere
    return Lists(cpu=everywhere, a2a3=everywhere, a5=on_a5)


def spec(line: int) -> str:
    """A citation of the micro-instruction specification."""
    return f"PTO-Gym docs/PTO-micro-Instruction-SPEC.md:{line}"


def page(path: str) -> str:
    """A citation of an instruction's page in the manual."""
    return f"pto-isa docs/isa/{path}.md"


def bits_of(case: Case, name: str) -> int | None:
    """The width of one element of an operand or result."""
    elem = case.elem(name)
    return None if elem is None or elem.itemsize is None else 8 * elem.itemsize


def shown(type: t.VReg | t.LogicalVReg) -> str:
    return f"{type.lanes}x{type.elem.name}"


@rule_of("PTO-T080", "expects {names} to have one vector type")
def same_vreg(case: Case, *names: str) -> str | None:
    """Equal register types, including signs: `i16` needs a vbitcast to `ui16`, as in PTOAS."""
    types = [(n, case.type(n)) for n in names]
    return odd_one([(n, x) for n, x in types if isinstance(x, t.VReg | t.LogicalVReg)], shown)


@rule_of("PTO-T080", "expects {names} to have one vector type", id="same-lanes")
def same_lane_type(case: Case, *names: str) -> str | None:
    """As `same_vreg`, but a signless integer matches any integer of its width."""
    types = [(n, case.type(n)) for n in names]
    registers = [(n, x) for n, x in types if isinstance(x, t.LogicalVReg)]
    return odd_one(
        registers, shown, lambda a, b: a.lanes == b.lanes and set(a.elem.names) & set(b.elem.names)
    )


@rule_of("PTO-S080", "expects {index} to have as many lanes as {data}")
def same_lanes(case: Case, index: str, data: str) -> str | None:
    """Registers are 256 bytes, so the lane count also fixes the width of the elements."""
    types = [(n, x) for n in (index, data) if isinstance(x := case.type(n), t.VReg)]
    return odd_one(types, shown, lambda a, b: a.lanes == b.lanes)


def _granularity(case: Case, name: str) -> int | None:
    """The granularity of a mask; None if not written, which matches all."""
    type = case.type(name)
    return type.granularity if isinstance(type, t.Mask) else None


@rule_of("PTO-T081", "expects {masks} to have the granularity of {register}'s elements")
def mask_fits(case: Case, register: str, *masks: str) -> str | None:
    """b8, b16, b32 for elements of 1, 2 and 4 or 8 bytes."""
    bits = bits_of(case, register)
    for name in masks:
        actual = _granularity(case, name)
        if bits is not None and actual not in (None, min(bits, WIDEST_MASK)):
            return f"{name} is b{actual}, {register} has {bits}-bit elements"
    return None


@rule_of("PTO-T081", "expects {masks} to be b{bits}")
def mask_is(case: Case, bits: int, *masks: str) -> str | None:
    for name in masks:
        actual = _granularity(case, name)
        if actual not in (None, bits):
            return f"{name} is b{actual}"
    return None


@rule_of("PTO-T081", "expects {masks} to have one granularity")
def same_mask(case: Case, *masks: str) -> str | None:
    granularities = [(n, g) for n in masks if (g := _granularity(case, n)) is not None]
    for name, actual in granularities[1:]:
        first_name, first = granularities[0]
        if actual != first:
            return f"{first_name} is b{first}, {name} is b{actual}"
    return None


@rule_of(
    "PTO-T081",
    "expects result to keep the granularity of input or {step} it by one step",
    id="mask-{step}s",
)
def mask_steps(case: Case, step: Literal["narrow", "widen"]) -> str | None:
    """The granularity stays or changes by one step: b32 <-> b16 <-> b8."""
    a, b = _granularity(case, "input"), _granularity(case, "result")
    if a is None or b is None or a == b or (a == 2 * b if step == "narrow" else b == 2 * a):
        return None
    return f"input is b{a}, result is b{b}"


@rule_of("PTO-T086", "expects dist to suit the element width of {register}")
def dist_width(case: Case, register: str, dists: Mapping[str, tuple[int, ...]]) -> str | None:
    """A distribution works on items of its own width; where the manual ties it to T, T must fit."""
    dist, bits = case.word("dist"), bits_of(case, register)
    allowed = dists.get(dist or "")
    if allowed is None or bits is None or bits in allowed:
        return None
    return f"dist is {dist}, {register} has {bits}-bit elements"


@rule_of("PTO-T088", "expects {updated} to have the type of {base}")
def same_base(case: Case, updated: str, base: str) -> str | None:
    a, b = case.type(updated), case.type(base)
    if a is None or b is None or a == b:
        return None
    return f"{updated} is a {_pointer(a)}, {base} a {_pointer(b)}"


def _pointer(type: t.Type) -> str:
    if isinstance(type, t.Ptr) and isinstance(type.elem, t.Scalar):
        return f"{type.kind} to {type.elem.name} in {type.space.value}"
    return type.kind


def state_from(name: str, side: str) -> Rule:
    """Load streams must begin with vldas, store streams with init_align; states do not mix."""
    wrong = STORE_STATES if side == "load" else LOAD_STATES
    start = "pto.vldas" if side == "load" else "pto.init_align"

    def test(case: Case) -> str | None:
        maker = case.maker(name)
        return f"it comes from {maker.name}" if maker and maker.name in wrong else None

    sentence = f"expects {name} to come from {start} or an earlier {side} of the stream"
    return Rule(f"{side}-state", "PTO-M081", sentence, test)
