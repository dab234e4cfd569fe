"""Scalar arithmetic around PTO instructions: the arith dialect. Its meaning is MLIR's."""

from __future__ import annotations

from pto.isa.meaning.scalar.arith import SCALAR
from pto.isa.row import types as t
from pto.isa.row.attributes import Float, Int
from pto.isa.row.instr import Attr, Family, Instr, Result, read
from pto.isa.row.traits import NONE, Traits, operators
from pto.isa.rules.rule import Case, rule, rule_of, warn

_OVERFLOW = (Attr("overflowFlags", "arith.overflow", meaning="nsw, nuw: it does not wrap"),)
_FASTMATH = (Attr("fastmath", "arith.fastmath", meaning="liberties the compiler has; unused"),)
_SAME = (Result("result", "number", "same"),)
_INTEGERS = (read("lhs", "integers"), read("rhs", "integers"))
_FLOATS = (read("lhs", "floats"), read("rhs", "floats"))
ARITH = Family(
    "arith",
    "scalar arithmetic on the scalar unit",
    "shared",
    results=_SAME,
    text="$operands {} : types to results",
    dialect="arith.",
    pipe="S",
    subject="result",
    traits=Traits(pure=True),
    cite="MLIR language reference",
    cost="alu",
)

_PYTHON = {
    **operators("addi + subi - muli * andi & ori | xori ^ shli << cmpi compare select select"),
    **operators("addf + subf - mulf * divf / minimumf min maximumf max cmpf compare"),
    **operators("floordivsi // ceildivsi cdiv shrsi >> minsi min maxsi max", signed=True),
    **operators("divsi quot remsi rem", signed=True),
    **operators("divui // remui rem ceildivui cdiv shrui >> minui min maxui max", signed=False),
    **operators("index_cast index trunci cast extf cast truncf cast bitcast bitcast"),
    **operators("extsi cast sitofp cast fptosi cast", signed=True),
    **operators("extui cast uitofp cast fptoui cast", signed=False),
}
_SAME_NUMBER = Traits(same_number=True)
# How C++ writes them: `u_` reads an operand as unsigned, {T} is the type of the result.
_CXX = {
    "addi": "{lhs} + {rhs}",
    "subi": "{lhs} - {rhs}",
    "muli": "{lhs} * {rhs}",
    "divsi": "{lhs} / {rhs}",
    "divui": "{u_lhs} / {u_rhs}",
    "ceildivsi": "{lhs} / {rhs} + ({lhs} % {rhs} != 0 && ({lhs} < 0) == ({rhs} < 0))",
    "ceildivui": "{u_lhs} / {u_rhs} + ({u_lhs} % {u_rhs} != 0)",
    "floordivsi": "{lhs} / {rhs} - ({lhs} % {rhs} != 0 && ({lhs} < 0) != ({rhs} < 0))",
    "remsi": "{lhs} % {rhs}",
    "remui": "{u_lhs} % {u_rhs}",
    "andi": "{lhs} & {rhs}",
    "ori": "{lhs} | {rhs}",
    "xori": "{lhs} ^ {rhs}",
    "shli": "{lhs} << {rhs}",
    "shrsi": "{lhs} >> {rhs}",
    "shrui": "{u_lhs} >> {rhs}",
    "maxsi": "{lhs} > {rhs} ? {lhs} : {rhs}",
    "maxui": "{u_lhs} > {u_rhs} ? {lhs} : {rhs}",
    "minsi": "{lhs} < {rhs} ? {lhs} : {rhs}",
    "minui": "{u_lhs} < {u_rhs} ? {lhs} : {rhs}",
    "addf": "{lhs} + {rhs}",
    "subf": "{lhs} - {rhs}",
    "mulf": "{lhs} * {rhs}",
    "divf": "{lhs} / {rhs}",
    "maximumf": "{lhs} != {lhs} || {lhs} > {rhs} ? {lhs} : {rhs}",
    "minimumf": "{lhs} != {lhs} || {lhs} < {rhs} ? {lhs} : {rhs}",
    "maxnumf": "{rhs} != {rhs} || {lhs} > {rhs} ? {lhs} : {rhs}",
    "minnumf": "{rhs} != {rhs} || {lhs} < {rhs} ? {lhs} : {rhs}",
    "extui": "{u_in}",
    "index_castui": "{u_in}",
    "uitofp": "{u_in}",
    "bitcast": "- C++ of the chip has no cast of bits",
}
_SIGNS = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}


def _compared(plain: str, unsigned: str = "") -> str:
    """How C++ writes a comparison, for each predicate that it has an operator for."""
    words = [(word, "") for word in plain.split()] + [(word, "u_") for word in unsigned.split()]
    cases = [f"{w}: {{{u}lhs}} {_SIGNS[w[-2:]]} {{{u}rhs}}" for w, u in words]
    return f"= [predicate] {' | '.join(cases)}"


def _cxx(name: str) -> str:
    form = _CXX.get(name, "- C++ has no operator for it")
    return form if form.startswith("-") else f"= {form}"


@rule_of("PTO-T077", "expects one type for {names}")
def _one_type(case: Case, *names: str) -> str | None:
    first = case.type(names[0])
    other = next((n for n in names[1:] if case.type(n) != first), None)
    return None if other is None else f"{names[0]} and {other} differ"


def _bits(type: t.Type | None) -> int:
    """The width of a lane; index counts as 64 bits."""
    elem = type.elem if isinstance(type, t.Vector) else type
    dtype = elem.dtype if isinstance(elem, t.Scalar) else None
    return dtype.bits if dtype is not None else 64


@rule("PTO-T078", "expects a wider result")
def _wider(case: Case) -> str | None:
    before, after = map(_bits, _sides(case))
    return None if after > before else f"{before} bits become {after}"


@rule("PTO-T078", "expects a narrower result")
def _narrower(case: Case) -> str | None:
    before, after = map(_bits, _sides(case))
    return None if after < before else f"{before} bits become {after}"


@rule("PTO-T078", "expects a result of the same width")
def _as_wide(case: Case) -> str | None:
    before, after = map(_bits, _sides(case))
    return None if after == before else f"{before} bits become {after}"


@rule("PTO-T078", "expects a result of the same shape")
def _same_shape(case: Case) -> str | None:
    shapes = [type.shape if isinstance(type, t.Vector) else () for type in _sides(case)]
    told = " and ".join("x".join(map(str, shape)) or "one number" for shape in shapes)
    return None if shapes[0] == shapes[1] else told


def _sides(case: Case) -> tuple[t.Type | None, t.Type | None]:
    return case.type("in"), case.type("out")


@rule("PTO-T078", "expects an index on one side")
def _index_cast(case: Case) -> str | None:
    count = sum(isinstance(s, t.Scalar) and s.is_index for s in _sides(case))
    return None if count == 1 else "both are" if count else "neither is"


@rule("PTO-T079", "expects a value in the range of its type")
def _constant_fits(case: Case) -> str | None:
    """Of integers; a vector's element counts."""
    value, type = case.op.attrs.get("value"), case.type("result")
    elem = type.elem if isinstance(type, t.Vector) else type
    if not isinstance(elem, t.Scalar) or elem.is_float:
        return None
    if isinstance(value, Float) and not value.text.lower().lstrip("-").startswith("0x"):
        return f"{value.text} is not an integer"
    if not isinstance(value, Int):
        return None
    low, high = elem.written
    return None if low <= value.value <= high else f"{value.value} is not in {low}..{high}"


@rule("PTO-T079", "expects a value in the range of its type")
def _finite(case: Case) -> str | None:
    value, type = case.op.attrs.get("value"), case.type("result")
    if not isinstance(value, Float) or not isinstance(type, t.Scalar) or type.dtype is None:
        return None
    if not type.is_float or value.text.lower().lstrip("-").startswith("0x"):
        return None
    largest = type.dtype.max
    return None if abs(float(value.text)) <= largest else f"{value.text} is beyond {largest}"


_IS_FINITE = warn(_finite)

CONSTANT = ARITH.row(
    "constant",
    "a compile-time number",
    body=SCALAR["arith.constant"],
    traits=Traits(constant=True),
    results=Result("result", "number"),
    attrs=Attr("value", "any", required=True),
    text="=constant",
    rules=(_constant_fits, _IS_FINITE),
)
_WRAPPING = ("addi", "subi", "muli", "shli")
_WHOLE: dict[str, Instr] = {}  # what takes two integers
for _name, _meaning in {
    "addi": "lhs + rhs, wrapping",
    "subi": "lhs - rhs, wrapping",
    "muli": "lhs * rhs, wrapping",
    "divsi": "signed division toward zero",
    "divui": "unsigned division",
    "ceildivsi": "signed division toward plus infinity",
    "ceildivui": "unsigned division rounded up",
    "floordivsi": "signed division toward minus infinity",
    "remsi": "signed remainder, sign of lhs",
    "remui": "unsigned remainder",
    "andi": "bitwise and",
    "ori": "bitwise or",
    "xori": "bitwise exclusive or",
    "shli": "shift left",
    "shrsi": "arithmetic shift right",
    "shrui": "logical shift right",
    "maxsi": "signed maximum",
    "maxui": "unsigned maximum",
    "minsi": "signed minimum",
    "minui": "unsigned minimum",
}.items():
    _WHOLE[_name] = ARITH.row(
        _name,
        _meaning,
        body=SCALAR[f"arith.{_name}"],
        traits=_PYTHON.get(_name),
        operands=_INTEGERS,
        attrs=_OVERFLOW if _name in _WRAPPING else (),
        text="$lhs , $rhs <? overflow @overflowFlags > {} : type"
        if _name in _WRAPPING
        else "$lhs , $rhs {} : type",
        rules=_one_type("lhs", "rhs"),
        cxx=_cxx(_name),
    )
ADDI, SUBI, MULI, XORI = (_WHOLE[n] for n in ("addi", "subi", "muli", "xori"))
FLOORDIVSI, CEILDIVSI = _WHOLE["floordivsi"], _WHOLE["ceildivsi"]
MINSI, MAXSI = _WHOLE["minsi"], _WHOLE["maxsi"]
for _name, _meaning in {
    "addf": "lhs + rhs",
    "subf": "lhs - rhs",
    "mulf": "lhs * rhs",
    "divf": "lhs / rhs",
    "remf": "remainder of lhs / rhs",
    "maximumf": "maximum, NaN wins",
    "minimumf": "minimum, NaN wins",
    "maxnumf": "maximum, a number wins over NaN",
    "minnumf": "minimum, a number wins over NaN",
}.items():
    ARITH.row(
        _name,
        _meaning,
        body=SCALAR[f"arith.{_name}"],
        traits=_PYTHON.get(_name),
        operands=_FLOATS,
        attrs=_FASTMATH,
        text="$lhs , $rhs <? fastmath @fastmath > {} : type",
        rules=_one_type("lhs", "rhs"),
        cxx=_cxx(_name),
    )
ARITH.row(
    "negf",
    "-operand",
    body=SCALAR["arith.negf"],
    operands=read("operand", "floats"),
    attrs=_FASTMATH,
    text="$operand <? fastmath @fastmath > {} : type",
    cxx="= -{operand}",
)
CMPI = ARITH.row(
    "cmpi",
    "compare two integers",
    body=SCALAR["arith.cmpi"],
    traits=_PYTHON["cmpi"],
    operands=_INTEGERS,
    results=Result("result", "i1", "i1"),
    attrs=Attr("predicate", "cmpi_predicate", required=True),
    text="@predicate , $lhs , $rhs {} : type",
    rules=_one_type("lhs", "rhs"),
    cxx=_compared("eq ne slt sle sgt sge", "ult ule ugt uge"),
)
ARITH.row(
    "cmpf",
    "compare two floats; ordered predicates fail on NaN, unordered ones hold",
    body=SCALAR["arith.cmpf"],
    traits=_PYTHON["cmpf"],
    operands=_FLOATS,
    results=Result("result", "i1", "i1"),
    attrs=(Attr("predicate", "cmpf_predicate", required=True), *_FASTMATH),
    text="@predicate , $lhs , $rhs <? fastmath @fastmath > {} : type",
    rules=_one_type("lhs", "rhs"),
    cxx=_compared("oeq olt ole ogt oge une"),
)
for _name, _meaning, _results, _text in (
    ("addui_extended", "lhs + rhs, and whether it wrapped", ("sum", "overflow"), "results"),
    ("mulsi_extended", "low and high half of the signed product", ("low", "high"), "type"),
    ("mului_extended", "low and high half of the unsigned product", ("low", "high"), "type"),
):
    ARITH.row(
        _name,
        _meaning,
        body=SCALAR[f"arith.{_name}"],
        operands=_INTEGERS,
        results=tuple(
            Result(n, "i1" if n == "overflow" else "integers", "same" * (_text == "type"))
            for n in _results
        ),
        text=f"$lhs , $rhs {{}} : {_text}",
        rules=_one_type("lhs", "rhs", _results[0]),
    )
ARITH.row(
    "select",
    "condition ? true_value : false_value",
    body=SCALAR["arith.select"],
    traits=_PYTHON["select"],
    operands=(read("condition", "i1"), read("true_value", "any"), read("false_value", "any")),
    results=Result("result", "any"),
    text="=select",
    rules=_one_type("result", "true_value", "false_value"),
    cxx="= {condition} ? {true_value} : {false_value}",
)
_CASTS = dict[str, Instr]()
_KEEPS = ("index_cast", "index_castui", "extsi")
for _name, (_meaning, _in, _out, _rules) in {
    "index_cast": (
        "integer <-> index, sign extended",
        "integers",
        "integers",
        (_index_cast,),
    ),
    "index_castui": (
        "integer <-> index, zero extended",
        "integers",
        "integers",
        (_index_cast,),
    ),
    "extsi": ("sign extension", "integers", "integers", (_wider,)),
    "extui": ("zero extension", "integers", "integers", (_wider,)),
    "trunci": ("low bits", "integers", "integers", (_narrower,)),
    "extf": ("widen a float", "floats", "floats", (_wider,)),
    "truncf": ("narrow a float, nearest even", "floats", "floats", (_narrower,)),
    "sitofp": ("signed integer to float", "integers", "floats", ()),
    "uitofp": ("unsigned integer to float", "integers", "floats", ()),
    "fptosi": ("float to signed integer, toward zero", "floats", "integers", ()),
    "fptoui": ("float to unsigned integer, toward zero", "floats", "integers", ()),
    "bitcast": ("same bits, other type", "number", "number", (_as_wide,)),
}.items():
    _CASTS[_name] = ARITH.row(
        _name,
        _meaning,
        body=SCALAR[f"arith.{_name}"],
        traits=(_SAME_NUMBER if _name in _KEEPS else NONE).joined(_PYTHON.get(_name)),
        operands=read("in", _in),
        results=Result("out", _out),
        rules=(_same_shape, *_rules),
        cxx=_cxx(_name) if _name in _CXX else "= {in}",
    )
INDEX_CAST = _CASTS["index_cast"]
