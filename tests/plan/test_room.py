"""Not enough room: the finding names the buffer, the need, the largest tiles and their lines."""

import pytest

from pto.cli import explain
from pto.core.errors import Diagnostic, PtoError
from pto.ir.text.parser import parse
from pto.plan.memory import plan_memory
from pto.target.facts import Profile
from pto.target.profile import device, narrow, profile

from .programs import A2A3, A5, BIG, alloc, plan, program, use


def finding(body: str, chosen: Profile = A5) -> Diagnostic:
    with pytest.raises(PtoError) as caught:
        plan(body, chosen)
    (found,) = caught.value.diagnostics
    return found


THREE = """%a = pto.alloc_tile : BIG
%b = pto.alloc_tile : BIG
%c = pto.alloc_tile : TILE
pto.tabs ins(%a : BIG) outs(%b : BIG)
pto.tabs ins(%c : TILE) outs(%c : TILE)
pto.tadd ins(%a, %b : BIG, BIG) outs(%c : TILE)"""


def test_the_finding_says_where_how_much_and_what():
    found = finding(THREE)
    assert found.code == "PTO-M120"
    assert found.message == "3 buffers in use at line 7 need 266,240 bytes of ub, a5 has 262,144"
    assert found.loc is not None and found.loc.line == 5  # %c is the one too many
    assert [n.message for n in found.notes] == [
        "%a: 131,072 bytes, vec 256x128xf32 ND, lines 6 to 8",
        "%b: 131,072 bytes, vec 256x128xf32 ND, lines 6 to 8",
        "%c: 4,096 bytes, vec 16x64xf32 ND, lines 7 to 8",
    ]
    assert [n.loc.line for n in found.notes if n.loc] == [3, 4, 5]


def test_only_the_largest_are_listed_and_the_rest_counted():
    names = [f"t{n}" for n in range(70)]
    found = finding(f"{alloc(*names)}\n{use(*names)}\n{use(*names)}")
    assert len(found.notes) == 6
    assert found.notes[-1].message == "and 65 more of 266,240 bytes together"


def test_a_tile_larger_than_its_buffer():
    found = finding("%t = pto.alloc_tile : !pto.tile_buf<vec, 512x256xf32>")
    assert found.code == "PTO-M120"
    assert found.message == "%t needs 524,288 bytes of ub, a5 has 262,144"


def test_a_buffer_the_profile_does_not_have():
    found = finding("%t = pto.alloc_tile : !pto.tile_buf<scale_left, 16x2xi8>", A2A3)
    assert found.message == "%t needs 32 bytes of scale_a, a2a3 has none"


def test_every_function_without_room_is_reported():
    text = program(THREE).source.text
    twice = text.replace("module {", "").replace("@k", "@j").rsplit("}", 1)[0]
    with pytest.raises(PtoError) as caught:
        plan_memory(parse(text.rsplit("}", 1)[0] + twice + "}"), A5)
    assert [d.code for d in caught.value.diagnostics] == ["PTO-M120", "PTO-M120"]


def test_room_in_pieces():
    value = "%x = arith.constant 1.0 : f32"
    found = finding(f"{value}\n{fragment('PTO-M121', 'Wrong')}")
    assert found.code == "PTO-M121"
    assert "262,144 bytes of ub" in found.message and "196,608" in found.message


def warnings(body: str, chosen: Profile) -> list[str]:
    return [d.code for d in plan_memory(program(body), chosen).warnings]


HALVES = f"""%a = pto.alloc_tile : {BIG}
%b = pto.alloc_tile : {BIG}
pto.tabs ins(%a : {BIG}) outs(%b : {BIG})"""


def test_a_plan_that_some_device_has_no_room_for_is_a_warning():
    assert warnings(HALVES, A2A3) == ["PTO-M125"]
    assert warnings(HALVES, A5) == []


def test_the_end_of_ub_that_the_device_uses_is_a_warning():
    assert warnings(HALVES, narrow(profile("a5"), device("950pr"))) == ["PTO-M128"]


def test_memory_the_planner_cannot_see_is_a_warning():
    raw = (
        "%at = arith.index_cast %n : index to i64\n%p = pto.castptr %at : i64 -> !pto.ptr<f32, ub>"
    )
    assert warnings(f"{raw}\n{alloc('a')}\n{use('a')}", A5) == ["PTO-M124"]
    assert warnings(raw, A5) == []
    moved = "%at = arith.index_cast %n : index to i64\n%f = pto.alloc_tile addr = %at : TILE"
    assert warnings(f"{moved}\n{alloc('a')}\n{use('a', 'f')}", A5) == ["PTO-M124"]


def test_a_pointer_to_a_planned_tile_is_seen():
    raw = """%p = pto.tile_buf_addr %a : TILE -> !pto.ptr<f32, ub>
    %i = pto.castptr %p : !pto.ptr<f32, ub> -> i64
    %q = pto.castptr %i : i64 -> !pto.ptr<f32, ub>"""
    assert warnings(f"{alloc('a')}\n{raw}\n{use('a')}", A5) == []


# ---- the pages of these codes


def fragment(code: str, heading: str) -> str:
    _, wrong, right = explain.programs(code)
    return wrong if heading == "Wrong" else right


PAGES = ["PTO-M120", "PTO-M121", "PTO-M122", "PTO-M123", "PTO-M124", "PTO-M128"]


def codes(code: str, heading: str) -> set[str]:
    chosen = narrow(profile("a2a3"), device("910b1")) if code == "PTO-M128" else A5
    args = "%c0: index, %c1: index, %c4: index, %n: NUMBER, %x: f32"
    number = "index" if code == "PTO-M123" else "i64"
    module = program(fragment(code, heading), args=args.replace("NUMBER", number))
    try:
        return {d.code for d in plan_memory(module, chosen).warnings}
    except PtoError as error:
        return {d.code for d in error.diagnostics}


@pytest.mark.parametrize("code", PAGES)
def test_the_program_on_the_page_breaks_the_rule(code: str):
    assert codes(code, "Wrong") == {code}


@pytest.mark.parametrize("code", PAGES)
def test_the_right_program_on_the_page_is_planned(code: str):
    assert codes(code, "Right") == set()
