"""TLOAD and TSTORE: facts of a2a3/TLoad.hpp, TStore.hpp, a5/TLoad.hpp, TStore.hpp and
common/arch/memory/tload_common.hpp, tstore_common.hpp, common/arch/register/tload_common.hpp."""

from __future__ import annotations

from tests.known.headers import Fact


def _warned(where: str, says: str, profiles: str, wrong: str, right: str) -> Fact:
    return Fact(where, says, profiles, wrong, right, "PTO-L066", "warning")


def _refused(where: str, says: str, profiles: str, wrong: str, right: str, code: str) -> Fact:
    return Fact(where, says, profiles, wrong, right, code)


_FP4 = "32x32x!pto.f4E2M1x2"
FACTS = [
    _warned(
        "arch/memory/tload_common.hpp:48; arch/register/tload_common.hpp:353",
        "a load takes the columns of a row from the tile, and asserts that the view has as many",
        "a2a3 a5",
        "tload gm:16x64xf32 -> vec:16x32xf32",
        "tload gm:16x32xf32 -> vec:16x64xf32:valid=16x32",
    ),
    _warned(
        "arch/memory/tload_common.hpp:54; arch/register/tload_common.hpp:363",
        "a load writes as many rows as the view has",
        "a2a3 a5",
        "tload gm:32x32xf32 -> vec:16x32xf32",
        "tload gm:2x8x32xf32 -> vec:16x32xf32",
    ),
    _warned(
        "arch/memory/tload_common.hpp:92",
        "a load of columns that lie one behind the other asserts the rows",
        "a2a3 a5",
        "tload gm:32x16xf32:DN -> vec:16x16xf32:DN",
        "tload gm:16x16xf32:DN -> vec:16x16xf32:DN",
    ),
    _warned(
        "arch/memory/tload_common.hpp:269; arch/register/tload_common.hpp:192",
        "a load into boxes writes as many rows as the view has",
        "a2a3 a5",
        "tload gm:32x32xf16 -> mat:16x32xf16:NZ",
        "tload gm:16x32xf16 -> mat:32x32xf16:NZ:valid=16x32",
    ),
    _warned(
        "arch/memory/tstore_common.hpp:362; a5/TStore.hpp:171",
        "a store asserts that rows and columns of the view are the valid ones",
        "a2a3 a5",
        "tstore vec:16x32xf32 -> gm:32x16xf32",
        "tstore vec:16x32xf32 -> gm:2x8x32xf32",
    ),
    _warned(
        "arch/memory/tstore_common.hpp:183; a5/TStore.hpp",
        "a store of an accumulator, too",
        "a2a3 a5",
        "tstore acc:16x32xf32:ACC -> gm:32x16xf32",
        "tstore acc:16x32xf32:ACC -> gm:16x32xf32",
    ),
    _warned(
        "arch/memory/tload_common.hpp:47",
        "a load into UB has fewer than 4096 rows",
        "a2a3",
        "tload gm:4096x8xf32 -> vec:4096x8xf32",
        "tload gm:4095x8xf32 -> vec:4095x8xf32",
    ),
    _warned(
        "arch/memory/tload_common.hpp:96",
        "columns that lie one behind the other are fewer than 4096",
        "a2a3",
        "tload gm:8x4096xf32:DN -> vec:8x4096xf32:DN",
        "tload gm:8x4095xf32:DN -> vec:8x4095xf32:DN",
    ),
    _warned(
        "arch/memory/tstore_common.hpp:366; a2a3/TStore.hpp:41",
        "a store has fewer than 4096 lines",
        "a2a3",
        "tstore vec:4096x8xf32 -> gm:4096x8xf32",
        "tstore vec:4096x8xf32 -> gm:2x2048x8xf32",
    ),
    _warned(
        "arch/memory/tload_common.hpp:265",
        "rows that are loaded into boxes lie at most 65535 elements apart",
        "a2a3",
        "tload gm:2x32xf16:pitch=65536 -> mat:16x32xf16:NZ:valid=2x32",
        "tload gm:2x32xf16:pitch=65535 -> mat:16x32xf16:NZ:valid=2x32",
    ),
    _warned(
        "a2a3/TLoad.hpp:105,114",
        "lines in L1 are counted in blocks of 32 bytes, the remainder is dropped",
        "a2a3",
        "tload gm:16x20xf16 -> mat:16x32xf16:valid=16x20",
        "tload gm:16x16xf16 -> mat:16x32xf16:valid=16x16",
    ),
    _warned(
        "a2a3/TLoad.hpp:144,153",
        "columns in L1, too",
        "a2a3",
        "tload gm:20x16xf16:DN -> mat:32x16xf16:DN:valid=20x16",
        "tload gm:16x16xf16:DN -> mat:32x16xf16:DN:valid=16x16",
    ),
    _warned(
        "arch/memory/tstore_common.hpp:47,56",
        "a store from L1 counts in blocks of 32 bytes",
        "a2a3",
        "tstore mat:16x32xf16:valid=16x20 -> gm:16x20xf16",
        "tstore mat:16x32xf16:valid=16x16 -> gm:16x16xf16",
    ),
    _warned(
        "arch/memory/tload_common.hpp:30; arch/register/tload_common.hpp:179",
        "boxes in memory are 16 rows of 32 bytes",
        "a2a3 a5",
        "tload gm:1x2x2x8x16xf16:NZ -> mat:16x32xf16:NZ",
        "tload gm:1x2x1x16x16xf16:NZ -> mat:16x32xf16:NZ",
    ),
    _warned(
        "arch/memory/tload_common.hpp:340; arch/register/tload_common.hpp:344",
        "boxes in UB are loaded from boxes alone",
        "a2a3 a5",
        "tload gm:16x32xf16 -> vec:16x32xf16:NZ",
        "tload gm:1x2x1x16x16xf16:NZ -> vec:16x32xf16:NZ",
    ),
    _warned(
        "arch/memory/tstore_common.hpp:339; a5/TStore.hpp:150",
        "and stored to boxes alone",
        "a2a3 a5",
        "tstore vec:16x32xf16:NZ -> gm:16x32xf16",
        "tstore vec:16x32xf16:NZ -> gm:1x2x1x16x16xf16:NZ",
    ),
    _warned(
        "a2a3/TStore.hpp:115; a5/TStore.hpp:122",
        "accumulators are stored to boxes of 16 rows",
        "a2a3 a5",
        "tstore acc:16x32xf32:ACC -> gm:1x2x2x8x16xf16:NZ",
        "tstore acc:16x32xf32:ACC -> gm:1x2x1x16x16xf16:NZ",
    ),
    _warned(
        "arch/memory/tload_common.hpp:319",
        "elements of 8 bytes are loaded without boxes",
        "a2a3",
        "tload gm:1x4x1x16x4xi64:NZ -> vec:16x16xi64:NZ",
        "tload gm:16x16xi64 -> vec:16x16xi64",
    ),
    _warned(
        "arch/memory/tstore_common.hpp:349",
        "and stored without boxes",
        "a2a3",
        "tstore vec:16x16xi64:NZ -> gm:1x4x1x16x4xi64:NZ",
        "tstore vec:16x16xi64 -> gm:16x16xi64",
    ),
    _warned(
        "arch/register/tload_common.hpp:156",
        "elements of 8 bytes are not brought into boxes",
        "a5",
        "tload gm:16x16xi64 -> mat:16x16xi64:NZ",
        "tload gm:16x16xi64 -> mat:16x16xi64",
    ),
    _refused(
        "arch/memory/tload_common.hpp:349",
        "columns that lie one behind the other become boxes of ZN, not of NZ",
        "a2a3",
        "tload gm:32x32xf16:DN -> mat:32x32xf16:NZ",
        "tload gm:32x32xf16:DN -> mat:32x32xf16:ZN",
        "PTO-L061",
    ),
    _refused(
        "arch/register/tload_common.hpp:162",
        "a5 has both, but of packed pairs ZN alone",
        "a5",
        f"tload gm:{_FP4}:DN -> mat:{_FP4}:NZ",
        "tload gm:32x32xf16:DN -> mat:32x32xf16:NZ",
        "PTO-L061",
    ),
    _warned(
        "arch/memory/tload_common.hpp:259,281; arch/register/tload_common.hpp:158",
        "a load into boxes has two axes",
        "a2a3 a5",
        "tload gm:2x8x32xf16 -> mat:16x32xf16:NZ",
        "tload gm:1x16x32xf16 -> mat:16x32xf16:NZ",
    ),
    _refused(
        "arch/memory/tload_common.hpp:311; a5/TLoad.hpp",
        "a load goes to UB or L1",
        "a2a3 a5",
        "tload gm:16x32xf16 -> left:16x32xf16:NZ",
        "tload gm:16x32xf16 -> mat:16x32xf16:NZ",
        "PTO-L020",
    ),
    _refused(
        "a2a3/TStore.hpp:210; a5/TStore.hpp:130",
        "f32 is not stored as bytes without a scale",
        "a2a3 a5",
        "tstore acc:16x32xf32:ACC -> gm:16x32xi8",
        "tstore acc:16x32xf32:ACC -> gm:16x32xbf16",
        "PTO-T061",
    ),
    _refused(
        "a2a3/TStore.hpp:222; a5/TStore.hpp:120",
        "accumulators have at most 4095 columns",
        "a2a3 a5",
        "tstore acc:16x4096xf32:ACC -> gm:16x4096xf32",
        "tstore acc:16x2048xf32:ACC -> gm:16x2048xf32",
        "PTO-S064",
    ),
    Fact(
        "arch/memory/tload_common.hpp:267,291; arch/register/tload_common.hpp:147",
        "tiles in L1 have at most 16384 rows",
        why="boxes of so many rows, of 32 bytes each, do not fit into L1",
    ),
    Fact(
        "a2a3/TStore.hpp:223; a5/TStore.hpp:121",
        "accumulators have at most 8192 rows",
        why="they do not fit into L0C",
    ),
    Fact(
        "arch/memory/tload_common.hpp:264",
        "rows that are loaded into boxes have at most 65535 elements",
        why="they are at most as long as rows lie apart, which has a rule",
    ),
]
