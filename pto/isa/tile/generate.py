"""Tile instructions that make their content from scalars: ramps, triangles, random numbers."""

from __future__ import annotations

from pto.core.tile import TileType
from pto.isa.meaning.tile import generate as meaning
from pto.isa.row.instr import INS_OUTS, INS_OUTS_INSIDE, Attr, read, write
from pto.isa.rules.rule import LIBRARY, Case, attr_in, dtype_in, rule, scalar_matches
from pto.isa.rules.scratch import FLOATS, of_bytes, work_tile
from pto.isa.rules.tile import (
    VECTOR_UNIT,
    holds_bytes,
    library_types,
    out_of_place,
    scratch_when,
    tile_family,
)

GENERATE = tile_family(
    "generate", "dst from scalars alone", text=INS_OUTS_INSIDE, rules=VECTOR_UNIT, cost="rearrange"
)


@rule("PTO-S051", "expects dst to have one row")
def _one_row(dst: TileType) -> str | None:
    return None if dst.rows == 1 else f"it has {dst.rows}"


_RAMP_BYTES = {2: 1792, 4: 768}  # of tmp, by the bytes of an element: a2a3/TCI.hpp


def _ramp_bytes(case: Case) -> int | None:
    """The bytes of tmp where a2a3 counts with vectors: signed integers, upwards.

    With tmp the header counts down from -S. It writes integers into floats, and multiplies by
    TMULS, which has no unsigned type.
    """
    dst = case.tile("dst")
    signed = dst is not None and dst.dtype.name in ("i16", "i32")
    counts = signed and case.profile.name == "a2a3" and case.word("descending") == "false"
    return _RAMP_BYTES[dst.itemsize] if dst is not None and counts else None


@rule(LIBRARY, "expects tmp only to count up in i16 or i32", severity="warning")
def _counts_up(case: Case, tmp: TileType, dst: TileType) -> str | None:
    """With tmp a2a3/TCI.hpp counts down from -S, writes integers into floats, and calls TMULS."""
    if case.word("descending") == "true":
        return "it counts down"
    return None if dst.dtype.name in ("i16", "i32") else f"dst is {dst.dtype.name}"


GENERATE.row(
    "tci",
    "dst[0,j] = S + j, or S - j when descending",
    body=meaning.RAMP,
    operands=(read("S", "scalar"), work_tile(of_bytes(FLOATS, _ramp_bytes), "tmp?"), write("dst")),
    attrs=Attr("descending", "bool", default=False, meaning="count down from S"),
    a2a3="i16 u16 i32 u32 f16 bf16 f32",
    a5="i16 u16 i32 u32",
    rules=(
        scalar_matches("S", "dst"),
        _one_row,
        holds_bytes(_RAMP_BYTES).on("a2a3"),
        scratch_when("", lambda _: True).on("a2a3"),
        out_of_place("tmp").on("a2a3"),  # read again for every 64 columns
        library_types("tmp", "f32").on("a2a3"),
        _counts_up.on("a2a3"),
    ),
    text=INS_OUTS,
    phases={"a2a3": "-tmp: S(->dst)", "a5": "-tmp: S(->dst)"},
    example="pto.tci ins(%S : i32) outs(%dst : !pto.tile_buf<vec, 1x64xi32>)",
    cite=("pto-isa docs/isa/TCI.md", "pto-isa include/pto/npu/a2a3/TCI.hpp"),
    notes=(
        "without tmp every header writes dst in a scalar loop: event.hpp and newer PTOAS give it"
        " the scalar pipe, older PTOAS the vector pipe",
        "the IR manual also defines it for several rows; every header asserts one row",
        "on a2a3 the page takes floats too; PTOAS integers only",
        "tmp is for the vector path of a2a3",
    ),
    cxx="TCI<descending> dst S tmp?",
    simulated="template <class D, class M, class T, int down> void TCI_IMPL(D& dst, T start, M&)"
    " { TCI_IMPL<D, T, down>(dst, start); }",
)
TTRI = GENERATE.row(
    "ttri",
    "dst[i,j] = 1 where j <= i + diagonal (lower) or j >= i + diagonal (upper), else 0",
    body=meaning.TRIANGLE,
    operands=(read("diagonal", "int"), write("dst")),
    attrs=Attr("upperOrLower", "i32", default=0, meaning="0 lower, 1 upper"),
    cpu="i16 u16 i32 u32 f16 bf16 f32",
    a2a3="i16 u16 i32 u32 f16 f32",
    a5="i8 u8 i16 u16 i32 u32 i64 u64 f16 bf16 f32",
    rules=attr_in("upperOrLower", "0", "1"),
    notes="i64 and u64 are in the a5 headers, not in the IR manual",
    cxx="TTRI<upperOrLower> dst diagonal",
)

_WORDS = ("key0", "key1", "counter0", "counter1", "counter2", "counter3")
GENERATE.row(
    "trandom",
    "dst[i,4k+w] = word w of Philox4x32(counter + i * n + k, key), n = 64 for each 256 columns but"
    " the last, and for those (columns - 1) % 64 + 1",
    body=meaning.RANDOM,
    operands=(*(read(name, "int") for name in _WORDS), write("dst")),
    attrs=Attr("rounds", "i32", default=10, meaning="rounds of the cipher, 7 or 10"),
    profiles="cpu a5",
    types="i32 u32",
    rules=(*(dtype_in(name, "i32").compiled for name in _WORDS), attr_in("rounds", "7", "10")),
    example="pto.trandom ins(%key0, %key1, %counter0, %counter1, %counter2, %counter3 :"
    " i32, i32, i32, i32, i32, i32) outs(%dst : !pto.tile_buf<vec, 16x64xi32>)",
    cite=("pto-isa docs/isa/TRANDOM.md", "pto-isa include/pto/npu/a5/TRandom.hpp"),
    notes=(
        "the page calls the cipher ChaCha-like; its constants and rounds are Philox",
        "order and counters as the golden and the a5 code have them; the CPU simulator puts the"
        " words of a counter 64 columns apart and adds a quarter of the row for each chunk",
    ),
    cxx="TRANDOM<rounds> dst key0 key1 counter0 counter1 counter2 counter3"
    " | = {{ TRandomKey key = {{{u_key0}, {u_key1}}};"
    " TRandomCounter counter = {{{u_counter0}, {u_counter1}, {u_counter2}, {u_counter3}}};"
    " TRANDOM<{rounds}>({dst}, key, counter); }}",
)
