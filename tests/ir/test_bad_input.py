"""Wrong text gets a coded finding at the right column, in bounded time, and never a traceback."""

from __future__ import annotations

from pathlib import Path

import pytest

from pto.core.errors import PtoError
from pto.ir.text.parser import parse, parse_file

TILE = "!pto.tile_buf<vec, 8x8xf32>"


def findings(text: str) -> list[tuple[str, int, int]]:
    with pytest.raises(PtoError) as caught:
        parse(text, "bad.pto")
    return [(d.code, d.loc.line, d.loc.col) for d in caught.value.diagnostics if d.loc]


def test_truncated_file_names_its_end() -> None:
    assert findings("module {\n  func.func @k() {\n    return\n  }\n") == [("PTO-P010", 5, 1)]


def test_unknown_operation_suggests_the_nearest() -> None:
    with pytest.raises(PtoError) as caught:
        parse("func.func @k() {\n  pto.barier #pto.pipe<PIPE_ALL>\n  return\n}")
    (found,) = caught.value.diagnostics
    assert found.code == "PTO-P021"
    assert found.help is not None
    assert found.help.startswith("did you mean `pto.barrier`")


def test_undefined_value_is_shown_at_its_column() -> None:
    text = (
        f"func.func @k(%a: {TILE}) {{\n  pto.tabs ins(%b : {TILE}) outs(%a : {TILE})\n  return\n}}"
    )
    assert findings(text) == [("PTO-P011", 2, 16)]


def test_a_wrong_type_is_shown_at_its_own_place() -> None:
    other = TILE.replace("f32", "f16")
    text = (
        f"func.func @k(%a: {TILE}) {{\n  pto.tabs ins(%a : {other}) outs(%a : {TILE})\n  return\n}}"
    )
    assert findings(text) == [("PTO-T040", 2, 21)]


def test_one_run_finds_several_mistakes() -> None:
    lines = [
        "func.func @k(%n: index) {",
        "  pto.one",
        "  %x = pto.two %n : index",
        "  return %y : index",
        "}",
    ]
    assert [f[:2] for f in findings("\n".join(lines))] == [
        ("PTO-P021", 2),
        ("PTO-P021", 3),
        ("PTO-P011", 4),
    ]


def test_a_value_whose_definition_failed_causes_no_second_finding() -> None:
    lines = [
        "func.func @k(%n: index) {",
        "  %x = pto.two %n : index",
        "  %y = arith.addi %x, %x : index",
        "  return",
        "}",
    ]
    assert [f[:2] for f in findings("\n".join(lines))] == [("PTO-P021", 2)]


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("func.func @k() {\n  return\n}\nfunc.func @k(", "PTO-P016"),
        ('module attributes {a = "unclosed} {\n}', "PTO-P002"),
        ("func.func @k(%t: !pto.tile_buf<vec, 8x8xf32) {\n  return\n}", "PTO-T038"),
        ("module {\n  \x00\n}", "PTO-P002"),
        ("%x", "PTO-P010"),
        ("func.func @k(%t: !pto.multi_tile_buf<!pto.tile_buf<vec, 8x8xf32>>) {\n}", "PTO-T038"),
        (
            "func.func @k(%t: !pto.multi_tile_buf<!pto.tile_buf<vec, 8x8xf32>, !pto.align,"
            " count=2>) {\n}",
            "PTO-T038",
        ),
        (")", "PTO-P020"),
    ],
)
def test_malformed_text_has_its_code(text: str, code: str) -> None:
    assert code in [f[0] for f in findings(text)]


def test_deep_nesting_is_refused_not_a_stack_overflow() -> None:
    depth = 5_000
    text = "func.func @k(%c: i1) {" + "scf.if %c {" * depth + "}" * depth + "return }"
    assert "PTO-P023" in [f[0] for f in findings(text)]


@pytest.mark.parametrize("opened", ["(" * 5_000, "() -> (" * 5_000])
def test_deeply_nested_function_types_are_refused(opened: str) -> None:
    text = f'func.func @k(%c: i1) {{\n"pto.tadd"(%c) : {opened}\nreturn\n}}'
    assert "PTO-P023" in [f[0] for f in findings(text)]


def test_deeply_nested_attributes_are_refused() -> None:
    text = "module attributes {a = " + "[" * 5_000 + "]" * 5_000 + "} {}"
    assert "PTO-P023" in [f[0] for f in findings(text)]


def test_a_line_of_a_million_characters_is_read() -> None:
    constants = " ".join(f"%c{n} = arith.constant {n} : index" for n in range(30_000))
    text = "func.func @k() { " + constants + " return }"
    assert len(text) > 1_000_000
    assert sum(1 for _ in parse(text).walk()) == 30_003


def test_a_hostile_type_costs_linear_time() -> None:
    assert findings("func.func @k(%a: " + "!a<" * 200_000 + ") { return }")


def test_findings_are_bounded() -> None:
    with pytest.raises(PtoError) as caught:
        parse("func.func @k() {\n" + "  pto.nothing\n" * 10_000 + "  return\n}")
    assert len(caught.value.diagnostics) == 50


def test_a_file_that_is_not_utf8_names_the_byte_and_line(tmp_path: Path) -> None:
    path = tmp_path / "latin.pto"
    path.write_bytes(b"// ok\n// caf\xe9\nmodule {}\n")
    with pytest.raises(PtoError) as caught:
        parse_file(path)
    assert caught.value.code == "PTO-P005"
    assert "0xe9 on line 2" in str(caught.value)


def test_a_missing_file_is_a_finding(tmp_path: Path) -> None:
    with pytest.raises(PtoError) as caught:
        parse_file(tmp_path / "none.pto")
    assert caught.value.code == "PTO-P004"


def test_segment_sizes_that_do_not_fit_are_refused() -> None:
    sizes = "operandSegmentSizes = array<i32: -1, 1, 5>"
    alloc = f'%t = "pto.alloc_tile"(%a) {{{sizes}}} : (index) -> {TILE}'
    text = f"func.func @k(%a: index) {{\n  {alloc}\n  return\n}}"
    assert ("PTO-P012", 2) in [f[:2] for f in findings(text)]


@pytest.mark.parametrize(
    "cut", ["    %c = arith.constant 1.0", "    %t = pto.alloc_tile :", "    pto.tadd ins("]
)
def test_a_file_that_is_cut_has_one_finding(cut: str) -> None:
    assert len(findings("module {\n  func.func @k() {\n" + cut)) == 1
