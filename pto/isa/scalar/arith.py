"""Scalar arithmetic around PTO instructions: the arith dialect. Its meaning is MLIR's."""

from __future__ import annotations

from collections.abc import Callable
from operator import eq, gt, lt

from pto.isa.meaning.scalar.arith import SCALAR
from pto.isa.row import types as t
from pto.isa.row.attributes import Float, Int
from pto.isa.row.instr import Attr, Family, Instr, Result, read
from pto.isa.row.traits import NONE, Traits
from pto.isa.rules.rule import Case, Rule, rule, rule_of

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

_SAME_NUMBER = Traits(same_number=True)
_SIGNS = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}


def _compared(plain: str, unsigned: str = "") -> str:
    """How C++ writes a comparison, for each predicate that it has an operator for."""
    words = [(word, "") for word in plain.split()] + [(word, "u_") for word in unsigned.split()]
    cases = [f"{w}: {{{u}lhs}} {_SIGNS[w[-2:]]} {{{u}rhs}}" for w, u in words]
    return f"= [predicate] {' | '.join(cases)}"


def _python(name: str, operator: str) -> Traits | None:
    """Integers are signed for `divsi`, `sitofp` and `index_cast`, unsigned for `divui`, `uitofp`
    and `index_castui`."""
    is_signed = "si" in name or name == "index_cast"
    signed = True if is_signed else False if "ui" in name else None
    return Traits(operator=operator, signed=signed) if operator else None


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


def _width(id: str, result: str, fits: Callable[[int, int], bool]) -> Rule:
    def test(case: Case) -> str | None:
        before, after = map(_bits, _sides(case))
        return None if fits(after, before) else f"{before} bits become {after}"

    return Rule(id, "PTO-T078", f"expects a {result}", test)


_wider, _narrower = _width("wider", "wider result", gt), _width("narrower", "narrower result", lt)
_as_wide = _width("as-wide", "result of the same width", eq)


@rule("PTO-T078", "expects a result of the same shape")
def _same_shape(case: Case) -> str | None:
    shapes = [type.shape if isinstance(type, t.Vector) else () for type in _sides(case)]
    listed = " and ".join("x".join(map(str, shape)) or "one number" for shape in shapes)
    return None if shapes[0] == shapes[1] else listed


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


_IS_FINITE = _finite.as_warning

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
# name: meaning, how C++ writes it (`u_` reads an operand as unsigned), Python operator or function
for _name, (_meaning, _cxx, _operator) in {
    "addi": ("lhs + rhs, wrapping", "{lhs} + {rhs}", "+"),
    "subi": ("lhs - rhs, wrapping", "{lhs} - {rhs}", "-"),
    "muli": ("lhs * rhs, wrapping", "{lhs} * {rhs}", "*"),
    "divsi": ("signed division toward zero", "{lhs} / {rhs}", "quot"),
    "divui": ("unsigned division", "{u_lhs} / {u_rhs}", "//"),
    "ceildivsi": (
        "signed division toward plus infinity",
        "{lhs} / {rhs} + ({lhs} % {rhs} != 0 && ({lhs} < 0) == ({rhs} < 0))",
        "cdiv",
    ),
    "ceildivui": (
        "unsigned division rounded up",
        "{u_lhs} / {u_rhs} + ({u_lhs} % {u_rhs} != 0)",
        "cdiv",
    ),
    "floordivsi": (
        "signed division toward minus infinity",
        "{lhs} / {rhs} - ({lhs} % {rhs} != 0 && ({lhs} < 0) != ({rhs} < 0))",
        "//",
    ),
    "remsi": ("signed remainder, sign of lhs", "{lhs} % {rhs}", "rem"),
    "remui": ("unsigned remainder", "{u_lhs} % {u_rhs}", "rem"),
    "andi": ("bitwise and", "{lhs} & {rhs}", "&"),
    "ori": ("bitwise or", "{lhs} | {rhs}", "|"),
    "xori": ("bitwise exclusive or", "{lhs} ^ {rhs}", "^"),
    "shli": ("shift left", "{lhs} << {rhs}", "<<"),
    "shrsi": ("arithmetic shift right", "{lhs} >> {rhs}", ">>"),
    "shrui": ("logical shift right", "{u_lhs} >> {rhs}", ">>"),
    "maxsi": ("signed maximum", "{lhs} > {rhs} ? {lhs} : {rhs}", "max"),
    "maxui": ("unsigned maximum", "{u_lhs} > {u_rhs} ? {lhs} : {rhs}", "max"),
    "minsi": ("signed minimum", "{lhs} < {rhs} ? {lhs} : {rhs}", "min"),
    "minui": ("unsigned minimum", "{u_lhs} < {u_rhs} ? {lhs} : {rhs}", "min"),
}.items():
    _WHOLE[_name] = ARITH.row(
        _name,
        _meaning,
        body=SCALAR[f"arith.{_name}"],
        traits=_python(_name, _operator),
        operands=_INTEGERS,
        attrs=_OVERFLOW if _name in _WRAPPING else (),
        text="$lhs , $rhs <? overflow @overflowFlags > {} : type"
        if _name in _WRAPPING
        else "$lhs , $rhs {} : type",
        rules=_one_type("lhs", "rhs"),
        cxx=f"= {_cxx}",
    )
ADDI, SUBI, MULI, XORI = (_WHOLE[n] for n in ("addi", "subi", "muli", "xori"))
FLOORDIVSI, CEILDIVSI = _WHOLE["floordivsi"], _WHOLE["ceildivsi"]
MINSI, MAXSI = _WHOLE["minsi"], _WHOLE["maxsi"]
# lhs where the operand named is NaN, else the larger or smaller one
_LARGER = "= {{{0}}} != {{{0}}} || {{lhs}} {1} {{rhs}} ? {{lhs}} : {{rhs}}"
for _name, (_meaning, _cxx, _operator) in {
    "addf": ("lhs + rhs", "= {lhs} + {rhs}", "+"),
    "subf": ("lhs - rhs", "= {lhs} - {rhs}", "-"),
    "mulf": ("lhs * rhs", "= {lhs} * {rhs}", "*"),
    "divf": ("lhs / rhs", "= {lhs} / {rhs}", "/"),
    "remf": ("remainder of lhs / rhs", "- C++ has no operator for it", ""),
    "maximumf": ("maximum, NaN wins", _LARGER.format("lhs", ">"), "max"),
    "minimumf": ("minimum, NaN wins", _LARGER.format("lhs", "<"), "min"),
    "maxnumf": ("maximum, a number wins over NaN", _LARGER.format("rhs", ">"), ""),
    "minnumf": ("minimum, a number wins over NaN", _LARGER.format("rhs", "<"), ""),
}.items():
    ARITH.row(
        _name,
        _meaning,
        body=SCALAR[f"arith.{_name}"],
        traits=_python(_name, _operator),
        operands=_FLOATS,
        attrs=_FASTMATH,
        text="$lhs , $rhs <? fastmath @fastmath > {} : type",
        rules=_one_type("lhs", "rhs"),
        cxx=_cxx,
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
    traits=Traits(operator="compare"),
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
    traits=Traits(operator="compare"),
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
    traits=Traits(operator="select"),
    operands=(read("condition", "i1"), read("true_value", "any"), read("false_value", "any")),
    results=Result("result", "any"),
    text="=select",
    rules=_one_type("result", "true_value", "false_value"),
    cxx="= {condition} ? {true_value} : {false_value}",
)
_CASTS = dict[str, Instr]()
_KEEPS = ("index_cast", "index_castui", "extsi")
_INTS = ("integers", "integers")
_NO_BITS = "- C++ of the chip has no cast of bits"
for _name, (_meaning, (_in, _out), _cxx, _operator, *_rules) in {
    "index_cast": ("integer <-> index, sign extended", _INTS, "= {in}", "index", _index_cast),
    "index_castui": ("integer <-> index, zero extended", _INTS, "= {u_in}", "index", _index_cast),
    "extsi": ("sign extension", _INTS, "= {in}", "cast", _wider),
    "extui": ("zero extension", _INTS, "= {u_in}", "cast", _wider),
    "trunci": ("low bits", _INTS, "= {in}", "cast", _narrower),
    "extf": ("widen a float", ("floats", "floats"), "= {in}", "cast", _wider),
    "truncf": ("narrow a float, nearest even", ("floats", "floats"), "= {in}", "cast", _narrower),
    "sitofp": ("signed integer to float", ("integers", "floats"), "= {in}", "cast"),
    "uitofp": ("unsigned integer to float", ("integers", "floats"), "= {u_in}", "cast"),
    "fptosi": ("float to signed integer, toward zero", ("floats", "integers"), "= {in}", "cast"),
    "fptoui": ("float to unsigned integer, toward zero", ("floats", "integers"), "= {in}", "cast"),
    "bitcast": ("same bits, other type", ("number", "number"), _NO_BITS, "bitcast", _as_wide),
}.items():
    _CASTS[_name] = ARITH.row(
        _name,
        _meaning,
        body=SCALAR[f"arith.{_name}"],
        traits=(_SAME_NUMBER if _name in _KEEPS else NONE).joined(_python(_name, _operator)),
        operands=read("in", _in),
        results=Result("out", _out),
        rules=(_same_shape, *_rules),
        cxx=_cxx,
    )
INDEX_CAST = _CASTS["index_cast"]
