"""Rules for combining the clauses of a fixpipe copy, and for their types."""

from __future__ import annotations

from dataclasses import replace

from pto.core.memory import Space
from pto.isa.row import types as t
from pto.isa.rules.buffer import complete, multiple_of
from pto.isa.rules.rule import Case, Rule, dtype_in, rule

_FLOATS = ("f16", "bf16", "f32")
_SMALL_INTS = ("i4x2", "i8", "i16")

# Mode without _vec and _scalar: element of L0C, elements it may become. PTO-Gym
# docs/PTO-micro-Instruction-SPEC.md, `pre_quant` mode families. PTOAS's check lacks req4.
_QUANT = {
    "f32_f16": ("f32", "f16"),
    "f32_bf16": ("f32", "bf16"),
    "qf322hif8_pre": ("f32", "hifloat8"),
    "qf322hif8_pre_hybrid": ("f32", "hifloat8"),
    "qf322fp8_pre": ("f32", "f8e4m3 f8e5m2"),
    "qf322f32_pre": ("f32", "f32"),
    "qf322f16_pre": ("f32", "f16"),
    "qf322bf16_pre": ("f32", "bf16"),
    "qf322b8_pre": ("f32", "i8 u8"),
    "qf322s4_pre": ("f32", "i4x2"),
    "qf162b8_pre": ("f32", "i8 u8"),
    "qf162s4_pre": ("f32", "i4x2"),
    "qf162s16_pre": ("i32", "i16"),
    "deqs32_int": ("i32", "i8 u8 i16 i32"),
    "deqs16": ("i32", "i16"),
    "req8": ("i32", "i8 u8"),
    "req4": ("i32", "i4x2"),
    "deqf16": ("i32", "f16"),
    "qs322bf16_pre": ("i32", "bf16"),
}


def _has(case: Case, *names: str) -> bool:
    return any(case.op.group(n) or n in case.op.attrs for n in names)


@rule("PTO-T094", "expects a pre_quant mode of its two types")
def _quant_types(pre_quant_mode: str, source: t.Scalar, destination: t.Scalar) -> str | None:
    mode = pre_quant_mode.removesuffix("_vec").removesuffix("_scalar")
    takes, gives = _QUANT.get(mode, ("", ""))
    fits = takes in source.names and set(gives.split()) & set(destination.names)
    return None if fits else f"{pre_quant_mode} on {source.name} to {destination.name}"


def _is_parameter(type: t.Type | None, vector: bool) -> bool:
    """True for a float, or, if `vector`, for a pointer to floats in the fixpipe buffer."""
    if not vector:
        return isinstance(type, t.Scalar) and type.name in _FLOATS
    if not isinstance(type, t.Ptr) or type.space is not Space.FIXPIPE:
        return False
    return isinstance(type.elem, t.Scalar) and type.elem.name in _FLOATS


def _described(type: t.Type | None) -> str:
    if isinstance(type, t.Ptr):
        elem = type.elem.name if isinstance(type.elem, t.Scalar) else type.elem.kind
        return f"a pointer to {elem} in {type.space.value}"
    return "absent" if type is None else getattr(type, "name", type.kind)


@rule(
    "PTO-T095",
    "expects the payload of pre_quant to be a float, or for a _vec mode a pointer to floats in"
    " fixpipe",
)
def _quant_payload(case: Case) -> str | None:
    mode, type = case.word("pre_quant_mode"), case.type("pre_quant")
    if mode is None and type is None:
        return None
    if mode is None:
        return "no mode is written"
    if _is_parameter(type, mode.endswith("_vec")):
        return None
    return f"with {mode} it is {_described(type)}"


@rule(
    "PTO-T095",
    "expects a payload of pre_relu for scalar_relu (a float) and vector_relu (a pointer to"
    " floats in fixpipe) only",
)
def _relu_payload(case: Case) -> str | None:
    mode, type = case.word("pre_relu_mode"), case.type("pre_relu")
    if mode in ("scalar_relu", "vector_relu"):
        fits = _is_parameter(type, mode == "vector_relu")
        return None if fits else f"with {mode} it is {_described(type)}"
    if mode == "pwl":
        return "pwl is not defined by the ISA"
    return None if type is None else f"{mode or 'no mode'} takes none"


@rule("PTO-T095", "expects clip inside pre_relu: f16 for f16, u16 for u8, i4, i8 or i16 for those")
def _clip_payload(case: Case, clip_value: t.Scalar, destination: t.Scalar) -> str | None:
    """The clip value must be float or integer like the destination; 16 bits for unsigned bytes."""
    if not _has(case, "pre_relu_mode"):
        return "pre_relu is not written"
    allowed: tuple[str, ...] = ()
    if destination.name == "f16":
        allowed = ("f16",)
    elif destination.names == ("u8",):
        allowed = ("u16",)
    elif set(destination.names) & set(_SMALL_INTS):
        allowed = _SMALL_INTS
    fits = set(clip_value.names) & set(allowed)
    return None if fits else f"clip is {clip_value.name}, destination is {destination.name}"


@rule("PTO-S093", "expects a stride with nz2dn and a split with nz2nz only")
def _layout_operand(case: Case) -> str | None:
    """Each layout requires its own operand and excludes the operands of other layouts."""
    mode = case.word("mode") or "no layout"
    if mode == "nz2dn" and not _has(case, "loop0_src_stride"):
        return "nz2dn has no stride"
    if mode != "nz2dn" and _has(case, "loop0_src_stride"):
        return f"{mode} has a stride"
    if mode != "nz2nz" and _has(case, "split"):
        return f"{mode} has a split"
    return None


@rule("PTO-S093", "expects nz2nd or nz2dn where loop3 is written")
def _loop3_layout(case: Case) -> str | None:
    mode = case.word("mode")
    if not _has(case, "loop3_count") or mode in ("nz2nd", "nz2dn"):
        return None
    return f"the layout is {mode or 'not written'}"


@rule("PTO-T094", "expects destination to be f32 with nz2nz")
def _nz2nz_f32(mode: str, destination: t.Scalar) -> str | None:
    fits = mode != "nz2nz" or destination.name == "f32"
    return None if fits else f"it is {destination.name}"


@rule("PTO-S093", "expects nz2dn(1) where unit_flag is written")
def _unit_flag_stride(case: Case) -> str | None:
    flag = case.word("unit_flag")
    if flag in (None, "off") or not _has(case, "loop0_src_stride"):
        return None
    stride = case.number("loop0_src_stride")
    if stride == 1:
        return None
    return f"the stride is {'not a constant' if stride is None else stride}"


_MOST_BITS = 32


@rule(
    "PTO-T094", f"expects a destination of at most {_MOST_BITS} bits, as no conversion makes more"
)
def _narrow(destination: t.Scalar) -> str | None:
    wide = destination.dtype is not None and destination.dtype.bits > _MOST_BITS
    return f"it is {destination.name}" if wide else None


ELEMENTS = (dtype_in("source", "f32 i32"), _narrow)
CLAUSES = (
    _quant_types,
    _quant_payload,
    _relu_payload,
    _clip_payload,
    _layout_operand,
    complete("loop3", "loop3_count", "loop3_src_stride", "loop3_dst_stride"),
    _loop3_layout,
    _nz2nz_f32,
    _unit_flag_stride,
)


@rule("PTO-S090", "expects both type and op in atomic")
def _atomic_pair(case: Case) -> str | None:
    has_type, has_op = _has(case, "atomic_type"), _has(case, "atomic_op")
    return None if has_type == has_op else f"only {'type' if has_type else 'op'} is written"


@rule("PTO-X090", "expects a profile with atomic stores where atomic is written")
def _atomic_profile(case: Case) -> str | None:
    if not _has(case, "atomic_op") or case.profile.supports("atomic_store"):
        return None
    return f"{case.profile.name} has none"


ATOMIC = (_atomic_pair, _atomic_profile)
_TRANSFORMS = ("pre_quant_mode", "pre_relu_mode", "loop3_count")


def _splits(case: Case) -> bool:
    return case.word("dst_mode") in ("split_m", "split_n")


@rule("PTO-S094", "expects a sub-block in dst_mode unless it splits the tile")
def _sub_block(case: Case) -> str | None:
    written = _has(case, "sub_blockid")
    if written != _splits(case):
        return None
    return f"{case.word('dst_mode')} {'names one' if written else 'names none'}"


@rule(
    "PTO-S094",
    "expects no pre_quant, pre_relu, loop3, nz2dn or nz2nz where dst_mode splits the tile",
)
def _plain_split(case: Case) -> str | None:
    if not _splits(case):
        return None
    written = [n.removesuffix("_mode").removesuffix("_count") for n in _TRANSFORMS if _has(case, n)]
    mode = case.word("mode")
    if mode in ("nz2dn", "nz2nz"):
        written.append(mode)
    return f"{', '.join(written)} is written" if written else None


def _only(dst_mode: str, rule: Rule) -> Rule:
    """The rule, for this destination mode."""
    limited = rule.only_if(lambda case: case.word("dst_mode") == dst_mode)
    return replace(limited, id=f"{rule.id}-{dst_mode}", sentence=f"{rule.sentence} with {dst_mode}")


DUAL = (
    _sub_block,
    _plain_split,
    _only("split_m", multiple_of("m", 2)),
    _only("split_n", multiple_of("n", 32)),
)
