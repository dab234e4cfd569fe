"""The parameters of a rule name what it looks at; a rule holds where one of them is absent."""

from __future__ import annotations

import pytest

from pto.core.tile import TileType
from pto.ir.text.parser import parse
from pto.isa.row import types as t
from pto.isa.rules.rule import Case, Rule, rule
from pto.target import profile

_PROGRAM = """
module {
  func.func @f(%a: !pto.tile_buf<vec, 8x64xf32>, %b: !pto.tile_buf<vec, 4x64xf16>, %n: index,
               %v: !pto.partition_tensor_view<8x64xf32>) {
    %two = arith.constant 2 : index
    pto.tcmp ins(%a, %a {cmpMode = #pto<cmp lt>} : !pto.tile_buf<vec, 8x64xf32>,
                 !pto.tile_buf<vec, 8x64xf32>) outs(%b : !pto.tile_buf<vec, 4x64xf16>)
    pto.tprint ins(%v : !pto.partition_tensor_view<8x64xf32>)
    %x = pto.tgetval ins(%a, %two : !pto.tile_buf<vec, 8x64xf32>, index) outs : f32
    %y = pto.tgetval ins(%a, %n : !pto.tile_buf<vec, 8x64xf32>, index) outs : f32
    %q = pto.reserve_buffer {name = "q", size = 512, location = #pto.address_space<vec>,
                             auto = true} -> i32
    return
  }
}
"""
_OPS = {op.name: op for op in parse(_PROGRAM).walk()}  # the last tgetval


def _case(name: str) -> Case:
    return Case(_OPS[name], profile("a2a3"))


@rule("PTO-S020", "expects tiles")
def _tiles(src0: TileType, dst: TileType) -> str | None:
    return f"{src0.rows} and {dst.rows} rows"


@rule("PTO-T020", "expects elements")
def _elements(dst: t.Scalar, src0: t.Scalar) -> str | None:
    return f"{dst.name} and {src0.name}"


@rule("PTO-T023", "expects a word")
def _word(cmpMode: str) -> str | None:
    return cmpMode


@rule("PTO-S062", "expects a view")
def _view(src: t.View | t.MemRef) -> str | None:
    return f"{src.shape}"


@rule("PTO-M050", "expects a number", id="numbered")
def _number(offset: int, case: Case) -> str | None:
    return f"{case.op.name} at {offset}"


@rule("PTO-T070", "expects a written number")
def _written(size: int) -> str | None:
    return f"{size} bytes"


@pytest.mark.parametrize(
    ("tested", "name", "found"),
    [
        (_tiles, "pto.tcmp", "8 and 4 rows"),
        (_tiles, "pto.tprint", None),
        (_elements, "pto.tcmp", "f16 and f32"),
        (_elements, "pto.reserve_buffer", None),
        (_word, "pto.tcmp", "lt"),
        (_word, "pto.tprint", None),
        (_view, "pto.tprint", "(8, 64)"),
        (_view, "pto.tgetval", None),  # src is a tile there
        (_number, "pto.tgetval", None),  # known when it runs
        (_written, "pto.reserve_buffer", "512 bytes"),
        (_written, "pto.tcmp", None),
    ],
)
def test_arguments(tested: Rule, name: str, found: str | None) -> None:
    assert tested.test(_case(name)) == found


def test_constant_operand() -> None:
    first = next(op for op in parse(_PROGRAM).walk() if op.name == "pto.tgetval")
    case = Case(first, profile("cpu"))
    assert _number.test(case) == "pto.tgetval at 2"
    assert case.asked_numbers  # part of the key under which a legal operation is remembered


def test_ids() -> None:
    assert (_tiles.id, _number.id) == ("tiles", "numbered")


def test_unknown_annotation() -> None:
    def wrong(src: bytes) -> str | None:
        return str(src)

    with pytest.raises(AttributeError, match="bytes"):
        rule("PTO-S020", "expects nothing")(wrong)
