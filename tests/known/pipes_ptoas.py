"""Facts about pipes as PTOAS (August 2026) has them, in our own words.

`GET_PIPE` is what `getPipe()` of PTOOps.td answers; `MACROS` are the phases of
lib/PTO/Transforms/InsertSync/SyncMacroModel.cpp, which stand above it. Instructions that PTOAS does
not have are absent. Written without looking at the rows; `test_pipes.py` compares.
"""

from __future__ import annotations

from tests.known.pipes_headers import Fact

GET_PIPE: dict[str, str] = {
    "V": """
        thistogram tadd taddrelu taddc tadds taxpy taddsc tand tconcat tconcatidx tands ttri tcmp
        tcmps tcolexpand tcolexpandadd tcolexpandmul tcolexpanddiv tcolexpandsub tcolexpandexpdif
        tcolexpandmax tcolexpandmin tcolmax tcolargmax tcolmin tcolargmin tcolsum tcolprod tcvt
        trandom tdiv tdivs tfmod tfmods tpow tpows texp texpands tgather tgatherb tlog tlrelu tmax
        tmaxs tmin tmins tmrgsort tmul tmuls tneg tnot tor tors tpartadd tpartmax tpartmin
        tpartargmax tpartargmin tpartmul tprelu tquant tquant.mx tdequant trecip trelu trem trems
        trowexpand trowexpanddiv trowexpandmul trowexpandsub trowexpandadd trowexpandexpdif
        trowexpandmax trowexpandmin trowmax trowargmax trowmin trowargmin trowsum trowprod trsqrt
        tsel tsels tshl tshr tshls tshrs tsort32 tsqrt tsub tsubc tsubs tsubsc txors txor tprint
        tabs ttrans
    """,
    "S": "tci treshape tsetval tgetval tfree tget_scale_addr",
    "MTE2": "tload tprefetch",
    "MTE3": "talloc",
    "M": """
        tmatmul tmatmul.acc tmatmul.bias tmatmul.mx tmatmul.mx.acc tmatmul.mx.bias tgemv tgemv.acc
        tgemv.bias tgemv.mx tgemv.mx.acc tgemv.mx.bias
    """,
}

BY_BUFFER: dict[tuple[str, str, str, str], str] = {  # profile, name, src, dst
    ("a2a3 a5", "tstore", "acc", ""): "FIX",
    ("a2a3 a5", "tstore", "vec", ""): "MTE3",
    ("a2a3 a5", "tstore", "mat", ""): "MTE3",
    ("a2a3 a5", "tmov", "vec", "vec"): "V",
    ("a2a3 a5", "tmov", "mat", "left"): "MTE1",
    ("a2a3 a5", "tmov", "mat", "right"): "MTE1",
    ("a2a3 a5", "tmov", "mat", "bias"): "MTE1",
    ("a2a3 a5", "tmov", "mat", "scaling"): "FIX",
    ("a2a3 a5", "tmov", "acc", "vec"): "FIX",
    ("a2a3 a5", "tmov", "acc", "mat"): "FIX",
    ("a2a3 a5", "textract", "mat", "left"): "MTE1",
    ("a2a3 a5", "textract", "mat", "right"): "MTE1",
    ("a2a3 a5", "textract", "vec", "mat"): "FIX",
    ("a2a3 a5", "textract", "acc", "mat"): "FIX",
    ("a2a3 a5", "textract", "vec", "vec"): "V",
    ("a2a3 a5", "tinsert", "vec", "vec"): "V",
    ("a5", "tinsert", "vec", "mat"): "MTE3",
    ("a2a3 a5", "tinsert", "acc", "mat"): "FIX",
    ("a2a3 a5", "tfillpad", "vec", "vec"): "V",
    ("a2a3 a5", "tfillpad", "mat", "mat"): "MTE1",
    ("a2a3", "mscatter", "vec", ""): "MTE3",
    ("a5", "mscatter", "vec", ""): "V",
}

_IN_AND_OUT = "MTE2>MTE3 MTE3>MTE2"
_COPIES = (
    ("comm.tput", "src", "dst"),
    ("comm.tget", "src", "dst"),
    ("comm.tgather", "group", "dst"),
    ("comm.tscatter", "src", "group"),
    ("comm.tbroadcast", "src", "group"),
)
_MODEL = "SyncMacroModel.cpp"
MACROS: tuple[Fact, ...] = (
    *(
        Fact(
            name,
            "a2a3 a5",
            {"pong": has_pong},
            (f"MTE2 {source} > {tiles}", f"MTE3 {tiles} > {target}"),
            _IN_AND_OUT,
            _MODEL,
        )
        for name, source, target in _COPIES
        for has_pong, tiles in ((False, "ping"), (True, "ping pong"))
    ),
    Fact(
        "comm.treduce",
        "a2a3 a5",
        {"recvPong": False},
        ("MTE2 group > recvPing", "V acc recvPing > acc", "MTE3 acc > dst"),
        "MTE2>MTE3 MTE3>MTE2 MTE2>V V>MTE2 V>MTE3",
        _MODEL,
    ),
    Fact(
        "tscatter",
        "a2a3",
        {"indexes": True},
        ("V > dst", "S src indexes > dst"),
        "V>S",
        _MODEL,
    ),
    Fact(
        "tgather",
        "a2a3",
        {"cdst": True},
        ("V src > tmp", "S > tmp", "V tmp > dst", "S > cdst"),
        "S>V",
        _MODEL,
    ),
    Fact(
        "mgather",
        "a2a3",
        {"coalesce": "row", "gatherOob": "undefined", "dst@": "vec"},
        ("S idx >", "MTE2 mem > dst"),
        "V>S MTE3>S S>MTE2 MTE2>V MTE2>MTE3 S>V S>MTE3",
        _MODEL,
    ),
    Fact(
        "mgather",
        "a2a3",
        {"coalesce": "elem", "dst@": "vec"},
        ("S idx mem > dst",),
        "V>S MTE3>S MTE2>S S>V S>MTE2 S>MTE3",
        _MODEL,
    ),
    Fact("mgather", "a5", {"coalesce": "row", "dst@": "vec"}, ("V mem idx > dst",), "", _MODEL),
    Fact(
        "mgather",
        "a2a3 a5",
        {"coalesce": "row", "dst@": "mat"},
        ("S idx >", "MTE2 mem > dst"),
        "S>MTE2",
        _MODEL,
    ),
    Fact(
        "mgather",
        "a2a3 a5",
        {"coalesce": "elem", "dst@": "mat"},
        ("S idx > scratch", "MTE2 mem scratch > dst"),
        "S>MTE2",
        _MODEL,
    ),
)
