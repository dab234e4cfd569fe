"""Names that builds for the chip provide: declared, per-agent, explained when missing."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from pto.core.errors import PtoError
from pto.cxx import complaints, provided
from pto.cxx.branches import unknown
from pto.cxx.kernel import cpp
from pto.cxx.reach import used

NAMES = """
namespace mine { inline AICORE int flags() { return %s; } }
extern "C" __global__ AICORE void k(__gm__ int64_t* y)
{
    const uint64_t first = get_ctrl();
    set_ctrl(sbitset0(first, 48));
    const uint64_t second = get_ctrl();
    set_ctrl(sbitset1(second, 46));
    uint32_t a = 3;
    y[0] = first, y[1] = second, y[2] = get_ctrl();
    y[3] = min(a, 5u) + max(2, 7L), y[4] = mine::flags();
#if defined(__DAV_C310__) && __NPU_ARCH__ == 3101 && !defined(__DAV_C220__)
    y[5] = 310;
#elif defined(__DAV_C220__) && !defined(__DAV_C310__) && !defined(__DAV_C310_VEC__)
    y[5] = 220;
#endif
    y[6] = PTO_UBUF_SIZE_BYTES;
}
"""


@pytest.mark.parametrize(
    ("profile", "flags", "arch", "ub"),
    [
        ("a2a3", "pto::SYNC_FLAG_ID_MAX", 220, 192 << 10),
        ("a5", "SYNC_FLAG_ID_MAX + getFFTSMsg(0, 0, 0)", 310, 256 << 10),  # pto is open globally
    ],
)
def test_names_of_the_device_compiler_and_the_headers(
    kernel, profile: str, flags: str, arch: int, ub: int
):
    own = "typedef struct { unsigned char v; } hifloat8_t;\n" if profile == "a2a3" else ""
    text = "#include <runtime/rt_ffts.h>\n" + own + NAMES % flags
    y = np.zeros(7, np.int64)
    kernel(text, profile=profile).run(y)
    assert list(y) == [1 << 48, 0, 1 << 46, 10, 16, arch, ub]


LOCALS = """
[[block_local]] static int32_t mine = 5;
extern "C" __global__ AICORE void k(__gm__ int32_t* y)
{
#if defined(__DAV_VEC__)
    const int64_t at = (get_subblockid)();
    lane = int32_t(10 * get_block_idx() + at);
    mine += lane;
    Tile<TileType::Vec, int32_t, 1, 8> t;
    TASSIGN(t, 0);
    TEXPANDS(t, 7);
    pipe_barrier(PIPE_ALL);
    const int read = t.GetValue(0);  // other agents run here
    y[get_block_idx() * 2 + at] = int32_t(get_coreid() * 1000 + mine * 10 + read);
#endif
}
"""


def test_block_locals_are_per_agent_and_the_header_uses_a_redefined_function(a_compiler, tmp_path):
    """get_coreid of the header is block * 2 + sub-block, here with the source's own sub-block."""
    head = (
        "#include <cstdint>\n[[block_local]] static int32_t lane;\n#define get_subblockid() lane\n"
        "#include <pto/pto-inst.hpp>\nusing namespace pto;\n"
    )
    path = tmp_path / "k.cpp"
    path.write_text(head + LOCALS, encoding="utf-8")
    y = np.zeros(4, np.int32)
    cpp(path, sides=("vector", "cube"))["k"].run(y, blocks=2)
    expected = [(12 * b + s) * 1000 + (5 + 10 * b + s) * 10 + 7 for b in (0, 1) for s in (0, 1)]
    assert list(y) == expected


INT4 = """
extern "C" __global__ AICORE void k(__gm__ uint8_t* y, __gm__ half* x)
{
    Tile<TileType::Vec, half, 1, 256> from;
    Tile<TileType::Vec, uint8_t, 1, 128> to;
    TASSIGN(from, 0); TASSIGN(to, 0x1000);
    GlobalTensor<half, Shape<1, 1, 1, 1, 256>, Stride<1, 1, 1, 256, 1>> gx(x);
    GlobalTensor<uint8_t, Shape<1, 1, 1, 1, 128>, Stride<1, 1, 1, 128, 1>> gy(y);
    TLOAD(from, gx);
    TEXPANDS(to, 9);
    pipe_barrier(PIPE_ALL);
    set_mask_count();
    set_vector_mask(0, 48);
    vector_dup((__ubuf__ uint16_t*)to.data(), (uint16_t)0, 0, 1, 1, 8, 8);
    set_mask_norm();
    set_vector_mask(0, 0xffff);
    vector_dup((__ubuf__ uint16_t*)(to.data() + 96), (uint16_t)0x0203, 1, 1, 1, 8, 0);
    set_vector_mask(-1, -1);
    pipe_barrier(PIPE_ALL);
    vconv_f162s4r((__ubuf__ void*)to.data(), from.data(), 1, 1, 1, 2, 8);
    SetContinuousMask(6);
    vconv_f162s4z((__ubuf__ void*)(to.data() + 64), from.data() + 128, 1, 1, 1, 2, 8);
    set_vector_mask(-1, -1);
    pipe_barrier(PIPE_ALL);
    TSTORE(gy, to);
}
"""


def test_conversions_to_int4_and_fills_with_repeats_and_a_mask(kernel):
    x = (np.arange(256) % 29 - 14).astype(np.float16) * np.float16(0.75)
    y = np.ones(128, np.uint8)
    kernel(INT4).run(y, x)
    rounded = np.clip(np.rint(x[:128].astype(np.float64)), -8, 7).astype(np.int64) & 15
    cut = np.clip(np.trunc(x[128:134].astype(np.float64)), -8, 7).astype(np.int64) & 15
    np.testing.assert_array_equal(y[:64], rounded[::2] | rounded[1::2] << 4)
    np.testing.assert_array_equal(y[64:67], cut[::2] | cut[1::2] << 4)
    assert not y[67:96].any()
    np.testing.assert_array_equal(y[96:], np.tile([3, 2], 16))


BRANCHES = """
#ifndef __GUARD_H__
#define __GUARD_H__
#if defined(__DAV_C310__) || defined(__CHECK_FEATURE_AT_PRECOMPILE) || __GNUC__ > 4 || MY_OPTION
#endif
// #ifdef __IN_A_COMMENT__
#elif defined(__GIVEN__) && __DAV_C999__
#endif
"""


def test_an_unknown_macro_that_selects_a_branch_is_a_finding():
    found = list(unknown({Path("k.cpp"): BRANCHES}, ["__GIVEN__=1"], "a5"))
    assert [(d.code, d.severity, str(d.loc)) for d in found] == [
        ("PTO-U252", "warning", "k.cpp:7:1")
    ]
    assert "`__DAV_C999__` selects a branch" in found[0].message


def test_a_kernel_warns_of_it(kernel):
    text = "\n#ifdef __DAV_C999__\n#endif\n__global__ AICORE void k(__gm__ float* x) {}"
    with pytest.warns(UserWarning, match="__DAV_C999__"):
        kernel(text).run(np.zeros(8, np.float32))
    assert [d.code for d in kernel(text).sanitize(np.zeros(8, np.float32))] == ["PTO-U252"]


GXX = """/h/pto/machine/tile.hpp: In instantiation of 'void f()':
/u/k.cpp:7:9:   required from here
/h/pto/machine/tile.hpp:40:5: error: ‘oops’ was not declared in this scope
/u/k.cpp:9:3: error: ‘DataCopy’ was not declared in this scope; did you mean 'x'?
"""
CLANG = """/u/k.cpp:3:10: fatal error: 'torch/extension.h' file not found
"""


def test_a_refusal_stands_at_the_users_line_and_names_the_provider():
    found = complaints.refusal("g++", GXX, "/h").diagnostics[0]
    assert str(found.loc) == "/u/k.cpp:7:9"
    assert found.message == "g++: ‘oops’ was not declared in this scope"
    assert str(found.notes[0].loc) == "/u/k.cpp:9:3"
    assert found.help is not None
    assert "classes of Ascend C" in found.help
    clang = complaints.refusal("clang++", CLANG, "/h").diagnostics[0]
    assert str(clang.loc) == "/u/k.cpp:3:10"
    assert "give its folder by -I" in (clang.help or "")


def test_a_missing_name_that_another_profile_has_is_explained():
    said = complaints.explained("‘get_ctrl’ was not declared in this scope")
    assert said is not None
    assert "a2a3 and a5 by the device compiler" in said
    assert "no profile here" in (provided.provider("__CCE_KT_TEST__") or "")


def test_intrinsics_are_told_from_registers():
    assert "on a5 by the device compiler, vector regi" in (provided.provider("vector_f16") or "")
    assert "repeats (a2a3)" in (provided.provider("vadd_f16") or "")


def test_the_compilers_refusal_is_placed(kernel, monkeypatch):
    monkeypatch.setattr("pto.cxx.compiler.others", lambda: iter(()))
    with pytest.raises(PtoError) as caught:
        kernel("\n__global__ AICORE void k(__gm__ float* x) { DataCopy(x); }").run(
            np.zeros(8, np.float32)
        )
    finding = caught.value.diagnostics[0]
    assert finding.loc is not None
    assert (Path(finding.loc.file).name, finding.loc.line) == ("kernel.cpp", 4)


HELPERS = """
template <class T> AICORE void all(T x) { ffts_cross_core_sync(PIPE_MTE3, 1); }
struct Both { void go() const { deep(); } };
inline void deep() { TMATMUL(p, q, r); }
"""
ENTRIES = """
#if defined(__DAV_VEC__)
// TMATMUL
extern "C" __global__ AICORE void one(__gm__ float* x) { if (x) { TADD(x); } }
#endif
__global__ AICORE void two(__gm__ float* x) { Both y; y.go(); }
"""


def test_the_sides_of_a_kernel_follow_from_the_code_that_its_entry_uses(tmp_path: Path):
    (tmp_path / "h.hpp").write_text(HELPERS, encoding="utf-8")
    path = tmp_path / "k.cpp"
    path.write_text(f'#include "h.hpp"\n{ENTRIES}', encoding="utf-8")
    source = cpp(path)
    assert source.sides_of("one") == ("vector",)
    assert source.sides_of("two<float>") == ("vector", "cube")
    assert cpp(path, sides=("cube",)).sides_of("one") == ("cube",)
    assert "ffts" not in used("one", [ENTRIES, HELPERS])
