"""Static assertions of the NPU headers that text compilers do not make: PTO-L066.

Each case is a call, the profiles whose header refuses it (TPow.hpp, TExtract.hpp and
textract_common.hpp, TFillPad.hpp, TMulS.hpp, TAxpy.hpp, TRowExpand.hpp; TADDC is declared and
nowhere defined), and one close by that both take.
"""

from __future__ import annotations

import pytest

from pto.cxx.export import cpp
from pto.ir.text.parser import parse
from pto.isa.rules.rule import LIBRARY
from pto.target.profile import profile as find_profile
from pto.verify.program import judge


def tile(shape: str, more: str = "") -> str:
    return f"!pto.tile_buf<vec, {shape}{more and ', ' + more}>"


def call(name: str, read: list[str], written: str, between: str = "") -> str:
    args = [f"%a{n}: {type}" for n, type in enumerate([*read, written])]
    names = [f"%a{n}" for n in range(len(read))]
    types = [*read, *["index"] * between.count("%")]
    ins = ", ".join(names) + between
    return f"""func.func @k({", ".join(args)}) {{
    %c0 = arith.constant 0 : index
    pto.{name} ins({ins} : {", ".join(types)}) outs(%a{len(read)} : {written})
    return
    }}"""


def pairs(values: str) -> str:
    """tpartargmax of values and indices."""
    indices = tile("16x64xi32")
    args = f"%a: {values}, %i: {indices}"
    return f"""func.func @k({args}) {{
    pto.tpartargmax ins(%a, %a, %i, %i : {values}, {values}, {indices}, {indices})
      outs(%a, %i : {values}, {indices})
    return
    }}"""


BF16 = tile("16x64xbf16")
AT = ", %c0, %c0"
CASES = [
    (call("textract", [tile("16x64xui8")], tile("8x32xui8"), AT), ["a5"], "dst is u8"),
    (call("textract", [tile("16x64xi8")], tile("8x32xi8"), AT), [], ""),
    (
        call("textract", [tile("16x64xf32")], tile("16x128xf32", "valid=16x64"), AT),
        ["a2a3", "a5"],
        "src is 16x64, dst is 16x128",
    ),
    (
        call("textract", [tile("16x64xi8")], tile("16x32xi8", "valid=16x31"), AT),
        ["a2a3"],
        "31 columns of 1 byte are valid",
    ),
    (
        call("tfillpad", [tile("16x64xf32", "valid=16x40")], tile("16x128xf32", "pad=1")),
        ["a2a3", "a5"],
        "tfillpad_expand fills a larger dst",
    ),
    (call("tfillpad", [tile("16x64xf32", "valid=16x40")], tile("16x64xf32", "pad=1")), [], ""),
    (
        call("tfillpad_expand", [tile("16x64xf32", "valid=16x40")], tile("16x128xf32", "pad=1")),
        [],
        "",
    ),
    (call("taddc", [tile("16x64xf32")] * 3, tile("16x64xf32")), ["a2a3", "a5"], "only declare it"),
    (call("tadd", [tile("16x64xf32")] * 2, tile("16x64xf32")), [], ""),
    (call("trowexpand", [tile("16x8xf32")], tile("16x64xf32")), ["a5"], "src has 8"),
    (call("trowexpand", [tile("16x8xf32", "valid=16x1")], tile("16x64xf32")), [], ""),
    (call("textract", [tile("16x64xi32")], tile("16x32xi32"), AT), ["a5"], "dst is i32"),
]
I32, U8, F32 = (tile(f"16x64x{kind}") for kind in ("i32", "ui8", "f32"))
KEYS = [tile("32x64xui16"), tile("32x1xui8", "blayout=col_major")]
COUNTS = call("thistogram", KEYS, tile("32x256xui32"))
ONLY_A5 = [
    (call("tneg", [tile("16x64xi8")], tile("16x64xi8")), "no elements of i8"),
    (call("tneg", [tile("16x64xi16")], tile("16x64xi16")), ""),
    (call("tpack", [I32], tile("16x64xi16")), "no header has it"),
    (pairs(U8), "dst is u8"),
    (pairs(F32), ""),
    (COUNTS, "expects byte, for which the library has no default"),
    (COUNTS.replace("\n    return", " {byte = 1 : i32}\n    return"), ""),
]


@pytest.mark.parametrize(
    ("name", "kind", "refused"),
    [
        ("tmuls", "i8", True),
        ("tmuls", "i16", False),
        ("taxpy", "bf16", True),
        ("taxpy", "f16", False),
    ],
)
def test_elements_that_only_the_text_form_has(name, kind, refused):
    value = "1.0" if "f" in kind else "1"
    text = call(name, [tile(f"16x64x{kind}")], tile(f"16x64x{kind}"), ", %s")
    text = text.replace(", index)", f", {kind})").replace(", index :", f", {kind} :")
    text = text.replace("index) outs", f"{kind}) outs")
    text = text.replace("%c0 = arith.constant 0 : index", f"%s = arith.constant {value} : {kind}")
    _, found = judge(parse(text), profile="a5")
    assert not [d for d in found if d.severity == "error"]
    said = [d.message for d in found if d.code == LIBRARY]
    assert bool(said) is refused
    assert all(f"expects no elements of {kind}" in message for message in said)


def test_a_function_for_precision_has_an_enumeration_of_its_own():
    """TDIV, TCOLEXPANDDIV take DivAlgorithm, TFMOD FmodAlgorithm (pto-isa common/type.hpp)."""
    word = " {precisionType = #pto.precision_mode<HIGH_PRECISION>}"
    for name, enum in (("tdiv", "Div"), ("tfmod", "Fmod"), ("tpow", "Pow")):
        types = [tile("16x64xf32")] * (3 if name == "tpow" else 2)
        text = call(name, types, tile("16x64xf32")).replace("\n    return", f"{word}\n    return")
        assert f"<{enum}Algorithm::HIGH_PRECISION>" in cpp(parse(text), find_profile("a5")), name


def test_boxes_of_left_tiles_are_those_of_the_chip():
    """TileLeft is ZZ on a2a3 and NZ on a5 (pto_tile.hpp); programs write either."""
    mat = "!pto.tile_buf<mat, 32x32xf16, blayout=col_major, slayout=row_major>"
    left = "!pto.tile_buf<left, 32x32xf16, blayout=row_major, slayout=row_major>"
    text = f"""func.func @k() attributes {{pto.entry}} {{
      %m = pto.alloc_tile : {mat}
      %l = pto.alloc_tile : {left}
      pto.tmov ins(%m : {mat}) outs(%l : {left})
      return
    }}"""
    for name in ("a2a3", "a5"):
        assert "TileLeft<half, 32, 32, 32, 32> l" in cpp(parse(text), find_profile(name))


def test_a_scatter_names_its_pattern_before_the_types():
    text = call("tscatter", [tile("16x64xf32")], tile("16x64xf32")).replace(
        "\n    return", " {maskPattern = #pto.mask_pattern<P1111>}\n    return"
    )
    assert "TSCATTER<MaskPattern::P1111>(" in cpp(parse(text), find_profile("a5"))


@pytest.mark.parametrize("case", CASES, ids=range(len(CASES)))
def test_what_a_header_asserts_is_a_warning_for_its_profile(case):
    text, refusing, said = case
    for profile in ("a2a3", "a5"):
        _, found = judge(parse(text), profile=profile)
        mine = [d for d in found if d.code == LIBRARY]
        assert not [d for d in found if d.severity == "error"]
        assert bool(mine) is (profile in refusing)
        assert all(said in d.message for d in mine)


@pytest.mark.parametrize(("text", "said"), ONLY_A5, ids=range(len(ONLY_A5)))
def test_what_the_library_of_a5_lacks(text, said):
    """TNEG is TMULS, which has no i8; TPARTARGMAX has floats; THISTOGRAM no default byte."""
    _, found = judge(parse(text), profile="a5")
    assert not [d for d in found if d.severity == "error"]
    mine = [d.message for d in found if d.code == LIBRARY]
    assert bool(mine) is bool(said)
    assert all(said in message for message in mine)


def test_a_comparison_with_a_number_writes_unsigned_bytes_on_a2a3():
    """vcmp_dispatch of TCmps.hpp takes a pointer to uint8_t."""
    for kind, count in (("i8", 1), ("ui8", 0)):
        mask = tile(f"16x32x{kind}", "valid=16x8")
        text = call("tcmps", [F32], mask, ", %s {cmpMode = #pto<cmp le>}")
        text = text.replace("index)", "f32)").replace(
            "%c0 = arith.constant 0 : index", "%s = arith.constant 1.0 : f32"
        )
        _, found = judge(parse(text.replace(", index", ", f32")), profile="a2a3")
        assert len([d for d in found if d.code == LIBRARY]) == count


def test_templates_of_parameters_have_no_references():
    """A tile parameter is a reference; decltype of it is no tile type of a template."""
    text = call("tci", [], tile("1x64xi32"))
    text = text.replace("ins( : )", "ins(%s : i32)").replace(
        "%c0 = arith.constant 0 : index", "%s = arith.constant 1 : i32"
    )
    assert "TCI<std::decay_t<decltype(a0)>, int32_t, 0>(a0, 1);" in cpp(
        parse(text), find_profile("a5")
    )


def test_calls_are_written_as_the_headers_declare_them():
    """pto_instr.hpp: TCOLSUM(dst, src, tmp, isBinary), TQUANT with addresses, keys as arrays."""
    a5 = find_profile("a5")
    column = call("tcolsum", [F32, F32], tile("1x64xf32"))
    assert "TCOLSUM(a2, a0, a1, 0);" in cpp(parse(column), a5)
    scale = tile("16x1xf32", "blayout=col_major")
    kind = "{quant_type = #pto<quant_type INT8_ASYM>}"
    quant = call("tquant", [F32, scale, scale], U8).replace("\n    return", f" {kind}\n    return")
    assert "TQUANT<QuantType::INT8_ASYM>(a3, a0, a1, &a2);" in cpp(parse(quant), a5)
    one = call("txors", [I32, tile("1x8xi32")], I32).replace("%a0, %a1 :", "%a0, %c, %a1 :")
    one = one.replace(f"{I32}, {tile('1x8xi32')})", f"{I32}, i32, {tile('1x8xi32')})")
    one = one.replace("%c0 = arith.constant 0 : index", "%c = arith.constant 3 : i32")
    assert "auto a1_seen = a2;" in cpp(parse(one), a5), "the simulator has one type for both"
    random = f"""func.func @k(%d: {I32}, %s: i32) {{
    pto.trandom ins(%s, %s, %s, %s, %s, %s : i32, i32, i32, i32, i32, i32) outs(%d : {I32})
    return
    }}"""
    assert "TRANDOM<10>(d, key, counter); };" in cpp(parse(random), a5)


def test_powers_of_bf16_are_precise_on_a5():
    for more, count in (("", 1), (" {precisionType = #pto.precision_mode<HIGH_PRECISION>}", 0)):
        text = call("tpow", [BF16, BF16, BF16], BF16).replace("\n    return", f"{more}\n    return")
        _, found = judge(parse(text), profile="a5")
        assert len([d for d in found if d.code == LIBRARY]) == count, [d.message for d in found]


@pytest.mark.parametrize("profile", ["a2a3", "a5"])
def test_a_power_of_integers_passes_a_tile_that_the_header_leaves_untouched(profile):
    """Both headers have one signature, with tmp; PTOAS refuses tmp for integers."""
    ints = tile("16x64xi32")
    text = cpp(parse(call("tpow", [ints, ints], ints)), find_profile(profile))
    assert "TPOW(a2, a0, a1, a2);" in text
