"""Scratch tiles that are planned, against the signatures and sizes of the header library.

`REQUIRED` and `OVERLOADED` are the calls of pto_instr.hpp that take a `tmp`: those without another
form, and those with one. Bytes are worked out by hand from the a2a3 headers.
"""

from __future__ import annotations

import pytest

from pto.cxx.forms import cxx_name
from pto.ir.text.parser import parse
from pto.isa.table import rows
from pto.target.profile import profile as find_profile
from pto.transform.scratch import complete

REQUIRED = {
    *("TROWSUM", "TROWPROD", "TROWMAX", "TROWMIN", "TROWARGMAX", "TROWARGMIN", "TCOLARGMAX"),
    *("TCOLARGMIN", "TTRANS", "TSEL", "TSELS", "TXOR", "TXORS", "TREM", "TREMS", "TPRELU"),
    *("TPOW", "TPOWS", "TADDDEQRELU"),
}
OVERLOADED = {
    *("TSORT32", "TMRGSORT", "TGATHER", "TCI", "TCVT", "TRSQRT", "TCOLSUM", "TROWEXPANDDIV"),
    *("TROWEXPANDMUL", "TROWEXPANDSUB", "TROWEXPANDADD", "TROWEXPANDMAX", "TROWEXPANDMIN"),
    *("TROWEXPANDEXPDIF", "TPRINT"),
}
OURS = {"TTRANS_CONV"}  # TTRANS of convolution tiles


def taking_scratch():
    tile_rows = [r for r in rows() if r.family.section == "tile"]
    return [r for r in tile_rows if any(o.name == "tmp" and o.role == "tmp" for o in r.operands)]


def test_every_call_that_takes_a_scratch_tile_is_known():
    assert {cxx_name(r) for r in taking_scratch()} == REQUIRED | OVERLOADED | OURS


@pytest.mark.parametrize("row", taking_scratch(), ids=lambda r: r.mnemonic)
def test_a_call_without_another_form_has_its_scratch_planned(row):
    tmp = next(o for o in row.operands if o.name == "tmp")
    if cxx_name(row) in REQUIRED:
        assert tmp.planned is not None
        assert tmp.implied or cxx_name(row) in ("TPOW", "TPOWS")  # PTOAS refuses it for integers


VEC, COLUMN = "!pto.tile_buf<vec, {}>", "!pto.tile_buf<vec, {}, blayout=col_major>"
FULL, INTS = VEC.format("16x64xf32"), VEC.format("16x64xi32")
WIDE, GROUPS = VEC.format("16x128xf32"), VEC.format("8x1024xf32")
C16, C8 = COLUMN.format("16x1xf32"), COLUMN.format("8x1xf32")
MASK, BYTES = VEC.format("16x32xui8"), VEC.format("16x64xi16")
CALLS = [  # operation, operands read, operands written, bytes on a2a3
    ("trowsum", [FULL], [C16], 32),  # one register a row: TRowReduceOps.hpp does not touch it
    ("trowsum", [WIDE], [C16], 16 * 256),
    ("trowmax", [GROUPS], [C8], 8 * 512),  # ReduceOptFP32_8x1024: 8 x 128 elements
    ("trowmin", [INTS], [COLUMN.format("16x1xi32")], 32),
    ("trowprod", [WIDE], [C16], 16 * 256),
    ("trowargmax", [FULL], [COLUMN.format("16x1xi32")], 16 * 64 * 4),
    ("tcolargmin", [FULL], [VEC.format("1x64xi32")], 16 * 64 * 4),
    ("ttrans", [FULL], [VEC.format("64x16xf32")], 16 * 64 * 4),
    ("tsel", [MASK, FULL, FULL], [FULL], 32),
    ("txor", [BYTES, BYTES], [BYTES], 16 * 64 * 2),
    ("trem", [FULL, FULL], [FULL], 2 * 72 * 4),  # RowStride + 2 * ceil(RowStride / 64) columns
    ("tprelu", [FULL, FULL], [FULL], 17 * 32),
    ("tpow", [FULL, FULL], [FULL], 16 * 64 * 4),
    ("tpows", [FULL, "f32"], [FULL], 16 * 64 * 4),
    ("trowargmin", [FULL], [COLUMN.format("16x1xi32")], 16 * 64 * 4),
    ("tcolargmax", [FULL], [VEC.format("1x64xi32")], 16 * 64 * 4),
    ("tsels", [MASK, FULL, "f32"], [FULL], 64 * 4),  # one element in TSels.hpp, a row in PTOAS
    ("txors", [BYTES, "i16"], [BYTES], 16 * 64 * 2),
    ("trems", [FULL, "f32"], [FULL], 64 * 4),  # TRemS.hpp works in one row
    ("tadddeqrelu", [INTS, INTS, "f32"], [VEC.format("16x64xf16")], 16 * 64 * 4),
    (
        "tsort32",
        [VEC.format("1x64xf32, valid=1x40"), VEC.format("1x64xui32, valid=1x40")],
        [VEC.format("1x128xf32")],
        64 * 4,
    ),
    ("tsort32", [VEC.format("1x64xf32"), VEC.format("1x64xui32")], [VEC.format("1x128xf32")], 0),
    ("tci", ["i32"], [VEC.format("1x64xi32")], 768),  # TCI.hpp: 128 f32 and 64 sums of groups
    ("tci", ["i16"], [VEC.format("1x64xi16")], 1792),
    ("tci", ["ui32"], [VEC.format("1x64xui32")], 0),  # TMULS of that path has no unsigned type
    # TCVT.md, Temporary tile. f32 to i16: 64 columns are one group of 4 * 64 bytes, and rows with
    # a partial group need 32 * (15 * 64 / 8 + 8); f16: 32 * 64 / 8, to i8 128 + 32 * 64 / 16.
    ("tcvt", [FULL], [BYTES], 256),
    ("tcvt", [VEC.format("16x64xf32, valid=?x?")], [VEC.format("16x64xi16, valid=?x?")], 4096),
    ("tcvt", [VEC.format("16x64xf32, valid=?x40")], [VEC.format("16x64xi16, valid=?x40")], 4000),
    ("tcvt", [VEC.format("16x64xf16, valid=?x64")], [VEC.format("16x64xi8, valid=?x64")], 256),
    ("tcvt", [VEC.format("16x64xf16")], [BYTES], 256),
    ("tcvt", [VEC.format("16x64xf16")], [FULL], 0),
]
ALONE = {"tsort32": "a2a3 a5", "tci": "a2a3", "tcvt": "a2a3"}  # calls that have a form without


def test_every_call_without_another_form_is_listed():
    assert {call[0].upper() for call in CALLS} >= REQUIRED


@pytest.mark.parametrize("call", CALLS, ids=lambda c: c[0])
def test_the_planned_tile_has_the_size_that_the_header_works_in(call):
    name, read, written, size = call
    args = ", ".join(f"%{n}: {type}" for n, type in enumerate([*read, *written]))
    ins = ", ".join(f"%{n}" for n in range(len(read)))
    outs = ", ".join(f"%{n + len(read)}" for n in range(len(written)))
    text = f"""func.func @k({args.replace("%", "%a")}) {{
    pto.{name} ins({ins.replace("%", "%a")} : {", ".join(read)})
      outs({outs.replace("%", "%a")} : {", ".join(written)})
    return
    }}"""
    block = min(size, 32) if name not in ALONE else size if "a5" in ALONE[name] else 0
    for profile, expected in (("a2a3", size), ("a5", block)):
        module = complete(parse(text), find_profile(profile))
        made = [op for op in module.walk() if op.name == "pto.alloc_tile"]
        assert [op.results[0].type.tile.nbytes for op in made] == [expected] * bool(expected)
        call_of = next(op for op in module.walk() if op.name == f"pto.{name}")
        assert [v for op in made for v in op.results] == list(call_of.group("tmp"))
