"""Element types, layouts, places and regions that the headers of vector instructions assert.

One row an instruction: a call with `{}` for the element type, the types of each chip with the line
that asserts them, and which tiles are asserted to be row-major and to have one valid region.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

PLAIN = ["i8", "ui8", "i16", "ui16", "i32", "ui32", "i64", "ui64", "f16", "bf16", "f32"]

_F = "f16 f32"
_W = f"i16 i32 {_F}"
_INTS = "i8 ui8 i16 ui16 i32 ui32"
_INTS64 = f"{_INTS} i64 ui64"
_ALL32 = f"{_INTS} {_F} bf16"
_ALL = f"{_ALL32} i64 ui64"
_MUL = "i16 ui16 i32 ui32 i64 ui64 f16 bf16 f32"
_DIV = "i16 ui16 i32 ui32 i64 ui64 f16 f32"


@dataclass(frozen=True)
class Asserted:
    """What headers assert of the tiles of one call.

    `a2a3` and `a5`: a place in the headers, a colon, the element types; empty where the instruction
    does not exist or its types have no assertion. `rows`: positions of tiles that must be
    row-major, `valid`: of those that share one valid region; others are work space or have rules of
    their own.
    """

    call: str
    a2a3: str = ""
    a5: str = ""
    rows: str = ""
    valid: str = ""

    def types(self) -> Iterator[tuple[str, str, set[str]]]:
        """Profile, place and types of each chip."""
        for profile, text in (("a2a3", self.a2a3), ("a5", self.a5)):
            if text:
                where, _, types = text.rpartition(": ")
                yield profile, where, set(types.split())

    def of(self, elem: str) -> str:
        return self.call.replace("{}", elem)

    def with_tile(self, elem: str, position: int, change: str) -> str:
        """The call with one tile changed: `mat`, a layout, or `valid=..`."""
        words = self.of(elem).split()
        place = [n for n, word in enumerate(words) if word.startswith("vec:")][position]
        word = words[place]
        words[place] = word.replace("vec:", "mat:") if change == "mat" else f"{word}:{change}"
        return " ".join(words)


_T = "vec:16x64x{}"
_DN = "vec:32x1x{}:DN"


def _binary(names: str, a2a3: str, a5: str) -> list[Asserted]:
    return [Asserted(f"{n} {_T} {_T} -> {_T}", a2a3, a5, "0 1 2", "0 1 2") for n in names.split()]


def _scalar(names: str, a2a3: str, a5: str) -> list[Asserted]:
    return [Asserted(f"{n} {_T} s:{{}} -> {_T}", a2a3, a5, "0 1", "0 1") for n in names.split()]


def _unary(names: str, a2a3: str, a5: str) -> list[Asserted]:
    return [Asserted(f"{n} {_T} -> {_T}", a2a3, a5, "0 1", "0 1") for n in names.split()]


def _by_column(names: str, a2a3: str, a5: str) -> list[Asserted]:
    call = f"tcolexpand{{}} {_T} vec:1x64x{{}} -> {_T}"
    return [Asserted(call.replace("{}", n, 1), a2a3, a5, "0 1 2", "0 2") for n in names.split()]


def _by_row(names: str, a2a3: str, a5: str) -> list[Asserted]:
    call = f"trowexpand{{}} vec:32x64x{{}} {_DN} -> vec:32x64x{{}}"
    return [Asserted(call.replace("{}", n, 1), a2a3, a5, "2", "0 2") for n in names.split()]


def _rows(names: str, a2a3: str, a5: str) -> list[Asserted]:
    call = f"{{}} vec:32x64x{{}} vec:32x64x{{}} -> {_DN}"
    return [Asserted(call.replace("{}", n, 1), a2a3, a5, "0") for n in names.split()]


def _columns(names: str, a2a3: str, a5: str) -> list[Asserted]:
    call = f"{{}} {_T} -> vec:1x64x{{}}"
    return [Asserted(call.replace("{}", n, 1), a2a3, a5, "0 1") for n in names.split()]


ASSERTED = [
    *_binary("tadd", f"TAdd.hpp:62: {_W}", f"TAdd.hpp:60: {_ALL}"),
    *_binary("tsub", f"TSub.hpp:61: {_W}", f"TSub.hpp:59: {_ALL}"),
    *_binary("tmul", f"TMul.hpp:61: {_W}", f"TMul.hpp:59: {_MUL}"),
    *_binary("tdiv", f"TDiv.hpp:58: {_F}", f"TDiv.hpp:67: {_DIV}"),
    *_binary("tmax tmin", f"TMax.hpp:61, TMin.hpp:62: {_W}", f"TMax.hpp:59, TMin.hpp:59: {_ALL}"),
    *_binary("tand tor", "", f"TAnd.hpp:50, TOr.hpp:50: {_INTS}"),
    *_binary("tshl tshr", f"TShl.hpp:44, TShr.hpp:44: {_INTS}", f"TShl.hpp:81: {_INTS64}"),
    *_binary("tfmod", "TFmod.hpp:70: f32", f"TFMod.hpp:89: i16 ui16 i32 ui32 {_F}"),
    *_binary("tfusedmuladd tfusedmuladdrelu tmuladddst tsubrelu", *[f"TFusedMulAdd.hpp: {_F}"] * 2),
    Asserted(f"txor {_T} {_T} {_T} -> {_T}", "", f"TXor.hpp:54: {_INTS}", "0 1 3", "0 1 3"),
    Asserted(
        f"trem {_T} {_T} vec:17x64x{{}} -> {_T}",
        "TRem.hpp:177: i32 f32",
        f"TRem.hpp:107: {_DIV}",
        "0 1 3",
        "0 1 3",
    ),
    Asserted(
        f"tprelu {_T} {_T} vec:17x64xui8 -> {_T}",
        f"TPrelu.hpp:27: {_F}",
        f"TPrelu.hpp:53: {_F}",
        "0 1 3",
        "0 1 3",
    ),
    Asserted(
        f"tcmp {_T} {_T} -> vec:16x64xui8",
        "TCmp.hpp:119: i32 f16 f32",
        f"TCmp.hpp:138: {_ALL}",
        "0 1 2",
        "0 1",
    ),
    Asserted(
        f"tcmps {_T} s:{{}} -> vec:16x64xui8",
        "TCmps.hpp:155, and :63 compares i16 and u16 as half: i32 f16 f32",
        f"TCmps.hpp:231: {_ALL}",
        "0 1",
    ),
    Asserted(
        f"tsels vec:16x64xui8 {_T} vec:1x64xui8 s:{{}} -> {_T}",
        "",
        f"TSels.hpp:124: {_INTS64} {_F}",
        "0 1 3",
        "1 3",
    ),
    *_scalar("tadds", f"TAddS.hpp:52: {_W}", f"TAddS.hpp:57: {_ALL}"),
    *_scalar("tsubs", f"TSubS.hpp:52: {_W}", f"TSubS.hpp:57: {_ALL}"),
    *_scalar("tmuls", f"TMulS.hpp:52: {_W}", f"TMulS.hpp:57: {_MUL}"),
    *_scalar("tdivs", f"TDivS.hpp:220: {_W}", f"TDivS.hpp:138: {_DIV}"),
    *_scalar("tmaxs tmins", f"TMaxS.hpp:53, TMins.hpp:52: {_W}", f"TMaxs.hpp:57: {_ALL}"),
    *_scalar("tshls tshrs", "", f"TShlS.hpp:57, TShrS.hpp:57: {_INTS64}"),
    *_scalar("tlrelu", f"TLRelu.hpp:53: {_F}", f"TLRelu.hpp:50: {_F}"),
    *_scalar("tfmods", "TFmodS.hpp:73: f32", f"TFModS.hpp:93: i16 ui16 i32 ui32 {_F}"),
    *_unary("texp tlog tsqrt", f"TUnaryOp.hpp:265: {_F}", f"TUnaryOp.hpp:149: {_F}"),
    *_unary("trsqrt", f"TUnaryOp.hpp:265: {_F}", f"TRsqrt.hpp:194: {_F}"),
    *_unary("tabs", f"TUnaryOp.hpp:265: {_F}", f"TUnaryOp.hpp:316: {_F} i8 i16 i32"),
    *_unary("trelu", f"TUnaryOp.hpp:408: {_F} i32", f"TUnaryOp.hpp:247: {_F} i32"),
    *_unary("tnot", "", f"TUnaryOp.hpp:212: {_INTS}"),
    Asserted(
        f"texpands s:{{}} -> {_T}", f"TExpandS.hpp:144: {_ALL32}", f"TExpandS.hpp:149: {_ALL}"
    ),
    *_by_column(
        "add sub mul max min",
        f"TColExpandBinOp.hpp:89: {_W}",
        f"TColExpandBinOp.hpp:197: {_ALL32}",
    ),
    *_by_column("div", f"TColExpandDiv.hpp:52: {_F}", ""),
    *_by_column("expdif", f"TColExpandExpdif.hpp:59: {_F}", f"TColExpandExpdif.hpp:54: {_F}"),
    *_by_row(
        "add sub mul max min",
        f"TRowExpandAdd.hpp:40,86 and siblings: {_W}",
        f"TRowExpandAdd.hpp:55 and siblings: {_ALL32}",
    ),
    *_by_row("div", f"TRowExpandDiv.hpp:55: {_F}", f"TRowExpandDiv.hpp:84: {_ALL32}"),
    *_by_row("expdif", "", f"TRowExpandExpdif.hpp:81: {_F}"),
    *_columns("tcolmax tcolmin", f"TColReduceOps.hpp:87: {_W}", f"TColReduceOps.hpp:31: {_ALL}"),
    *_columns("tcolsum", f"TColSum.hpp:102: {_W}", f"TColReduceOps.hpp:31: {_ALL}"),
    *_columns("tcolprod", f"TColReduceOps.hpp:87: {_W}", f"TColProd.hpp:42: {_W} bf16 ui16 ui32"),
    *_rows(
        "trowmax trowmin",
        f"TRowReduceOps.hpp:197: {_W}",
        f"TRowReduce.hpp:365,420, Int64Reduce.hpp: {_W} i8 ui8 i64 ui64",
    ),
    *_rows(
        "trowsum",
        f"TRowReduceOps.hpp:197: {_W}",
        f"TRowReduce.hpp:393, Int64Reduce.hpp: {_W} i64 ui64",
    ),
    *_rows("trowprod", f"TRowProd.hpp:70: {_W}", f"TRowProd.hpp:27: {_W}"),
    *[
        Asserted(
            f"{name} {_T} {_T} -> vec:1x64xi32",
            f"TColReduceIdx.hpp:26: ui16 ui32 {_F}",
            f"TColArgMax.hpp:26: {_ALL32}",
            "0 2",
        )
        for name in ("tcolargmax", "tcolargmin")
    ],
    *[
        Asserted(
            f"{name} {_T} {_T} vec:16x64xi32 vec:16x64xi32 -> {_T} vec:16x64xi32",
            f"TPartArgOp.hpp:188: {_F}",
            "",
            "0 1 2 3 4 5",
        )
        for name in ("tpartargmax", "tpartargmin")
    ],
    *_unary("tpairreducesum", f"TPairReduceSum.hpp:135: {_F}", f"TPairReduceSum.hpp:125: {_F}"),
    *[
        Asserted(
            f"{name} {_T} {_T} -> {_T}",
            f"TPartAdd.hpp:74 and siblings: {_W}",
            f"TPartAdd.hpp:33 and siblings: {_ALL}",
            "0 1 2",
        )
        for name in ("tpartadd", "tpartmax", "tpartmin")
    ],
    Asserted(
        f"tpartmul {_T} {_T} -> {_T}",
        f"TPartMul.hpp:74: {_W}",
        f"TPartMul.hpp:32: {_ALL32}",
        "0 1 2",
    ),
    Asserted(
        f"tconcat {_T} {_T} -> vec:16x128x{{}}",
        f"TConcat.hpp:75: {_ALL32}",
        f"TConcat.hpp:82: {_ALL32}",
        "0 1 2",
    ),
    Asserted(
        "ttri s:i32 -> vec:32x32x{}",
        f"TTri.hpp:93: {_W} ui16 ui32",
        f"TTri.hpp:99: {_ALL}",
        "0",
    ),
    Asserted("tci s:{} -> vec:1x64x{}", "", "Tci.hpp:30: i16 ui16 i32 ui32", "0"),
    *[
        Asserted(
            f"{name} {_T} {_T} -> {_T} {_T}", "", f"{header}.hpp:26: {_ALL32}", "0 1 2 3", "0 1 2 3"
        )
        for name, header in (("tinterleave", "TInterleave"), ("tdeinterleave", "TDeInterleave"))
    ],
    Asserted("trandom" + " s:i32" * 6 + f" -> {_T}", "", "TRandom.hpp:151: i32 ui32", "0"),
    Asserted(
        "tsort32 vec:1x32x{} vec:1x32xui32 -> vec:1x128x{}",
        f"TSort32.hpp:150: {_F}",
        f"TSort32.hpp:171: {_F}",
        "0 1 2",
    ),
]
