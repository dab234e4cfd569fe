"""Operations of other dialects that PTO programs are written around: builtin, func, scf, memref,
math. Their meaning is MLIR's; rows state what the engines and the verifier need. Arithmetic is in
`arith.py`.
"""

from __future__ import annotations

from pto.isa.meaning.handle import memref
from pto.isa.meaning.scalar.arith import SCALAR
from pto.isa.meaning.simt.math import BITS, PICK
from pto.isa.meaning.simt.memory import OWN_ARRAY, OWN_ELEMENT, OWN_LOAD, OWN_STORE
from pto.isa.row.attributes import Ints
from pto.isa.row.instr import Attr, Family, Result, read, reads, update, write
from pto.isa.row.traits import Control, Traits
from pto.isa.rules.rule import Case, rule
from pto.isa.scalar.scope import no_arguments

_SAME = (Result("result", "number", "same"),)


def _family(name: str, dialect: str, meaning: str, cost: str = "free") -> Family:
    return Family(
        name,
        meaning,
        "shared",
        dialect=dialect,
        text="$operands {} : types to results",
        pipe="S",
        subject="result",
        cost=cost,
        cite="MLIR language reference",
    )


BUILTIN = _family("builtin", "builtin.", "what holds programs together")
FUNC = _family("func", "func.", "functions")
SCF = _family("scf", "scf.", "structured control flow", "branch")
MEMREF = _family("memref", "memref.", "lowered views and buffers")
MATH = _family("math", "math.", "scalar mathematics", "alu")
LLVM = _family("llvm", "llvm.", "bit casts of packed SIMT values")

MODULE = BUILTIN.row(
    "module",
    "holds functions",
    body=Control.MODULE,
    traits=Traits(short="printed"),
    text="=module",
    pipe="none",
)
CAST = BUILTIN.row(
    "unrealized_conversion_cast",
    "reinterpret a value as another type of the same bits",
    body=SCALAR["builtin.unrealized_conversion_cast"],
    traits=Traits(short="read"),
    operands=read("inputs*", "any"),
    results=Result("outputs", "any"),
    cxx="= {inputs}",
)
FUNCTION = FUNC.row("func", "a function", body=Control.FUNCTION, text="=func", pipe="none")
RETURN = FUNC.row(
    "return",
    "end of a function",
    body=Control.RETURN,
    traits=Traits(short="printed"),
    operands=read("values*", "any"),
    text="{} <? $values* : types >",
)
FUNC.row(
    "call",
    "call a function of the program",
    body=Control.CALL,
    traits=Traits(short="read"),
    operands=read("args*", "any"),
    attrs=Attr("callee", "symbol", required=True),
    text="=call",
)


@rule("PTO-T021", "expects bounds and step to be integers or indices")
def _countable(case: Case) -> str | None:
    for name in ("lower", "upper", "step"):
        elem = case.elem(name)
        if elem is not None and elem.name == "i1":
            return f"{name} is i1"
    return None


@rule("PTO-S130", "expects a positive step")
def _step(step: int) -> str | None:
    return None if step > 0 else f"it is {step}"


FOR = SCF.row(
    "for",
    "counted loop with carried values",
    body=Control.FOR,
    operands=(*reads("lower upper step", "int"), read("inits*", "any")),
    text="=scf.for",
    rules=(_countable, _step),
)
IF = SCF.row(
    "if",
    "choose one of two regions",
    body=Control.IF,
    operands=read("condition", "i1"),
    text="=scf.if",
)


@rule("PTO-S109", "expects one region for each case and a default")
def _cases(case: Case) -> str | None:
    cases = case.op.attrs.get("cases")
    numbers = cases.values if isinstance(cases, Ints) else ()
    if len(case.op.regions) != len(numbers) + 1:
        return f"there are {len(numbers)} numbers and {len(case.op.regions)} regions"
    twice = [n for n in numbers if numbers.count(n) > 1]
    return f"{twice[0]} is there {numbers.count(twice[0])} times" if twice else None


SCF.row(
    "index_switch",
    "choose the region of a number, or the default",
    body=Control.IF,
    operands=read("arg", "index"),
    attrs=Attr("cases", "any", required=True),
    text="=scf.index_switch",
    rules=_cases,
    example="%r = scf.index_switch %n -> i32 case 2 { .. } default { .. }",
)
WHILE = SCF.row(
    "while",
    "loop while a condition holds",
    body=Control.WHILE,
    operands=read("inits*", "any"),
    text="=scf.while",
)
CONDITION = SCF.row(
    "condition",
    "continue the loop, or leave it with these values",
    body=Control.CONDITION,
    operands=(read("condition", "i1"), read("args*", "any")),
    text="( $condition ) {} <? $args* : types(args) >",
)
YIELD = SCF.row(
    "yield",
    "hand values to the operation around",
    body=Control.YIELD,
    operands=read("results*", "any"),
    text="{} <? $results* : types >",
)
SCF.row(
    "execute_region",
    "run the body once; its values are the results",
    body=Control.REGION,
    text="=region",
    example="%r = scf.execute_region -> (i32) { .. }",
)
FUSED = Family("fused groups", "operations a compiler has put together", "support")

FUSED.row(
    "fusion_region",
    "run the body once; the tiles it hands on live longer",
    body=Control.REGION,
    text="=region",
    rules=no_arguments,
    example="%t = pto.fusion_region { .. } : !pto.tile_buf<vec, 16x16xf16>",
    cite="PTOAS include/PTO/IR/PTOOps.td:1586",
)
FUSED.row(
    "yield",
    "hand values to the region around",
    body=Control.YIELD,
    cite=(),
    operands=read("results*", "any"),
    text="<? ( $results* ) : ( types ) -> ( ) >",
)

MEMREF.row(
    "alloc",
    "a buffer the planner places",
    body=memref.ALLOC,
    traits=Traits(allocates="addr"),
    operands=read("sizes*", "index"),
    results=Result("memref", "any"),
    text="( <? $sizes* > ) {} : results",
)
MEMREF.row(
    "dealloc",
    "end of a buffer's life",
    body=memref.DEALLOC,
    operands=read("memref", "address"),
    text="$memref {} : types",
)
for _name, _meaning in {
    "cast": "the same buffer under a compatible type",
    "memory_space_cast": "the same buffer named in another space",
}.items():
    MEMREF.row(
        _name,
        _meaning,
        body=memref.SAME,
        operands=read("source", "address"),
        results=Result("dest", "any"),
    )
MEMREF.row(
    "load",
    "read one element",
    body=memref.LOAD,
    operands=(read("memref", "address"), read("indices*", "index")),
    results=Result("value", "scalar", "elem"),
    text="$memref [ <? $indices* > ] {} : types(memref)",
)
MEMREF.row(
    "store",
    "write one element",
    body=memref.STORE,
    operands=(read("value", "scalar"), update("memref", "address"), read("indices*", "index")),
    text="$value , $memref [ <? $indices* > ] {} : types(memref)",
)
_WINDOW = (read("source", "address"), *reads("offsets* sizes* strides*", "index"))
MEMREF.row(
    "reinterpret_cast",
    "a buffer under new offset, sizes and strides",
    body=memref.REINTERPRET,
    operands=_WINDOW,
    results=Result("result", "any"),
    text="=memref.reinterpret_cast",
    notes="MLIR counts the offset from the buffer, we from where source begins in it.",
)
MEMREF.row(
    "subview",
    "a window of a buffer",
    body=memref.SUBVIEW,
    operands=_WINDOW,
    results=Result("result", "any"),
    text="=memref.subview",
)

for _name, _meaning in {
    "exp": "e to the power x",
    "log": "natural logarithm",
    "sqrt": "square root",
    "rsqrt": "1 / sqrt(x)",
    "absf": "magnitude",
    "absi": "magnitude",
    "floor": "round toward minus infinity",
    "ceil": "round toward plus infinity",
    "tanh": "hyperbolic tangent",
}.items():
    MATH.row(
        _name,
        _meaning,
        body=SCALAR.get(f"math.{_name}"),
        operands=read("operand", "integers" if _name == "absi" else "floats"),
        results=_SAME,
        text="$operand {} : type",
    )

for _name in ("bitcast", "inttoptr"):
    LLVM.row(
        _name,
        "same bits, other type",
        body=BITS if _name == "bitcast" else None,
        operands=read("arg", "any"),
        results=Result("res", "any"),
    )


# ---- arrays of one work item

_ELEMENT = Attr("elem_type", "type", required=True, meaning="what it counts in")
LLVM.row(
    "alloca",
    "res = an array of length elements, one for each work item",
    body=OWN_ARRAY,
    operands=read("length", "int"),
    results=Result("res", "llvm pointer"),
    attrs=_ELEMENT,
    text="$length x @elem_type {} : ( types ) -> results",
)
LLVM.row(
    "getelementptr",
    "res = base moved by index elements",
    body=OWN_ELEMENT,
    operands=(read("base", "llvm pointer"), read("index", "int")),
    results=Result("res", "llvm pointer"),
    attrs=(_ELEMENT, Attr("rawConstantIndices", "any", meaning="MLIR's own: index is an operand")),
    text="=gep",
)
LLVM.row(
    "load",
    "value = the element at ptr",
    body=OWN_LOAD,
    operands=read("ptr", "llvm pointer"),
    results=Result("value", "number"),
    text="$ptr {} : types -> results",
)
LLVM.row(
    "store",
    "the element at ptr becomes value",
    body=OWN_STORE,
    operands=(write("ptr", "llvm pointer"), read("value", "number")),
    text="$value , $ptr {} : types(value,ptr)",
    generic="value ptr",
)
LLVM.row(
    "extractelement",
    "res = element index of vector",
    body=PICK,
    operands=(read("vector", "vector"), read("index", "int")),
    results=Result("res", "number", "elem"),
    text="$vector [ $index : types(index) ] {} : types(vector)",
)
