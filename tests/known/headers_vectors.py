"""Tiles in UB: facts of TTrans.hpp, TQuant.hpp, TColReduceIdx.hpp, TSel.hpp, TCmp.hpp, TGather.hpp,
TScatter.hpp, TSort32.hpp, TMrgSort.hpp, TRowReduce.hpp and TColReduceOps.hpp of both NPUs."""

from __future__ import annotations

from tests.known.headers import Fact


def _warned(where: str, says: str, profiles: str, wrong: str, right: str) -> Fact:
    return Fact(where, says, profiles, wrong, right, "PTO-L066", "warning")


def _refused(where: str, says: str, profiles: str, wrong: str, right: str, code: str) -> Fact:
    return Fact(where, says, profiles, wrong, right, code)


_TRANS = "ttrans vec:{} vec:{} -> vec:{}"
_KIND = "{{quant_type = #pto<quant_type INT8_SYM>}}"
_QUANT = "tquant vec:16x32xf32 vec:16x1xf32:DN -> vec:16x32x{} " + _KIND
FACTS = [
    _warned(
        "a5/TTrans.hpp:831",
        "src of a transposition is row-major",
        "a5",
        _TRANS.format("16x32xf32:DN", "32x16xf32", "32x16xf32"),
        _TRANS.format("16x32xf32", "16x32xf32", "32x16xf32"),
    ),
    _refused(
        "a2a3/TTrans.hpp:1124",
        "src of a transposition is row-major",
        "a2a3",
        _TRANS.format("16x32xf32:DN", "16x32xf32", "32x16xf32"),
        _TRANS.format("16x32xf32", "16x32xf32", "32x16xf32"),
        "PTO-L023",
    ),
    _warned(
        "a2a3/TTrans.hpp; a5/TTrans.hpp:297",
        "rows of dst lie RowStride apart, which is 1 in DN",
        "a2a3 a5",
        _TRANS.format("16x32xf32", "16x32xf32", "32x16xf32:DN"),
        _TRANS.format("16x32xf32", "16x32xf32", "32x16xf32"),
    ),
    _warned(
        "a5/TTrans.hpp:317,331",
        "positions of narrow elements in dst have 16 bits where src is wider than high",
        "a5",
        _TRANS.format("256x512xi8", "32x32xi8", "512x256xi8"),
        _TRANS.format("128x512xi8", "32x32xi8", "512x128xi8"),
    ),
    _warned(
        "a5/TTrans.hpp:323,337",
        "else positions in src",
        "a5",
        _TRANS.format("512x256xi8", "32x32xi8", "256x512xi8"),
        _TRANS.format("512x128xi8", "32x32xi8", "128x512xi8"),
    ),
    _refused(
        "a5/TTrans.hpp:832",
        "lines of a transposition are whole blocks of 32 bytes",
        "a5",
        _TRANS.format("16x32xf16", "16x32xf16", "32x8xf16"),
        _TRANS.format("16x32xf16", "16x32xf16", "32x16xf16"),
        "PTO-S061",
    ),
    _warned(
        "a2a3/TQuant.hpp:30; a5/TQuant.hpp:3231",
        "INT8_SYM writes int8",
        "a2a3 a5",
        _QUANT.format("ui8"),
        _QUANT.format("i8"),
    ),
    _warned(
        "a2a3/TColReduceIdx.hpp:26",
        "the index of an extreme in a column is of unsigned integers and floats",
        "a2a3",
        "tcolargmax vec:16x32xi32 vec:16x32xi32 -> vec:1x32xi32",
        "tcolargmax vec:16x32xui32 vec:16x32xui32 -> vec:1x32xi32",
    ),
    _warned(
        "a2a3/TColReduceIdx.hpp:123; a5/TColReduceIdx.hpp:259",
        "rows of src are Cols elements apart, also of DN, which the assertion lets through",
        "a2a3 a5",
        "tcolargmax vec:16x32xf32:DN vec:16x32xf32 -> vec:1x32xi32",
        "tcolargmax vec:16x32xf32 vec:16x32xf32 -> vec:1x32xi32",
    ),
    _warned(
        "a2a3/TColReduceIdx.hpp:175",
        "the number of a row of 16-bit elements becomes f16 before it becomes i32",
        "a2a3",
        "tcolargmin vec:2050x16xf16 vec:2050x16xf16 -> vec:1x16xi32",
        "tcolargmin vec:2049x16xf16 vec:2049x16xf16 -> vec:1x16xi32",
    ),
    Fact(
        "a2a3/TColReduceIdx.hpp:90",
        "u16 and u32 are compared as f16 and f32 of the same bits",
        why="only numbers from 0x7c01 and 0x7f800001 compare otherwise, which no rule sees; the"
        " row says so",
    ),
    _warned(
        "a5/TDivS.hpp:138",
        "a tile of bytes is not divided, though a number is divided by one",
        "a5",
        "tdivs vec:16x32xui8 s:ui8 -> vec:16x32xui8",
        "tdivs s:ui8 vec:16x32xui8 -> vec:16x32xui8",
    ),
    _refused(
        "a2a3/TSel.hpp:67",
        "elements that are selected have 2 or 4 bytes",
        "a2a3",
        "tsel vec:16x32xui8 vec:16x32xi8 vec:16x32xi8 vec:1x32xui8 -> vec:16x32xi8",
        "tsel vec:16x32xui8 vec:16x32xf16 vec:16x32xf16 vec:1x32xui8 -> vec:16x32xf16",
        "PTO-X011",
    ),
    _refused(
        "a5/TSels.hpp:124",
        "a selection with a number has no bf16",
        "a5",
        "tsels vec:16x32xui8 vec:16x32xbf16 vec:1x32xui8 s:bf16 -> vec:16x32xbf16",
        "tsels vec:16x32xui8 vec:16x32xf16 vec:1x32xui8 s:f16 -> vec:16x32xf16",
        "PTO-X011",
    ),
    _refused(
        "a2a3/TCmp.hpp:119",
        "tiles of i32, f16 and f32 are compared",
        "a2a3",
        "tcmp vec:16x32xi16 vec:16x32xi16 -> vec:16x32xui8",
        "tcmp vec:16x32xi32 vec:16x32xi32 -> vec:16x32xui8",
        "PTO-X011",
    ),
    _refused(
        "a2a3/TCmps.hpp:155",
        "with a number the same types, and 16-bit integers",
        "a2a3",
        "tcmps vec:16x32xui32 s:ui32 -> vec:16x32xui8",
        "tcmps vec:16x32xf16 s:f16 -> vec:16x32xui8",
        "PTO-X011",
    ),
    _refused(
        "a2a3/TGather.hpp:23",
        "indices of a gather have 32 bits",
        "a2a3",
        "tgather vec:16x32xf32 vec:16x32xi16 vec:16x32xi16 -> vec:16x32xf32",
        "tgather vec:16x32xf32 vec:16x32xi32 vec:16x32xi32 -> vec:16x32xf32",
        "PTO-T050",
    ),
    _refused(
        "a5/TGather.hpp:29",
        "elements of 8 bytes are gathered by indices of 32 bits",
        "a5",
        "tgather vec:16x32xi64 vec:16x32xi16 vec:16x32xi16 -> vec:16x32xi64",
        "tgather vec:16x32xi64 vec:16x32xi32 vec:16x32xi32 -> vec:16x32xi64",
        "PTO-T050",
    ),
    _refused(
        "a2a3/TScatter.hpp:73; a5/TScatter.hpp:94",
        "elements of 4 bytes are scattered by indices of 32 bits",
        "a2a3 a5",
        "tscatter vec:16x32xf32 vec:16x32xi16 -> vec:16x32xf32",
        "tscatter vec:16x32xf32 vec:16x32xi32 -> vec:16x32xf32",
        "PTO-T050",
    ),
    _refused(
        "a2a3/TSort32.hpp:150; a5/TSort32.hpp:171",
        "f16 and f32 are sorted",
        "a2a3 a5",
        "tsort32 vec:1x32xbf16 vec:1x32xui32 -> vec:1x128xbf16",
        "tsort32 vec:1x32xf32 vec:1x32xui32 -> vec:1x64xf32",
        "PTO-X011",
    ),
    Fact(
        "a2a3/TSort32.hpp:154; a5/TSort32.hpp:175",
        "indices of a sort are uint32_t",
        why="signless i32 is taken as ui32, and exports write it so (`element=` of the operand)",
    ),
    _refused(
        "a2a3/TMrgSort.hpp:291",
        "lists that are merged have a multiple of 64 elements",
        "a2a3 a5",
        "tmrgsort vec:1x256xf32 32 -> vec:1x256xf32",
        "tmrgsort vec:1x256xf32 64 -> vec:1x256xf32",
        "PTO-S056",
    ),
    _refused(
        "a2a3/TMrgSort.hpp:292",
        "four lists are merged at a time",
        "a2a3",
        "tmrgsort vec:1x320xf32 64 -> vec:1x320xf32",
        "tmrgsort vec:1x512xf32 64 -> vec:1x512xf32",
        "PTO-S056",
    ),
    _refused(
        "a2a3/TRowReduceOps.hpp:186; a5/TRowReduce.hpp:181",
        "rows that are reduced are row-major",
        "a2a3 a5",
        "trowsum vec:16x32xf32:DN vec:16x32xf32 -> vec:16x1xf32:DN",
        "trowsum vec:16x32xf32 vec:16x32xf32 -> vec:16x1xf32:DN",
        "PTO-L023",
    ),
    _refused(
        "a2a3/TRowReduceOps.hpp:190; a5/TRowReduce.hpp:188",
        "a column-major result has one column",
        "a2a3 a5",
        "trowmax vec:16x32xf32 vec:16x32xf32 -> vec:16x8xf32:DN:valid=16x1",
        "trowmax vec:16x32xf32 vec:16x32xf32 -> vec:16x8xf32:valid=16x1",
        "PTO-S051",
    ),
    _refused(
        "a5/TRowReduce.hpp:393",
        "bytes are not multiplied",
        "a5",
        "trowprod vec:32x32xi8 vec:32x32xi8 -> vec:32x1xi8:DN",
        "trowmax vec:32x32xi8 vec:32x32xi8 -> vec:32x1xi8:DN",
        "PTO-T024",
    ),
    _refused(
        "a2a3/TColReduceOps.hpp:81; a5/TColReduceOps.hpp:24",
        "columns that are reduced are row-major",
        "a2a3 a5",
        "tcolmax vec:16x32xf32:DN -> vec:1x32xf32",
        "tcolmax vec:16x32xf32 -> vec:1x32xf32",
        "PTO-L023",
    ),
    _refused(
        "a2a3/TColReduceOps.hpp:87",
        "columns of bytes are not reduced",
        "a2a3",
        "tcolmax vec:16x32xi8 -> vec:1x32xi8",
        "tcolmax vec:16x32xi16 -> vec:1x32xi16",
        "PTO-X011",
    ),
    _refused(
        "a2a3/TDequant.hpp:113; a5/TDeQuant.hpp:111",
        "f32 is restored",
        "a2a3 a5",
        "tdequant vec:16x32xi8 vec:16x1xf32:DN vec:16x1xf32:DN -> vec:16x32xf16",
        "tdequant vec:16x32xi8 vec:16x1xf32:DN vec:16x1xf32:DN -> vec:16x32xf32",
        "PTO-T021",
    ),
]
