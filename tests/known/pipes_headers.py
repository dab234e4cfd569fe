"""Facts about pipes as the headers of pto-isa (include/pto, 2026-08) have them, in our own words.

Written from the headers alone, without looking at the rows; `test_pipes.py` compares. `ONE_PIPE` is
what common/event.hpp gives to an instruction, or the instructions its code consists of. `SEVERAL`
are the instructions whose code touches memory on more than one pipe, or on another than that.
"""

from __future__ import annotations

from typing import NamedTuple

ONE_PIPE: dict[str, str] = {
    "V": """
        tadd tsub tmul tdiv tmax tmin trem tfmod tpow tprelu tabs tneg trelu texp tlog tsqrt trecip
        trsqrt tadds tsubs tmaxs tmins tmuls tdivs trems tfmods tpows tlrelu tand tor txor tshl tshr
        tnot tands tors txors tshls tshrs taddc tsubc taddsc tsubsc taxpy tfusedmuladd
        tfusedmuladdrelu tmuladddst taddrelu tsubrelu taddreluconv tsubreluconv tadddeqrelu tcmp
        tcmps tsel tsels tcvt tpack tquant tquant.mx tdequant trowsum trowprod trowmax trowmin
        trowargmax trowargmin tpairreducesum tcolsum tcolprod tcolmax tcolmin tcolargmax tcolargmin
        trowexpand tcolexpand trowexpandadd trowexpandsub trowexpandmul trowexpandmax trowexpandmin
        trowexpanddiv trowexpandexpdif tcolexpandadd tcolexpandsub tcolexpandmul tcolexpandmax
        tcolexpandmin tcolexpanddiv tcolexpandexpdif tpartadd tpartmul tpartmax tpartmin tpartargmax
        tpartargmin tsort32 tmrgsort tgather tgatherb tscatter thistogram tci ttri trandom ttrans
        ttrans_conv tconcat tconcatidx tinterleave tdeinterleave tprint
    """,
    "MTE2": "tload tload_conv tprefetch",
    "MTE1": "timg2col",
    "FIX": "tstore_fp tmov.fp textract_fp tinsert_fp",
    "M": """
        tmatmul tmatmul.acc tmatmul.bias tmatmul.mx tmatmul.mx.acc tmatmul.mx.bias tgemv tgemv.acc
        tgemv.bias tgemv.mx tgemv.mx.acc tgemv.mx.bias
    """,
    "S": "treshape setfmatrix set_img2col_rpt set_img2col_padding tgetval tsetval",
}

# Instructions whose pipe follows the buffers: event.hpp has an operation for each way.
BY_BUFFER: dict[tuple[str, str, str], str] = {
    ("tstore", "vec", ""): "MTE3",
    ("tstore", "mat", ""): "MTE3",
    ("tstore", "acc", ""): "FIX",
    ("tmov", "vec", "vec"): "V",
    ("tmov", "vec", "mat"): "FIX",
    ("tmov", "mat", "left"): "MTE1",
    ("tmov", "mat", "right"): "MTE1",
    ("tmov", "mat", "bias"): "MTE1",
    ("tmov", "mat", "scaling"): "FIX",
    ("tmov", "acc", "vec"): "FIX",
    ("tmov", "acc", "mat"): "FIX",
    ("textract", "mat", "left"): "MTE1",
    ("textract", "mat", "right"): "MTE1",
    ("textract", "vec", "mat"): "FIX",
    ("textract", "acc", "mat"): "FIX",
    ("tinsert", "acc", "mat"): "FIX",
    ("texpands", "", "vec"): "V",
    ("texpands", "", "mat"): "MTE2",
    ("tfillpad", "vec", "vec"): "V",
    ("tfillpad", "mat", "mat"): "MTE2",
    ("tfillpad_expand", "vec", "vec"): "V",
    ("tfillpad_expand", "mat", "mat"): "MTE2",
    ("tfillpad_inplace", "vec", "vec"): "V",
    ("tfillpad_inplace", "mat", "mat"): "MTE2",
}


class Fact(NamedTuple):
    """One way an instruction goes: who touches what, and whom its own flags make wait.

    `touches`: `pipe reads > writes`. `course`: all in order, `1` the first touch, `V>S` S waits for
    V, `V>S~` inside the touch before; "" where only the touches are known.
    """

    name: str
    profiles: str
    when: dict[str, str | bool]  # attribute: word; operand: there or not; operand@: its buffer
    touches: tuple[str, ...]
    course: str
    source: str

    @property
    def waits(self) -> set[str]:
        return {word.rstrip("~") for word in self.course.split() if ">" in word}


_ROWS_OUT = "S>MTE2 MTE2>V MTE2>MTE3 S>V S>MTE3"
_AROUND_S = "V>S MTE3>S MTE2>S 1 S>V S>MTE2 S>MTE3"
_STAGED = "1 MTE2>MTE3 2 MTE3>MTE2"
_PAIR: dict[str, str | bool] = {"pong": True}
SEVERAL: tuple[Fact, ...] = (
    Fact("tci", "a2a3 a5", {"tmp": False}, ("S > dst",), "1", "TCI.hpp, Tci.hpp: a scalar loop"),
    Fact("tci", "a2a3", {"tmp": True}, ("V tmp > tmp dst",), "1", "TCI.hpp: vector code in tmp"),
    Fact("tci", "a5", {"tmp": True}, ("V > dst",), "1", "Tci.hpp: registers, tmp is ignored"),
    Fact(
        "mgather",
        "a2a3",
        {"coalesce": "row", "gatherOob": "undefined", "dst@": "vec"},
        ("S idx >", "MTE2 mem > dst"),
        f"V>S MTE3>S 1 2 {_ROWS_OUT}",
        "a2a3/MGather.hpp: rows; nothing waits for MTE2 before the indices are read",
    ),
    Fact(
        "mgather",
        "a2a3",
        {"coalesce": "row", "gatherOob": "zero", "dst@": "vec"},
        ("S idx > dst", "MTE2 mem > dst"),
        f"V>S MTE3>S 1 2 {_ROWS_OUT}",
        "a2a3/MGather.hpp: rows beyond the table are zeroed by the scalar unit",
    ),
    Fact(
        "mgather",
        "a2a3",
        {"coalesce": "elem", "dst@": "vec"},
        ("S idx mem > dst",),
        _AROUND_S,
        "a2a3/MGather.hpp: elements, a scalar loop",
    ),
    Fact(
        "mgather",
        "a5",
        {"coalesce": "row", "dst@": "vec"},
        ("V mem idx > dst",),
        "1",
        "a5/MGather.hpp: SIMT code",
    ),
    Fact(
        "mgather",
        "a5",
        {"coalesce": "elem", "dst@": "vec"},
        ("V mem idx > dst",),
        "1",
        "a5/MGather.hpp: SIMT code",
    ),
    Fact(
        "mgather",
        "a2a3 a5",
        {"coalesce": "row", "dst@": "mat"},
        ("S idx >", "MTE2 mem > dst"),
        "1 2 S>MTE2",
        "MGather.hpp: rows into L1",
    ),
    Fact(
        "mgather",
        "a2a3 a5",
        {"coalesce": "elem", "dst@": "mat"},
        ("S idx mem > scratch", "MTE2 scratch > dst"),
        "1 S>MTE2 2",
        "MGather.hpp: elements into L1 through global memory",
    ),
    Fact(
        "mscatter",
        "a2a3",
        {"coalesce": "row"},
        ("S idx >", "MTE3 src > mem"),
        "V>S MTE2>S S>MTE3 1 2 MTE3>S S>V S>MTE2 MTE3>V MTE3>MTE2",
        "a2a3/MScatter.hpp: rows",
    ),
    Fact(
        "mscatter",
        "a2a3",
        {"coalesce": "elem"},
        ("S src idx > mem",),
        "V>S MTE2>S MTE3>S 1 S>V S>MTE2 S>MTE3",
        "a2a3/MScatter.hpp: elements, a scalar loop",
    ),
    Fact("mscatter", "a5", {}, ("V src idx > mem",), "1", "a5/MScatter.hpp: SIMT code"),
    Fact(
        "tscatter",
        "a2a3",
        {"indexes": True},
        ("V > dst", "S src indexes > dst"),
        "1 V>S 2 S>V",
        "a2a3/TScatter.hpp: zeros by V, then a scalar loop",
    ),
    Fact(
        "tgather",
        "a2a3",
        {"cdst": True},
        ("S kValue > tmp", "V src tmp > tmp dst", "S > cdst"),
        "1 S>V 2 V>S~ S>V~ 3",
        "a2a3/TGather.hpp, compare: indices by S, thresholds by S and V in turn, counts by S",
    ),
    Fact(
        "tsels",
        "a2a3",
        {},
        ("S scalar > tmp", "V mask src tmp > dst"),
        "1 S>V 2",
        "a2a3/TSels.hpp: S puts the scalar into tmp",
    ),
    Fact(
        "tcmps",
        "a2a3",
        {"scalar@": "vec"},
        ("S scalar >", "V src > dst"),
        "V>S MTE1>S MTE2>S 1 2",
        "a2a3/TCmps.hpp: S reads the scalar out of its tile",
    ),
    Fact(
        "tconcat",
        "a2a3",
        {},
        ("V src0 > dst", "S src1 > dst"),
        "1 V>S MTE2>S 2",
        "a2a3/TConcat.hpp: columns of src1 that begin inside a block",
    ),
    Fact(
        "tconcatidx",
        "a2a3",
        {},
        ("S src0Idx src1Idx > dstIdx", "V src0 src1 > dst"),
        "MTE2>S 1 S>V 2 V>S~ S>V~",
        "a2a3/TConcat.hpp, TConcatIdx",
    ),
    Fact(
        "tdivs",
        "a5",
        {},
        ("S src scalar > dst",),
        "V>S 1",
        "a5/TDivS.hpp: integers in a scalar loop, for whose end nothing waits",
    ),
    Fact("comm.tput", "a2a3 a5", {"pong": False}, ("MTE2 src > ping", "MTE3 ping > dst"), _STAGED,
         "comm/a2a3/TPut.hpp, which a5 includes"),
    Fact("comm.tput", "a2a3 a5", _PAIR, ("MTE2 src > ping pong", "MTE3 ping pong > dst"), _STAGED,
         "comm/a2a3/TPut.hpp, two staging tiles"),
    Fact("comm.tget", "a2a3 a5", {"pong": False}, ("MTE2 src > ping", "MTE3 ping > dst"), _STAGED,
         "comm/a2a3/TGet.hpp"),
    Fact("comm.tget", "a2a3 a5", _PAIR, ("MTE2 src > ping pong", "MTE3 ping pong > dst"), _STAGED,
         "comm/a2a3/TGet.hpp"),
    Fact("comm.tbroadcast", "a2a3 a5", {"pong": False}, ("MTE2 src > ping", "MTE3 ping > group"),
         _STAGED, "comm/a2a3/TBroadCast.hpp"),
    Fact("comm.tbroadcast", "a2a3 a5", _PAIR, ("MTE2 src > ping pong", "MTE3 ping pong > group"),
         _STAGED, "comm/a2a3/TBroadCast.hpp"),
    Fact("comm.tgather", "a2a3 a5", {"pong": False}, ("MTE2 group > ping", "MTE3 ping > dst"),
         _STAGED, "comm/a2a3/TGather.hpp"),
    Fact("comm.tgather", "a2a3 a5", _PAIR, ("MTE2 group > ping pong", "MTE3 ping pong > dst"),
         _STAGED, "comm/a2a3/TGather.hpp"),
    Fact("comm.tscatter", "a2a3 a5", {"pong": False}, ("MTE2 src > ping", "MTE3 ping > group"),
         _STAGED, "comm/a2a3/TScatter.hpp"),
    Fact("comm.tscatter", "a2a3 a5", _PAIR, ("MTE2 src > ping pong", "MTE3 ping pong > group"),
         _STAGED, "comm/a2a3/TScatter.hpp"),
    Fact("comm.treduce", "a2a3 a5", {"recvPong": False},
         ("MTE2 group > acc recvPing", "V acc recvPing > acc", "MTE3 acc > dst"),
         "1 MTE2>V 2 V>MTE2 V>MTE3 3 MTE3>MTE2", "comm/a2a3/TReduce.hpp: acc is loaded too"),
    Fact("comm.treduce", "a2a3 a5", {"recvPong": True},
         ("MTE2 group > acc recvPing recvPong", "V acc recvPing recvPong > acc", "MTE3 acc > dst"),
         "1 MTE2>V 2 V>MTE2 V>MTE3 3 MTE3>MTE2", "comm/a2a3/TReduce.hpp"),
)  # fmt: skip

# Work of V with scalar steps that flags V to S and back enclose: for everything around it is V's.
SCALAR_STEPS: dict[str, str] = {
    "a2a3": """
        trowsum trowmax trowmin trowprod trowargmax trowargmin trowexpand ttrans ttrans_conv
        tfillpad tshl tshr tdivs tpow tpows tdequant textract
    """,
    "a5": "textract tinsert",
}

# Scratch operands that headers take and never touch, by profile.
IDLE: dict[str, str] = {
    "a5": """
        trem trems tpow tpows tprelu trsqrt txor txors tadddeqrelu tsel tsels tcvt trowsum trowprod
        trowmax trowmin trowargmax trowargmin tcolargmax tcolargmin trowexpandadd trowexpandsub
        trowexpandmul trowexpandmax trowexpandmin trowexpanddiv trowexpandexpdif tgather ttrans
        ttrans_conv tci
    """,
    "a2a3": "",
}
