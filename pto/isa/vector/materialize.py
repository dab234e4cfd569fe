"""Registers made from a scalar or a lane: broadcast, duplicate, count."""

from __future__ import annotations

from pto.isa.meaning.vector import materialize
from pto.isa.row import types as t
from pto.isa.row.instr import Attr, Result, read
from pto.isa.rules.rule import Case, rule, scalar_matches
from pto.isa.rules.vector import FLOATS, INTEGERS, mask_fits, same_vreg, spec, vector_family, widths

MATERIALIZE = vector_family(
    "materialization",
    "every lane from one value",
    text="$operands {} : types -> results",
    results=(Result("result", "vreg"),),
    types=widths(8, 16, 32),
    subject="result",
    cost="lane",
)


@rule("PTO-T087", "expects position only with a vector")
def _position_of_vector(case: Case) -> str | None:
    if "position" not in case.op.attrs or isinstance(case.type("input"), t.VReg):
        return None
    elem = case.elem("input")
    return f"input is {'a scalar' if elem is None else elem.name}"


MATERIALIZE.row(
    "vbr",
    "result[i] = value; no mask",
    body=materialize.VBR,
    operands=read("value", "element"),
    rules=scalar_matches("value", "result"),
    cite=spec(3103),
)
MATERIALIZE.row(
    "vdup",
    "result[i] = mask[i] ? x : 0; x is the scalar, or lane 0 (LOWEST) or N-1 (HIGHEST) of input",
    body=materialize.VDUP,
    operands=(read("input", "vreg or scalar"), read("mask?", "mask")),
    attrs=Attr(
        "position",
        "str",
        ("LOWEST", "HIGHEST"),
        default="LOWEST",
        renamed=(("POS_LOWEST", "LOWEST"), ("POS_HIGHEST", "HIGHEST")),
        meaning="which lane of a vector input",
    ),
    text="$input <? , $mask > {} : types -> results",
    rules=(
        same_vreg("input", "result"),
        scalar_matches("input", "result"),
        mask_fits("result", "mask"),
        _position_of_vector,
    ),
    notes=(
        "HIGHEST is the last lane of the register, not the last active one",
        "older programs leave the mask out: all lanes",
    ),
    cite=spec(3127),
)
MATERIALIZE.row(
    "vci",
    "result[i] = index + i (ASC) or index - i (DESC); integers wrap",
    body=materialize.VCI,
    operands=read("index", "element"),
    attrs=Attr("order", "str", ("ASC", "DESC"), default="ASC"),
    types=f"{INTEGERS} {FLOATS}",
    rules=scalar_matches("index", "result"),
    notes="the text lists signed integer results, PTOAS takes unsigned ones too",
    cite=spec(4149),
)
