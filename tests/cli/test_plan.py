"""`pto plan`: the table, the bars, data for other tools, and the picture."""

import json
from pathlib import Path

import pytest

from pto.cli.main import main

Capture = pytest.CaptureFixture[str]
TILE = "!pto.tile_buf<vec, 16x64xf32>"
PROGRAM = f"""module attributes {{pto.target_arch = "a5"}} {{
  func.func @scale() {{
    %x = pto.alloc_tile : {TILE}
    %y = pto.alloc_tile : {TILE}
    pto.tabs ins(%x : {TILE}) outs(%y : {TILE})
    pto.tabs ins(%y : {TILE}) outs(%y : {TILE})
    %z = pto.alloc_tile : {TILE}
    pto.tabs ins(%y : {TILE}) outs(%z : {TILE})
    return
  }}
  func.func @idle() {{
    return
  }}
}}
"""
BIG = PROGRAM.replace("16x64", "256x128")


@pytest.fixture
def program(tmp_path: Path) -> str:
    file = tmp_path / "scale.pto"
    file.write_text(PROGRAM)
    return str(file)


def test_the_table_has_a_row_for_each_tile(program: str, capsys: Capture):
    assert main(["plan", program]) == 0
    out = capsys.readouterr().out
    assert "profile a5" in out
    rows = [line.split() for line in out.splitlines() if line.startswith("  %")]
    assert rows == [
        ["%x", "vec", "16x64xf32", "ND", "ub", "0x00000..0x01000", "4,096", "5"],
        ["%y", "vec", "16x64xf32", "ND", "ub", "0x01000..0x02000", "4,096", "5-8"],
        ["%z", "vec", "16x64xf32", "ND", "ub", "0x02000..0x03000", "4,096", "8"],
    ]
    assert "12,288 of 262,144 bytes (4.7%)" in out
    assert "no local buffers: @idle" in out


def test_who_placed_a_tile_is_said_when_it_was_not_the_planner(tmp_path: Path, capsys: Capture):
    file = tmp_path / "placed.pto"
    at = "%at = arith.constant 4096 : i64\n    %x = pto.alloc_tile addr = %at"
    file.write_text(PROGRAM.replace("%x = pto.alloc_tile", at))
    assert main(["plan", str(file)]) == 0
    rows = [line for line in capsys.readouterr().out.splitlines() if line.startswith("  %")]
    assert [(row.split()[0], row.split()[-1]) for row in rows] == [
        ("%y", "planner"),
        ("%x", "program"),
        ("%z", "planner"),
    ]


def test_as_data(program: str, capsys: Capture):
    assert main(["plan", program, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    scale, idle = found["functions"]
    assert [b["name"] for b in scale["buffers"]] == ["%x", "%y", "%z"]
    assert scale["buffers"][0] == {
        "name": "%x",
        "type": "vec 16x64xf32 ND",
        "space": "ub",
        "start": 0,
        "end": 4096,
        "kind": "planned",
        "lines": [5, 5],
    }
    assert scale["use"] == [{"space": "ub", "high": 12288, "most_alive": 8192, "capacity": 262144}]
    assert idle == {"name": "idle", "buffers": [], "use": [], "ids": []}
    assert found["findings"] == []


def test_not_enough_room_is_a_finding(tmp_path: Path, capsys: Capture):
    file = tmp_path / "big.pto"
    file.write_text(BIG.replace("a5", "a3"))
    assert main(["plan", str(file), "--device", "910b1"]) == 1
    shown = capsys.readouterr().err
    assert "PTO-M120" in shown and "910b1" in shown and "%x" in shown
    assert main(["plan", str(file), "--device", "910b1", "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["findings"][0]["code"] == "PTO-M120"


def test_a_warning_is_shown_and_is_no_failure(tmp_path: Path, capsys: Capture):
    file = tmp_path / "big.pto"
    file.write_text(BIG)
    assert main(["plan", str(file), "--profile", "a2a3"]) == 0
    assert "PTO-M125" in capsys.readouterr().out


def test_one_function_alone(program: str, capsys: Capture):
    assert main(["plan", program, "--entry", "@idle"]) == 0
    assert "@scale" not in capsys.readouterr().out
    assert main(["plan", program, "--entry", "scal"]) == 2
    shown = capsys.readouterr().err
    assert "PTO-U071" in shown and "`scale`" in shown


def test_the_picture_is_written_and_named(program: str, tmp_path: Path, capsys: Capture):
    file = tmp_path / "plan.png"
    assert main(["plan", program, "--png", str(file)]) == 0
    assert file.read_bytes().startswith(b"\x89PNG")
    assert "picture of @scale" in capsys.readouterr().out


def test_a_function_without_buffers_has_no_picture(program: str, tmp_path: Path, capsys: Capture):
    file = tmp_path / "plan.png"
    assert main(["plan", program, "--entry", "idle", "--png", str(file)]) == 2
    assert "PTO-U070" in capsys.readouterr().err
    assert not file.exists()
