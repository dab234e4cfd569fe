"""MLIR's generic form, as PTOAS's TableGen definitions order operands and type attributes.

Expectations are read off include/PTO/IR/*.td of 2026-08 (`let arguments`): operands that are not
attributes, in order; with more than one `Optional` or `Variadic` their sizes, one for each.
"""

from __future__ import annotations

import re

import pytest

from pto.core.errors import PtoError
from pto.ir.copied import same
from pto.ir.text.parser import parse
from pto.ir.text.printer import print_module

VEC = "!pto.tile_buf<vec, 16x16xf32>"
BYTE = "!pto.tile_buf<vec, 16x32xi8, valid=16x16>"
COLUMN = "!pto.tile_buf<vec, 16x1xf32, blayout=col_major>"
ACC = "!pto.tile_buf<acc, 16x16xf32>"
MAT = "!pto.tile_buf<mat, 16x16xf16, blayout=col_major, slayout=row_major>"
SCALING = "!pto.tile_buf<scaling, 1x16xui64>"
REG, MASK = "!pto.vmi.vreg<64xf32>", "!pto.vmi.mask<64xb32>"
UB, GM = "!pto.ptr<f32, ub>", "!pto.ptr<i32, gm>"
L1, L0 = "!pto.ptr<f16, l1>", "!pto.ptr<f16, l0a>"

# custom text over %a, %b, ..: their types; operands and sizes of the generic form
FORMS = [
    (
        f"pto.tscatter ins(%a, %b : {VEC}, !pto.tile_buf<vec, 16x16xi32>) outs(%c : {VEC})",
        [VEC, "!pto.tile_buf<vec, 16x16xi32>", VEC],
        "a c b",
        None,
    ),
    (
        f"pto.tcvt ins(%a {{satmode = #pto<saturation_mode ON>}} : {VEC}) outs(%b : {BYTE})",
        [VEC, BYTE],
        "a b",
        None,
    ),
    (
        f"pto.tquant ins(%a, %b : {VEC}, {COLUMN})"
        f" outs(%c, %d : {BYTE}, {VEC}) {{quant_type = #pto<quant_type INT8_SYM>}}",
        [VEC, COLUMN, BYTE, VEC],
        "a b d c",
        (1, 1, 0, 1, 1),
    ),
    (
        f"pto.textract ins(%a, %b, %c : {ACC}, index, index) outs(%d : {MAT})",
        [ACC, "index", "index", MAT],
        "a b c d",
        (1, 1, 1, 1, 0, 0),
    ),
    (
        f"pto.vmi.vstore %a, %b[%c], %d : {REG}, {UB}, {MASK}",
        [REG, UB, "index", MASK],
        "a b c d",
        (1, 1, 1, 0, 0, 0, 1),
    ),
    (
        f"pto.mte_l1_l0a %a, %b, %c, %d : {L1}, {L0}, i64, i64",
        [L1, L0, "i64", "i64"],
        "a b c d",
        (1, 1, 1, 1, *[0] * 8),
    ),
    (f"pto.st_dev %c, %a[%b] : {GM}, i32", [GM, "index", "i32"], "c a b", None),
    ("llvm.store %b, %a : f32, !llvm.ptr", ["!llvm.ptr", "f32"], "b a", None),
]


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form[0].split()[0])
def test_operands_stand_as_the_compiler_has_them(
    form: tuple[str, list[str], str, tuple[int, ...] | None],
) -> None:
    text, types, order, sizes = form
    args = ", ".join(f"%{name}: {type}" for name, type in zip("abcdef", types, strict=False))
    module = parse(f"func.func @f({args}) {{\n{text}\nreturn\n}}")
    generic = print_module(module, generic=True)
    line = next(each for each in generic.splitlines() if f'"{text.split()[0]}"' in each)
    listed = re.search(r"\(([^)]*)\)", line)
    assert listed and listed[1] == ", ".join(f"%{name}" for name in order.split())
    wanted = "" if sizes is None else f"array<i32: {', '.join(map(str, sizes))}>"
    found = re.search(r"operandSegmentSizes = (array<[^>]*>)", line)
    assert (found[1] if found else "") == wanted
    assert same(module.op, parse(generic).op)


def test_attributes_have_the_names_and_types_of_the_compiler() -> None:
    text = f"""
    func.func @f(%a: {VEC}, %b: {BYTE}, %s: !pto.struct<f32, i8>, %x: f32, %p: {GM}) {{
      pto.tcvt ins(%a {{satmode = #pto<saturation_mode ON>}} : {VEC}) outs(%b : {BYTE})
      pto.struct_set %s[0], %x : !pto.struct<f32, i8>, f32
      pto.cmo.cacheinvalid %p single_cache_line : {GM}
      pto.section.simt<<<32, 2, 1>>> {{
      }}
      return
    }}"""
    module = parse(text)
    generic = print_module(module, generic=True)
    assert "{sat_mode = #pto<saturation_mode ON>}" in generic
    assert "{path = array<i64: 0>}" in generic
    assert "{space = #pto.address_space<gm>}" in generic
    assert "{dimX = 32 : i32, dimY = 2 : i32, dimZ = 1 : i32}" in generic
    assert same(module.op, parse(generic).op)
    assert print_module(parse(generic)) == print_module(module)


def test_sizes_in_the_order_of_the_row_are_read_too() -> None:
    """As `pto fmt --generic` once wrote them; a destination cannot be absent."""
    args = f"%a: {VEC}, %b: {COLUMN}, %c: {BYTE}"
    for sizes in ("1, 1, 0, 0, 1", "1, 1, 0, 1, 0"):
        kind = "quant_type = #pto<quant_type INT8_SYM>"
        attrs = f"{{{kind}, operandSegmentSizes = array<i32: {sizes}>}}"
        op = f'"pto.tquant"(%a, %b, %c) {attrs} : ({VEC}, {COLUMN}, {BYTE}) -> ()'
        module = parse(f"func.func @f({args}) {{\n{op}\nreturn\n}}")
        found = next(each for each in module.walk() if each.name == "pto.tquant")
        assert found.operand("dst") is found.operands[2] and found.operand("tmp") is None


_VALUES = "%c: i1, %n: index, %x: i32"


@pytest.mark.parametrize(
    ("text", "code", "words"),
    [
        ('"scf.for"(%n, %n, %n) : (index, index, index) -> ()', "PTO-P028", "has 1 regions, got 0"),
        ('"scf.while"() ({}) : () -> ()', "PTO-P028", "has 2 regions, got 1"),
        ('"arith.addi"(%x, %x) ({}) : (i32, i32) -> i32', "PTO-P028", "has 0 regions, got 1"),
        (
            '"pto.section.simt"() ({}) {dimX = 1 : i32} : () -> ()',
            "PTO-T026",
            "needs attribute dimY",
        ),
        ('"arith.constant"() : () -> i32', "PTO-T026", "needs attribute value"),
        (
            '"scf.index_switch"(%n) ({"scf.yield"() : () -> ()})'
            " {cases = array<i64: 1>} : (index) -> ()",
            "PTO-P028",
            "has 2 regions, got 1",
        ),
        ('"func.func"() ({}) {sym_name = "g"} : () -> ()', "PTO-T026", "attribute function_type"),
    ],
)
def test_parts_that_are_missing(text: str, code: str, words: str) -> None:
    with pytest.raises(PtoError) as caught:
        parse(f"func.func @f({_VALUES}) {{\n{text}\nreturn\n}}")
    found = caught.value.diagnostics[0]
    assert found.code == code and words in found.message


def test_braces_with_nothing_inside_are_a_body_that_does_nothing() -> None:
    text = 'func.func @f() {\n"pto.vecscope"() ({\n}) : () -> ()\nreturn\n}'
    assert same(parse(text).op, parse("func.func @f() {\npto.vecscope {\n}\nreturn\n}").op)
