"""`pto sync`: the program with flags on standard output or in a file, and what is said about it."""

from __future__ import annotations

from pathlib import Path

import pytest

from pto.cli.main import main
from pto.ir.text.parser import parse, parse_file

EXAMPLE = Path(__file__).parents[2] / "examples" / "add.pto"


def names(text: str) -> list[str]:
    wanted = ("pto.set_flag", "pto.wait_flag", "pto.barrier")
    return [op.name for op in parse(text).walk() if op.name in wanted]


def test_the_program_goes_to_standard_output_and_the_proof_to_the_other(
    capsys: pytest.CaptureFixture[str],
):
    assert main(["sync", str(EXAMPLE), "--profile", "a2a3"]) == 0
    out, err = capsys.readouterr()
    assert names(out) == ["pto.set_flag", "pto.wait_flag"] * 2
    assert "2 waits, 0 barriers" in err
    assert "a2a3" in err
    assert "proven" in err and "not proven" not in err


def test_the_program_goes_to_a_file_that_checks_clean(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    made = tmp_path / "made.pto"
    assert main(["sync", str(EXAMPLE), "-o", str(made)]) == 0
    assert capsys.readouterr().out == ""
    assert main(["check", "--deep", str(made)]) == 0
    assert "orders its pipes itself" in capsys.readouterr().err


def test_a_program_with_flags_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    made = tmp_path / "made.pto"
    main(["sync", str(EXAMPLE), "-o", str(made)])
    before = made.read_bytes()
    assert main(["sync", str(made), "-o", str(made)]) == 1
    assert "PTO-U250" in capsys.readouterr().err
    assert made.read_bytes() == before


def test_a_proof_that_cannot_run_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    tile = "!pto.tile_buf<vec, 16x64xf32>"
    file = tmp_path / "arguments.pto"
    file.write_text(
        f"func.func @k(%a: {tile}, %b: {tile}) {{\n"
        f"  pto.tabs ins(%a : {tile}) outs(%b : {tile})\n"
        f"  pto.tabs ins(%b : {tile}) outs(%a : {tile})\n  return\n}}\n"
    )
    assert main(["sync", str(file), "--profile", "a2a3"]) == 0
    out, err = capsys.readouterr()
    assert names(out) == ["pto.barrier"]
    assert "not proven" in err


def test_an_output_that_cannot_be_written_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    assert main(["sync", str(EXAMPLE), "-o", str(tmp_path / "no" / "x.pto")]) == 2
    assert "PTO-U011" in capsys.readouterr().err


def test_the_input_file_is_left_alone(tmp_path: Path):
    copy = tmp_path / "add.pto"
    copy.write_bytes(EXAMPLE.read_bytes())
    assert main(["sync", str(copy), "-o", str(tmp_path / "out.pto")]) == 0
    assert copy.read_bytes() == EXAMPLE.read_bytes()
    assert len(list(parse_file(tmp_path / "out.pto").walk())) > len(list(parse_file(copy).walk()))


_ALONE = """
!t = !pto.tile_buf<vec, 16x64xf32>
module {attributes}{{
  func.func @only_vector() {{
    %one = arith.constant 1.0 : f32
    %a = pto.alloc_tile : !t
    pto.texpands ins(%one : f32) outs(%a : !t)
    {more}
    return
  }}
}}
"""
_AGAIN = "pto.tadds ins(%a, %one : !t, f32) outs(%a : !t)"


def test_a_program_that_needs_no_flag_is_proven_as_it_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    """One pipe that keeps its own order: nothing to insert (PTOAS#522, #686)."""
    file, made = tmp_path / "alone.pto", tmp_path / "made.pto"
    file.write_text(_ALONE.format(attributes='attributes {pto.target_arch = "a5"} ', more=_AGAIN))
    assert main(["sync", str(file), "-o", str(made)]) == 0
    err = capsys.readouterr().err
    assert "0 waits, 0 barriers" in err
    assert "proven" in err and "not proven" not in err
    assert main(["check", "--deep", str(made)]) == 0
    assert "PTO-R037" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("head", "declared", "options"),
    [
        ("", "", ("--profile", "a5")),
        ("// RUN: ptoas --pto-arch=a5 %s\n", "", ()),
        ("", 'attributes {pto.target_arch = "a3"} ', ("--profile", "a5")),
    ],
    ids=["asked for", "on a RUN line", "asked for against what is declared"],
)
def test_the_result_names_the_profile_that_its_flags_are_for(
    head: str, declared: str, options: tuple[str, ...], tmp_path: Path
):
    """On a2a3 V does not keep its own order: judged by that, the result would race."""
    file, made = tmp_path / "alone.pto", tmp_path / "made.pto"
    file.write_text(head + _ALONE.format(attributes=declared, more=_AGAIN))
    assert main(["sync", str(file), *options, "-o", str(made)]) == 0
    assert 'pto.target_arch = "a5"' in made.read_text()
    assert main(["check", "--deep", str(made)]) == 0
