"""`pto layout`: the short form, the printed offsets, findings and the picture."""

import re
from pathlib import Path

import numpy as np
import pytest

from pto.cli.layout import parse, terms
from pto.cli.main import main
from pto.core.errors import PtoError
from pto.core.tile import Role

Capture = pytest.CaptureFixture[str]

# Offsets worked out by hand from pto-isa tile_offsets.hpp, NZ with R=16, h=w=16:
# bc*256 + r*16 + c%16.
EDGE_TILE = """\
vec 16x32xf16 NZ
  role     vec, in UB
  element  f16, 2 bytes
  size     1024 bytes
  layout   NZ: blayout=col_major slayout=row_major fractal=512
           boxes go column by column, as a pen draws N
           inside a box, elements go row by row, as a pen draws Z
  box      16x16 elements = 512 bytes; the tile is 1x2 boxes
  valid    10x20 of 16x32

  offset(r, c) = c//16*256 + r*16 + c%16
  offset(15, 18) = 1*256 + 15*16 + 2*1 = element 498, byte 996

  element offsets  (| and - are box borders; [n] is outside the valid region)
        c0    c1  ..  c15  |  c16  ..  c19   c20  ..  c31
   r0    0     1  ..   15  |  256  ..  259  [260] .. [271]
   r1   16    17  ..   31  |  272  ..  275  [276] .. [287]
   ..
   r9  144   145  ..  159  |  400  ..  403  [404] .. [415]
  r10 [160] [161] .. [175] | [416] .. [419] [420] .. [431]
   ..
  r15 [240] [241] .. [255] | [496] .. [499] [500] .. [511]
"""


def printed_formula(text: str, capsys: Capture) -> str:
    assert main(["layout", text]) == 0
    return re.search(r"offset\(r, c\) = (.*)", capsys.readouterr().out)[1]


def test_report_of_an_edge_tile(capsys: Capture):
    assert main(["layout", "vec 16x32xf16 nz valid=10x20"]) == 0
    assert capsys.readouterr().out == EDGE_TILE


def test_rows_of_boxes_are_divided(capsys: Capture):
    assert main(["layout", "mat 32x16xf16 zz"]) == 0
    lines = capsys.readouterr().out.splitlines()
    above = next(i for i, line in enumerate(lines) if line.startswith("  r15"))
    assert set(lines[above + 1].strip()) == {"-"}
    assert lines[above + 2].split()[:2] == ["r16", "256"]


# Offsets that a program built from the C++ headers computed.
@pytest.mark.parametrize(
    ("text", "r", "c", "offset"),
    [
        ("mat 32x32xf16 nz", 17, 18, 786),
        ("mat 16x32xf32 zn", 9, 17, 393),
        ("acc 32x32xf32 nz fractal=1024", 17, 18, 786),
    ],
)
def test_printed_formula_gives_the_offsets_of_the_reference(text, r, c, offset, capsys: Capture):
    assert eval(printed_formula(text, capsys), {"r": r, "c": c}) == offset


# The six formulas of pto-isa tile_offsets.hpp, written out independently.
FORMULAS = {
    "nd": lambda r, c, R, C, h, w: r * C + c,
    "dn": lambda r, c, R, C, h, w: c * R + r,
    "nz": lambda r, c, R, C, h, w: c // w * R * w + r // h * h * w + r % h * w + c % w,
    "zn": lambda r, c, R, C, h, w: r // h * C * h + c // w * h * w + c % w * h + r % h,
    "zz": lambda r, c, R, C, h, w: r // h * C * h + c // w * h * w + r % h * w + c % w,
    "nn": lambda r, c, R, C, h, w: c // w * R * w + r // h * h * w + c % w * h + r % h,
}
BOXES = {"nz": (16, 8), "zz": (16, 8), "zn": (8, 16), "nn": (8, 16), "nd": (1, 1), "dn": (1, 1)}


@pytest.mark.parametrize("name", FORMULAS)
def test_printed_formula_is_the_layout(name: str, capsys: Capture):
    r, c = np.mgrid[0:32, 0:48]
    shown = eval(printed_formula(f"mat 32x48xf32 {name}", capsys), {"r": r, "c": c})
    assert (shown == FORMULAS[name](r, c, 32, 48, *BOXES[name])).all()


def test_a_single_element_has_offset_zero():
    assert terms(parse("scalar 1x1xf32"), 0, 0) == []


def test_short_form_defaults():
    tile = parse("16x32xf16")
    assert (tile.role, tile.layout.name, tile.shape, tile.valid) == (
        Role.VEC,
        "ND",
        (16, 32),
        (16, 32),
    )


def test_short_form_words_in_any_order_and_case():
    tile = parse("ACC 32x32xf32 FRACTAL=1024 valid=5x? Nz")
    assert (tile.role, tile.layout.name, tile.layout.fractal) == (Role.ACC, "NZ", 1024)
    assert tile.valid == (5, None)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("", "PTO-U003"),
        ("vec", "PTO-U003"),
        ("vec 16x32", "PTO-U003"),
        ("vec mat 16x32xf16", "PTO-U003"),
        ("vec 16x32xf16 nz zn", "PTO-U003"),
        ("vec 16x32xf16 colour=red", "PTO-U003"),
        ("vec 16x32xf16 valid=1x1 valid=2x2", "PTO-U003"),
        ("vec 16x32xf16 valid=all", "PTO-U003"),
        ("vec 16x32xf16 fractal=big", "PTO-U003"),
        ("vec 99999999999999999999x1xf16", "PTO-U003"),
        ("vector 16x32xf16", "PTO-S003"),
        ("vec 16x32xf17", "PTO-T001"),
        ("vec 16x32xf16 ny", "PTO-L001"),
        ("vec 16x32xf16 nz fractal=100", "PTO-L002"),
        ("vec 16x32xf16 valid=17x1", "PTO-V001"),
        ("vec 0x32xf16", "PTO-S001"),
        ("mat 17x32xf16 nz", "PTO-S002"),
        ("vec 16x10xf16", "PTO-S005"),
        ("vec 16x32xf16 fr", "PTO-L003"),
    ],
)
def test_bad_descriptions_are_findings(text: str, code: str, capsys: Capture):
    assert main(["layout", text]) == (2 if code.startswith("PTO-U") else 1)
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.startswith(f"error[{code}]: ")


def test_every_finding_about_a_shape_is_shown(capsys: Capture):
    assert main(["layout", "mat 17x33xf16 nz"]) == 1
    assert capsys.readouterr().err.count("error[PTO-S002]") == 2


def test_a_legal_tile_says_where(capsys: Capture):
    assert main(["layout", "left 16x32xf16 nz", "--profile", "a5"]) == 0
    assert "profile a5" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["scalar 1x1xf16 nz", "--profile", "a5"], "PTO-X001"),
        (["vec 16x32xf16 nz", "--profile", "a5", "--manual"], "PTO-X001"),
        (["vec 16x32xf8e4m3", "--profile", "a2a3"], "PTO-X002"),
        (["vec 16x32xf8e4m3", "--profile", "cpu"], "PTO-X002"),
        (["vec 4096x64xf32", "--profile", "a5"], "PTO-M001"),
        (["vec 224x256xf32", "--device", "910b1"], "PTO-M001"),
    ],
)
def test_what_a_profile_refuses(words: list[str], code: str, capsys: Capture):
    assert main(["layout", *words]) == 1
    assert f"error[{code}]: " in capsys.readouterr().err


def test_cpu_accepts_rows_the_hardware_cannot_transfer(capsys: Capture):
    assert main(["layout", "vec 16x10xf16", "--profile", "cpu"]) == 0
    assert main(["layout", "vec 16x10xf16", "--profile", "a5"]) == 1


def test_unknown_profile_is_a_usage_error(capsys: Capture):
    assert main(["layout", "16x16xf16", "--profile", "a7"]) == 2
    assert "a7" in capsys.readouterr().err


def test_png_is_written_and_named(tmp_path: Path, capsys: Capture):
    file = tmp_path / "nz.png"
    assert main(["layout", "mat 32x64xf16 nz", "--png", str(file)]) == 0
    assert file.read_bytes().startswith(b"\x89PNG")
    assert str(file) in capsys.readouterr().out


def test_a_refused_tile_writes_no_picture(tmp_path: Path):
    file = tmp_path / "bad.png"
    assert main(["layout", "mat 17x64xf16 nz", "--png", str(file)]) == 1
    assert not file.exists()


SHORT = (
    "!pto.tile_buf<vec, 16x64xf32, valid=8x8, blayout=col_major, slayout=row_major, fractal=512>"
)
LONG = (
    "!pto.tile_buf<loc=vec, dtype=f32, rows=16, cols=64, v_row=8, v_col=8, "
    "blayout=col_major, slayout=row_major, fractal=512, pad=0>"
)


@pytest.mark.parametrize("text", [SHORT, LONG])
def test_types_as_programs_spell_them(text: str):
    tile = parse(text)
    assert tile == parse("vec 16x64xf32 nz valid=8x8")


def test_a_type_that_is_no_tile_is_refused():
    with pytest.raises(PtoError) as caught:
        parse("!pto.ptr<f16, gm>")
    assert caught.value.code == "PTO-U003"


def test_pad_and_compact_storage_are_told(capsys: Capture):
    # Rows + 1 = 17 rows of 8 columns between columns of boxes: 136 elements; -inf of f32.
    text = SHORT.replace("fractal=512", "pad=3, compact=2")
    assert main(["layout", text]) == 0
    shown = capsys.readouterr().out
    assert "  pad      min, bits 0xff800000\n" in shown
    assert "  compact  row_plus_one\n" in shown
    assert "offset(r, c) = c//8*136 + r*8 + c%8\n" in shown
