"""Branches between blocks become structured control flow, and run so on both engines."""

from __future__ import annotations

import numpy as np
import pytest

from pto.core.errors import PtoError
from pto.ir.text.parser import parse
from pto.ir.text.printer import print_module
from pto.run.launch.host import launch

SWITCH = """
module {
  func.func @f(%c: i1, %n: i32, %p: !pto.ptr<i32>) attributes {pto.entry} {
    %z = arith.constant 0 : index
    %two = arith.constant 2 : i32
    cf.switch %n : i32, [
      default: ^none,
      3: ^some(%two : i32),
      5: ^square
    ]
  ^some(%x: i32):
    %sum = arith.addi %x, %n : i32
    cf.cond_br %c, ^store(%sum : i32), ^square
  ^square:
    %product = arith.muli %n, %n : i32
    cf.br ^store(%product : i32)
  ^none:
    return
  ^store(%value: i32):
    pto.store_scalar %value, %p[%z] : !pto.ptr<i32>, i32
    return
  }
}
"""


@pytest.mark.parametrize("engine", ["reference", "jit"])
@pytest.mark.parametrize(
    ("c", "n", "wanted"),
    [(True, 3, 5), (False, 3, 9), (True, 5, 25), (False, 5, 25), (True, 7, -1)],
)
def test_ways_that_meet_and_ways_that_part(c: bool, n: int, wanted: int, engine: str) -> None:
    found = np.full(1, -1, np.int32)
    launch(SWITCH, args=[c, n, found], profile="a2a3", engine=engine)
    assert found[0] == wanted


def test_what_is_printed_is_structured_and_reads_the_same() -> None:
    text = print_module(parse(SWITCH))
    assert " cf." not in text and text.count("scf.if") == 3
    assert print_module(parse(text)) == text


@pytest.mark.parametrize("engine", ["reference", "jit"])
@pytest.mark.parametrize("c", [True, False])
def test_a_helper_that_returns_early(c: bool, engine: str) -> None:
    text = """
    func.func private @pick(%c: i1, %a: i32, %b: i32) -> i32 {
      cf.cond_br %c, ^early, ^late
    ^early:
      return %a : i32
    ^late:
      %r = arith.subi %b, %a : i32
      return %r : i32
    }
    func.func @f(%c: i1, %p: !pto.ptr<i32>) attributes {pto.entry} {
      %z = arith.constant 0 : index
      %a = arith.constant 4 : i32
      %b = arith.constant 14 : i32
      %r = func.call @pick(%c, %a, %b) : (i1, i32, i32) -> i32
      pto.store_scalar %r, %p[%z] : !pto.ptr<i32>, i32
      return
    }
    """
    found = np.zeros(1, np.int32)
    launch(text, entry="f", args=[c, found], profile="a2a3", engine=engine)
    assert found[0] == (4 if c else 10)


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("cf.br ^x\n^x:\ncf.br ^x", "has no exit"),
        ("cf.br ^x\n^x:\ncf.br ^y\n^y:\ncf.br ^x", "has no exit"),
        ("^e:\ncf.cond_br %c, ^e, ^x\n^x:\nreturn", "goes back to the first block"),
        (
            "cf.cond_br %c, ^x, ^y\n^x:\ncf.br ^y\n^y:\ncf.cond_br %c, ^x, ^z\n^z:\nreturn",
            "goes back into a loop with several entries",
        ),
        ("%f = arith.constant 1.0 : f32\ncf.br ^y(%f : f32)\n^y(%i: i32):\nreturn", "takes i32"),
        ("cf.br ^nope", "there is no block ^nope here"),
        ("cf.br ^y(%c : i1)\n^y:\nreturn", "block ^y takes 0 values, got 1"),
        (
            "cf.br ^b0\n" + "".join(f"^b{n}:\ncf.br ^b{n + 1}\n" for n in range(1100)),
            "1024 at most",
        ),
    ],
)
def test_what_cannot_be_structured(body: str, words: str) -> None:
    with pytest.raises(PtoError) as caught:
        parse(f"func.func @g(%c: i1) {{\n{body}\n}}")
    found = caught.value.diagnostics[0]
    assert found.code == "PTO-P024" and words in found.message


def test_a_value_is_made_on_every_way_to_its_use() -> None:
    body = "cf.cond_br %c, ^x, ^y\n^x:\n%v = arith.xori %c, %c : i1\ncf.br ^y\n^y:\n"
    with pytest.raises(PtoError) as caught:
        parse(f"func.func @g(%c: i1) {{\n{body}%w = arith.xori %v, %c : i1\nreturn\n}}")
    (found,) = caught.value.diagnostics
    assert (
        found.code == "PTO-P011" and "%v is not defined on every path to this use" in found.message
    )
    assert found.loc is not None and found.loc.line == 7


def test_the_generic_form_of_branches() -> None:
    text = """
    "func.func"() <{function_type = (i32) -> (), sym_name = "f"}> ({
    ^bb0(%n: i32):
      %c = "arith.cmpi"(%n, %n) <{predicate = 0 : i64}> : (i32, i32) -> i1
      "cf.switch"(%n, %n)[^some, ^none, ^some] <{case_operand_segments = array<i32: 0, 0>,
        case_values = dense<[3, -5]> : vector<2xi32>,
        operandSegmentSizes = array<i32: 1, 1, 0>}> : (i32, i32) -> ()
    ^some(%x: i32):
      "cf.cond_br"(%c, %x)[^some, ^none] <{operandSegmentSizes = array<i32: 1, 1, 0>}>
        : (i1, i32) -> ()
    ^none:
      "func.return"() : () -> ()
    }) : () -> ()
    """
    custom = """
    func.func @f(%n: i32) {
      %c = arith.cmpi eq, %n, %n : i32
      cf.switch %n : i32, [default: ^some(%n : i32), 3: ^none, -5: ^some]
    ^some(%x: i32):
      cf.cond_br %c, ^some(%x : i32), ^none
    ^none:
      return
    }
    """
    with pytest.raises(PtoError) as caught:
        parse(text)
    assert "block ^some takes 1 values, got 0" in caught.value.diagnostics[0].message
    mended = text.replace("(%n, %n)[^some", "(%n, %n, %n)[^some").replace("0, 0>", "0, 1>")
    mended = mended.replace("1, 1, 0>}> : (i32, i32)", "1, 1, 1>}> : (i32, i32, i32)")
    custom = custom.replace("-5: ^some", "-5: ^some(%n : i32)")
    assert print_module(parse(mended)) == print_module(parse(custom))


def test_deep_chains_and_diamonds_are_bounded() -> None:
    """40 diamonds in a row are 40 conditions; a ladder of early returns is nested, and refused."""
    diamonds = "".join(
        f"cf.cond_br %c, ^a{n}, ^b{n}\n^a{n}:\ncf.br ^j{n}\n^b{n}:\ncf.br ^j{n}\n^j{n}:\n"
        for n in range(40)
    )
    text = print_module(parse(f"func.func @g(%c: i1) {{\n{diamonds}return\n}}"))
    assert text.count("scf.if") == 40
    ladder = "".join(f"cf.cond_br %c, ^e{n}, ^n{n}\n^e{n}:\nreturn\n^n{n}:\n" for n in range(120))
    with pytest.raises(PtoError) as caught:
        parse(f"func.func @g(%c: i1) {{\n{ladder}return\n}}")
    assert caught.value.diagnostics[0].code == "PTO-P023"
