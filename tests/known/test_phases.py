"""Phases of rows: how they are written, and which form of an instruction an operation takes."""

from __future__ import annotations

import pytest

from pto.ir.text.parser import parse
from pto.isa.row.phases import InnerFlag, PhaseForm, PipeAccess, forms
from pto.isa.row.pipe_of import form_of, inner_flags, phases_of, pipe_of
from pto.isa.rules.rule import Case
from pto.target import profile as profile_named

_SOURCE = """
!m = !pto.partition_tensor_view<64x32xf32>
!i = !pto.tile_buf<vec, 1x16xi32>
!e = !pto.tile_buf<vec, 16x32xi32>
!d = !pto.tile_buf<vec, 16x32xf32>
!t = !pto.tile_buf<vec, 1x256xf32>
!r = !pto.tile_buf<vec, 1x16xi32>
module {
  func.func @f(%m: !m, %i: !i, %e: !e, %d: !d, %t: !t, %r: !r, %n: i32) {
    "OP"
    return
  }
}
"""


def case_of(text: str, profile: str) -> Case:
    module = parse(_SOURCE.replace('"OP"', text))
    (op,) = [op for op in module.walk() if op.row and op.row.family.section in ("tile", "comm")]
    assert op.row is not None
    return Case(op, profile_named(profile))


def test_a_form_is_read_and_shown_as_it_is_written():
    text = "coalesce=row -tmp: V>S S(idx) MTE2(mem->dst,aux) S>MTE2:0,1 V[S] V[S](a->b)"
    (form,) = forms(text)
    assert form == PhaseForm(
        ("coalesce=row", "-tmp"),
        (
            InnerFlag("V", "S"),
            PipeAccess("S", ("idx",)),
            PipeAccess("MTE2", ("mem",), ("dst", "aux")),
            InnerFlag("S", "MTE2", (0, 1)),
            PipeAccess("V", nested=("S",)),
            PipeAccess("V", ("a",), ("b",), ("S",)),
        ),
    )
    assert str(form) == text
    assert form.pipes() == ("S", "MTE2", "V")
    assert form.flags() == (("V", "S", 0), ("S", "MTE2", 0), ("S", "MTE2", 1), ("S", "V", 0))
    assert [str(each) for each in forms("engine=CCU:\n\n  V(a->b)\n")] == [
        "engine=CCU: ",
        "V(a->b)",
    ]
    with pytest.raises(RuntimeError, match="no phase"):
        forms("V(a->")


_ROW = "pto.mgather ins(%m, %i : !m, !i) outs(%d : !d) {coalesce = #pto<coalesce row>}"
_ELEM = "pto.mgather ins(%m, %e : !m, !e) outs(%d : !d) {coalesce = #pto<coalesce elem>}"
_SCATTER = "pto.mscatter ins(%d, %{0} : !d, !{0}) outs(%m : !m)"
_RAMP, _RAMP_TMP = "(%n : i32) outs(%r : !r)", "(%n, %t : i32, !t) outs(%r : !r)"


@pytest.mark.parametrize(
    ("text", "profile", "touches"),
    [
        (_ROW, "a2a3", ["S(idx)", "MTE2(mem->dst)"]),
        (_ELEM, "a2a3", ["S(idx,mem->dst)"]),
        (_ROW, "a5", ["V(mem,idx->dst)"]),
        (_SCATTER.format("i"), "a2a3", ["S(idx)", "MTE3(src->mem)"]),
        (_SCATTER.format("e"), "a2a3", ["S(src,idx->mem)"]),  # an index for each element
        (_SCATTER.format("e"), "a5", ["V(src,idx->mem)"]),
        (f"pto.tci ins{_RAMP}", "a2a3", ["S(->dst)"]),
        (f"pto.tci ins{_RAMP}", "a5", ["S(->dst)"]),
        (f"pto.tci ins{_RAMP_TMP}", "a2a3", ["V(S,tmp->tmp,dst)"]),  # the default: all by role
        (f"pto.tci ins{_RAMP}", "cpu", ["V(S->dst)"]),
    ],
)
def test_the_form_of_an_operation_follows_its_operands(text: str, profile: str, touches: list[str]):
    steps = phases_of(case_of(text, profile))
    assert [
        str(PhaseForm((), (step,))) for step in steps if isinstance(step, PipeAccess)
    ] == touches


def test_an_operation_of_one_pipe_runs_there_and_one_of_several_where_its_row_says():
    assert pipe_of(case_of(f"pto.tci ins{_RAMP}", "a2a3")) == "S"
    assert pipe_of(case_of(f"pto.tci ins{_RAMP_TMP}", "a2a3")) == "V"
    assert pipe_of(case_of(_ROW, "a2a3")) == "MTE2"
    assert pipe_of(case_of(_ROW, "a5")) == "V"
    assert form_of(case_of(_ROW, "cpu")) is None


def test_flags_inside_are_those_of_the_form():
    assert inner_flags(case_of(_ROW, "a5")) == ()
    assert set(inner_flags(case_of(_ELEM, "a2a3"))) == {
        (a, b, 0) for p in ("V", "MTE2", "MTE3") for a, b in ((p, "S"), ("S", p))
    }
