"""How C++ calls instructions: every row has a form or says why not, and the header has them all."""

from __future__ import annotations

import re

import pytest

from pto.core.errors import PtoError
from pto.cxx import header
from pto.cxx.forms import WITHOUT, by_name, expression, forms, reason
from pto.isa.row.attributes import Enum
from pto.isa.table import lookup, rows


@pytest.mark.parametrize("row", rows(), ids=lambda row: row.name)
def test_a_row_has_a_cxx_form_or_a_stated_reason(row):
    found, why = forms(row), reason(row)
    assert bool(found) is (why is None)
    assert why is None or len(why) > 10


@pytest.mark.parametrize("row", rows(), ids=lambda row: row.name)
def test_forms_name_operands_and_attributes_of_the_row(row):
    known = {*row.operand_names, *(a.name for a in row.attrs), *(r.name for r in row.results)}
    for form in forms(row):
        named = [n for argument in form.arguments for n in argument.names]
        assert set(named) <= known
        assert set(form.literals) <= {a.name for a in row.attrs}
        required = {o.name for o in row.operands if not (o.optional or o.variadic)}
        by_hand = form.name in header.by_hand() or form.name == "TPIPE"
        assert by_hand or required <= set(named) or form.name == "TSCATTER"


def test_tile_instructions_are_not_left_out():
    tile = [row for row in rows() if row.family.section == "tile" and not row.cxx.startswith("-")]
    assert len(tile) > 120
    assert all(forms(row) or expression(row) for row in tile)
    assert "tile" not in WITHOUT


def test_results_come_first_in_a_derived_form():
    (form,) = forms(lookup("pto.tadd"))
    assert (form.name, [a.names for a in form.arguments]) == (
        "TADD",
        [("dst",), ("src0",), ("src1",)],
    )


def test_a_form_reads_its_marks():
    forms_ = {f.row.name: f for f in by_name()["TMATMUL_MX"]}
    assert forms_["pto.tmatmul.mx.acc"].arguments[1].role == "acc"
    (row,) = (f for f in by_name()["TEXTRACT"] if len(f.arguments) == 4)
    assert [a.default for a in row.arguments] == [None, None, 0, 0]


def test_the_word_of_an_attribute_selects_an_expression():
    row = lookup("arith.cmpi")
    assert expression(row, {"predicate": Enum("cmpi_predicate", "slt")}) == "{lhs} < {rhs}"
    assert expression(row, {"predicate": Enum("cmpi_predicate", "uge")}) == "{u_lhs} >= {u_rhs}"
    with pytest.raises(PtoError, match="no operator for the predicate ueq"):
        expression(lookup("arith.cmpf"), {"predicate": Enum("cmpf_predicate", "ueq")})


def test_every_form_has_a_function_in_the_header():
    hand = "".join(p.read_text(encoding="utf-8") for p in header.INCLUDE.rglob("*.hpp"))
    written = set(re.findall(r"RecordEvent (\w+)\(", header.instructions()))
    recorded = set(re.findall(r'record\("([\w.]+)"', hand)) | header.by_hand()
    recorded |= set(re.findall(r"^PTO_LOCAL_COPY\((\w+)\)", hand, re.MULTILINE))
    assert {n.removeprefix("comm::") for n in by_name()} - written - recorded == set()


def test_the_header_tree_is_written(tmp_path):
    made = header.write(tmp_path / "include")
    assert (made / "pto" / "pto-inst.hpp").exists()
    assert (made / "pto" / "common" / "constants.hpp").exists()
    assert "enum class Op" in (made / "pto" / "machine" / "kinds.hpp").read_text(encoding="utf-8")
