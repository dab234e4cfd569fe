"""Products, tables of scales and stores of accumulators: facts of a2a3/TMatmul.hpp, TMov.hpp,
TStore.hpp, a5/TMatmul.hpp, TMov.hpp, TLoad.hpp, TStore.hpp and common/arch/memory."""

from __future__ import annotations

from tests.known.headers import Fact

_LEFT, _RIGHT = "left:16x64xf16:NZ", "right:64x16xf16:ZN"
_FP8 = "left:16x64xf8E4M3FN:NZ@4096 {} right:64x16xf8E4M3FN:ZN@8192 {}"
_SCALES = _FP8.format(
    "scale_left:16x2x!pto.f8E8M0:SCALE_A@{}", "scale_right:2x16x!pto.f8E8M0:SCALE_B@{}"
)
_MX = "tmatmul.mx " + _SCALES + " -> acc:16x16xf32:ACC"
_STORE = "tstore acc:16x16x{}:ACC -> gm:16x16x{}"
_SUM = "tstore vec:16x32x{} -> gm:16x32x{} {{atomicType = #pto<atomic_type {}>}}"
_BOTH = "{{accToVecMode = #pto.acc_to_vec_mode<dual_mode_split_m>}}"
_DUAL = "tmov acc:32x32xf32:ACC -> vec:16x32x{} " + _BOTH

FACTS = [
    Fact(
        "a2a3/TMatmul.hpp:170; a5/TMatmul.hpp:186",
        "an accumulator is added to in place: acc_in is not passed on",
        "a2a3 a5",
        f"tmatmul.acc acc:16x16xf32:ACC@1024 {_LEFT} {_RIGHT} -> acc:16x16xf32:ACC@0",
        f"tmatmul.acc acc:16x16xf32:ACC@1024 {_LEFT} {_RIGHT} -> acc:16x16xf32:ACC@1024",
        "PTO-L066",
        "warning",
    ),
    Fact(
        "a2a3/TMatmul.hpp:124; a5/TMatmul.hpp:245",
        "the same of a vector and a matrix",
        "a2a3 a5",
        f"tgemv.acc acc:1x16xf32:ACC left:1x64xf16:NZ {_RIGHT} -> acc:1x16xf32:ACC",
        f"tgemv.acc acc:1x16xf32:ACC@512 left:1x64xf16:NZ {_RIGHT} -> acc:1x16xf32:ACC@512",
        "PTO-L066",
        "warning",
    ),
    Fact(
        "a5/TMatmul.hpp:294",
        "the same of MX products",
        "a5",
        _MX.replace("mx left", "mx.acc acc:16x16xf32:ACC@1024 left").format(256, 512) + "@0",
        _MX.replace("mx left", "mx.acc acc:16x16xf32:ACC@0 left").format(256, 512) + "@0",
        "PTO-L066",
        "warning",
    ),
    Fact(
        "a2a3/TMatmul.hpp:48; a5/TMatmul.hpp:25,178",
        "a product reads boxes, also of one row; a left tile of one row is filled without boxes",
        "a2a3 a5",
        f"tmatmul left:1x64xf16:NZ {_RIGHT} -> acc:1x16xf32:ACC",
        f"tmatmul left:16x64xf16:NZ:valid=1x64 {_RIGHT} -> acc:16x16xf32:ACC:valid=1x16",
        "PTO-L066",
        "warning",
    ),
    Fact(
        "a2a3/TMatmul.hpp:110; a5/TMatmul.hpp:239",
        "tgemv reads k elements in a row, which boxes do not hold",
        "a2a3 a5",
        f"tgemv left:16x64xf16:NZ:valid=1x64 {_RIGHT} -> acc:16x16xf32:ACC:valid=1x16",
        f"tgemv left:1x64xf16:NZ {_RIGHT} -> acc:16x16xf32:ACC:valid=1x16",
        "PTO-L066",
        "warning",
    ),
    Fact(
        "a5/TMatmul.hpp:71; TGetScaleAddr.hpp",
        "mad_mx takes the scales of the left factor at 1/16 of its address",
        "a5",
        _MX.format(512, 512),
        _MX.format(256, 512),
        "PTO-L066",
        "warning",
    ),
    Fact(
        "a5/TMatmul.hpp:92; TGetScaleAddr.hpp",
        "and those of the right factor",
        "a5",
        _MX.format(256, 0),
        _MX.format(256, 512),
        "PTO-L066",
        "warning",
    ),
    Fact(
        "a5/TMatmul.hpp:121",
        "the left tile of an MX product has a multiple of 64 columns",
        "a5",
        "tmatmul.mx left:16x32xf8E4M3FN:NZ scaling:16x32xf16:ZZ right:32x16xf8E4M3FN:ZN"
        " scaling:32x16xf16:ZZ -> acc:16x16xf32:ACC",
        _MX.format(256, 512),
        "PTO-L066",
        "warning",
    ),
    Fact(
        "a5/TLoad.hpp:183,243,303,325,348",
        "groups of MX scales are loaded in pairs: half of an odd number, rounded down",
        "a5",
        "tload gm:16x1x!pto.f8E8M0 -> mat:16x2x!pto.f8E8M0:SCALE_A:valid=16x1",
        "tload gm:16x2x!pto.f8E8M0 -> mat:16x2x!pto.f8E8M0:SCALE_A",
        "PTO-L066",
        "warning",
    ),
    Fact(
        "arch/memory/tmov_common.hpp:89; a5/TMov.hpp:895",
        "the address of a table of scales is passed without its last 7 bits",
        "a2a3 a5",
        "tmov.fp acc:16x16xi32:ACC scaling:1x16xui64@64 -> mat:16x16xf16:NZ",
        "tmov.fp acc:16x16xi32:ACC scaling:1x16xui64@128 -> mat:16x16xf16:NZ",
        "PTO-L066",
        "warning",
    ),
    Fact(
        "a2a3/TInsert.hpp:124; a5/TInsert.hpp; TExtract.hpp:1195",
        "the same where a window is scaled",
        "a2a3 a5",
        "textract_fp acc:16x16xi32:ACC scaling:1x16xui64@192 0 0 -> mat:16x16xf16:NZ",
        "textract_fp acc:16x16xi32:ACC scaling:1x16xui64@256 0 0 -> mat:16x16xf16:NZ",
        "PTO-L066",
        "warning",
    ),
    Fact(
        "a2a3/TStore.hpp; a5/TStore.hpp (SetFPC)",
        "the same where a store is scaled",
        "a2a3 a5",
        "tstore_fp acc:16x16xi32:ACC scaling:1x16xui64@32 -> gm:16x16xf16",
        "tstore_fp acc:16x16xi32:ACC scaling:1x16xui64@0 -> gm:16x16xf16",
        "PTO-L066",
        "warning",
    ),
    Fact(
        "a2a3/TMov.hpp:69; a5/TMov.hpp:74",
        "a table of scales is filled in units of 128 bytes",
        "a2a3 a5",
        "tmov mat:1x20xui64 -> scaling:1x20xui64",
        "tmov mat:1x32xui64:valid=1x20 -> scaling:1x32xui64:valid=1x20",
        "PTO-S065",
    ),
    Fact(
        "a2a3/TMov.hpp:37; a5/TMov.hpp:38",
        "a bias is one row in units of 64 bytes",
        "a2a3 a5",
        "tmov mat:1x24xf32 -> bias:1x24xf32",
        "tmov mat:1x32xf32:valid=1x24 -> bias:1x32xf32:valid=1x24",
        "PTO-S065",
    ),
    Fact(
        "a5/TMov.hpp:80",
        "a table of scales has words of 64 bits; PTOAS has floats too",
        "a5",
        "tmov mat:1x32xf32 -> scaling:1x32xf32",
        "tmov mat:1x32xui64 -> scaling:1x32xui64",
        "PTO-L066",
        "warning",
    ),
    Fact(
        "a5/common.hpp:186",
        "what goes to both vector sub-blocks is not converted",
        "a5",
        _DUAL.format("f16"),
        _DUAL.format("f32"),
        "PTO-L066",
        "warning",
    ),
    Fact(
        "a5/common.hpp:189",
        "nor turned to DN",
        "a5",
        _DUAL.format("f32:DN"),
        _DUAL.format("f32"),
        "PTO-L066",
        "warning",
    ),
    Fact(
        "a2a3/common.hpp:19; a5/TStore.hpp:17",
        "words of an i32 accumulator are stored as they are where floats are asked for",
        "a2a3 a5",
        _STORE.format("i32", "f32"),
        _STORE.format("i32", "i32"),
        "PTO-L066",
        "warning",
    ),
    Fact(
        "a2a3/common.hpp:19; a5/TStore.hpp:17",
        "and those of an f32 accumulator where i32 is asked for",
        "a2a3 a5",
        _STORE.format("f32", "i32"),
        _STORE.format("f32", "bf16"),
        "PTO-L066",
        "warning",
    ),
    Fact(
        "arch/memory/tstore_common.hpp:151; a5/TStore.hpp:95",
        "atomic additions are of floats and signed integers up to 32 bits",
        "a2a3 a5",
        _SUM.format("ui16", "ui16", "atomic_add"),
        _SUM.format("i16", "i16", "atomic_add"),
        "PTO-L066",
        "warning",
    ),
    Fact(
        "common/type.hpp (AtomicType)",
        "additions are the only atomic stores",
        "a2a3 a5",
        _SUM.format("f32", "f32", "atomic_max"),
        _SUM.format("f32", "f32", "atomic_add"),
        "PTO-L066",
        "warning",
    ),
]
