"""Kernels that program vector registers of a5; expected values come from NumPy."""

from __future__ import annotations

from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

import pto
from pto.core.errors import PtoError

# Load x to UB at 0, run the body in a vector scope, and store what it leaves at 0x8000.
_KERNEL = """#include <pto/pto-inst.hpp>
using namespace pto;
__global__ AICORE void work(__gm__ {to}* out, __gm__ {of}* x)
{{
    using From = GlobalTensor<{of}, Shape<1, 1, 1, 1, {n}>, Stride<1, 1, 1, {n}, 1>>;
    using To = GlobalTensor<{to}, Shape<1, 1, 1, 1, {m}>, Stride<1, 1, 1, {m}, 1>>;
    Tile<TileType::Vec, {of}, 1, {n}> in;
    Tile<TileType::Vec, {to}, 1, {m}> made;
    TASSIGN(in, 0x0);
    TASSIGN(made, 0x8000);
    From from(x);
    To to(out);
    TLOAD(in, from);
    set_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
    wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
    __ubuf__ {of}* src = (__ubuf__ {of}*)in.data();
    __ubuf__ {to}* dst = (__ubuf__ {to}*)made.data();
    __VEC_SCOPE__
    {{
{body}
    }}
    set_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
    wait_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
    TSTORE(to, made);
}}
"""
_TYPES = {"float": np.float32, "half": np.float16, "uint16_t": np.uint16, "int32_t": np.int32,
          "uint8_t": np.uint8, "uint32_t": np.uint32, "bfloat16_t": ml_dtypes.bfloat16,
          "int16_t": np.int16, "int8_t": np.int8}  # fmt: skip
_RNG = np.random.default_rng(5)


def _kernel(folder: Path, of: str, n: int, to: str, m: int, body: str) -> pto.CxxKernel:
    path = folder / "work.cpp"
    path.write_text(_KERNEL.format(of=of, n=n, to=to, m=m, body=body), encoding="utf-8")
    return pto.cpp(str(path), profile="a5")["work"]


def _run(folder: Path, of: str, x: np.ndarray, to: str, m: int, body: str) -> np.ndarray:
    out = np.zeros(m, _TYPES[to])
    _kernel(folder, of, x.size, to, m, body)(out, x)
    return out


def test_a_loop_with_a_tail_mask_writes_active_lanes_only(tmp_path: Path) -> None:
    x = _RNG.standard_normal(200).astype(np.float32)
    body = """uint32_t left = 200;
        RegTensor<float> v, zero;
        MaskReg every = pset_b32(PAT_ALL);
        vdup(zero, 7.0f, every, MODE_ZEROING);
        for (uint16_t i = 0; i < 4; ++i) vsts(zero, dst, i * 64, NORM_B32, every);
        mem_bar(VST_VST);
        for (uint16_t i = 0; i < 4; ++i) {
            MaskReg on = CreatePredicate<float>(left);
            vlds(v, src, i * 64, NORM);
            vmuls(v, v, 2.0f, on, MODE_ZEROING);
            vsts(v, dst, i * 64, NORM_B32, on);
        }"""
    out = _run(tmp_path, "float", x, "float", 256, body)
    assert np.array_equal(out[:200], x * np.float32(2))
    assert (out[200:] == 7).all()


def test_two_registers_take_even_and_odd_lanes_and_are_joined_again(tmp_path: Path) -> None:
    x = _RNG.integers(-99, 99, 256).astype(np.float16)
    body = """vector_f16 even, odd, sum, difference;
        MaskReg all = pset_b16(PAT_ALL);
        vlds(even, odd, src, 0, DINTLV_B16);
        vadd(sum, even, odd, all);
        vsub(difference, even, odd, all);
        vsts(sum, difference, dst, 0, INTLV_B16, all);"""
    out = _run(tmp_path, "half", x, "half", 256, body)
    assert np.array_equal(out[::2], x[::2] + x[1::2])
    assert np.array_equal(out[1::2], x[::2] - x[1::2])


def test_a_register_is_read_as_another_type_by_a_reference(tmp_path: Path) -> None:
    x = _RNG.standard_normal(64).astype(np.float32)
    body = """RegTensor<float> v;
        vector_u32 clear;
        MaskReg all = pset_b32(PAT_ALL);
        vdup(clear, 0x7fffffffu, all, MODE_ZEROING);
        vlds(v, src, 0, NORM);
        vand((vector_u32&)v, (vector_u32&)v, clear, all, MODE_ZEROING);
        vsts(v, dst, 0, NORM_B32, all);"""
    assert np.array_equal(_run(tmp_path, "float", x, "float", 64, body), np.abs(x))


def test_merging_keeps_lanes_that_are_off(tmp_path: Path) -> None:
    x = _RNG.standard_normal(64).astype(np.float32)
    body = """RegTensor<float> v, kept;
        MaskReg all = pset_b32(PAT_ALL), positive;
        vlds(v, src, 0, NORM);
        vdup(kept, -1.0f, all, MODE_ZEROING);
        vcmps_gt(positive, v, 0.0f, all);
        vmov(kept, v, positive, MODE_MERGING);
        vsts(kept, dst, 0, NORM_B32, all);"""
    out = _run(tmp_path, "float", x, "float", 64, body)
    assert np.array_equal(out, np.where(x > 0, x, np.float32(-1)))


def test_a_copy_keeps_its_value_when_the_original_is_written(tmp_path: Path) -> None:
    x = _RNG.standard_normal(64).astype(np.float32)
    body = """RegTensor<float> v;
        MaskReg all = pset_b32(PAT_ALL);
        vlds(v, src, 0, NORM);
        RegTensor<float> before = v;
        vadds(v, v, 1.0f, all, MODE_ZEROING);
        vmul(v, v, before, all, MODE_ZEROING);
        vsts(v, dst, 0, NORM_B32, all);"""
    one = np.float32(1)
    assert np.array_equal(_run(tmp_path, "float", x, "float", 64, body), (x + one) * x)


def test_post_update_moves_pointers_on_and_loads_where_they_were(tmp_path: Path) -> None:
    x = _RNG.standard_normal(256).astype(np.float32)
    body = """RegTensor<float> v;
        MaskReg all = pset_b32(PAT_ALL);
        for (uint16_t i = 0; i < 4; ++i) {
            vlds(v, src, 64, NORM, POST_UPDATE);
            vsts(v, dst, 64, NORM_B32, all, POST_UPDATE);
        }"""
    assert np.array_equal(_run(tmp_path, "float", x, "float", 256, body), x)


def test_conversions_take_their_parts_and_roundings(tmp_path: Path) -> None:
    x = (_RNG.standard_normal(64) * 9).astype(np.float32)
    body = """RegTensor<float> v;
        RegTensor<half> narrow;
        RegTensor<int32_t> down;
        MaskReg all = pset_b32(PAT_ALL);
        vlds(v, src, 0, NORM);
        vcvt(down, v, all, ROUND_F, RS_ENABLE);
        vcvt(v, down, all, __cce_simd::RoundRType());
        vcvt(narrow, v, all, ROUND_R, RS_ENABLE, PART_EVEN);
        vsts(narrow, dst, 0, PK_B32, all);"""
    out = _run(tmp_path, "float", x, "half", 64, body)
    assert np.array_equal(out, np.floor(x).astype(np.float16))


def test_an_unaligned_stream_packs_odd_counts(tmp_path: Path) -> None:
    x = _RNG.integers(0, 999, 192).astype(np.int32)
    body = """UnalignReg state;
        RegTensor<int32_t> v;
        for (uint16_t i = 0; i < 3; ++i) {
            vlds(v, src, i * 64, NORM);
            vstus(state, 7, v, dst, POST_UPDATE);
        }
        vstas(state, dst, 0, POST_UPDATE);"""
    out = _run(tmp_path, "int32_t", x, "int32_t", 24, body)
    assert np.array_equal(out[:21], np.concatenate([x[:7], x[64:71], x[128:135]]))


def test_an_unaligned_load_begins_at_any_element(tmp_path: Path) -> None:
    x = _RNG.standard_normal(128).astype(np.float32)
    body = """UnalignReg state;
        RegTensor<float> v;
        MaskReg all = pset_b32(PAT_ALL);
        vldas(state, src + 3);
        vldus(v, state, src + 3);
        vsts(v, dst, 0, NORM_B32, all);"""
    assert np.array_equal(_run(tmp_path, "float", x, "float", 64, body), x[3:67])


def test_blocks_are_stored_with_a_stride_in_one_number(tmp_path: Path) -> None:
    x = _RNG.standard_normal(128).astype(np.float32)
    body = """RegTensor<float> v;
        MaskReg all = pset_b32(PAT_ALL);
        for (uint16_t i = 0; i < 2; ++i) {
            vlds(v, src, i * 64, NORM);
            vsstb(v, dst, (2u << 16) | 1u, all, POST_UPDATE);
        }"""
    out = _run(tmp_path, "float", x, "float", 128, body).reshape(16, 8)
    assert np.array_equal(out[::2], x[:64].reshape(8, 8))
    assert np.array_equal(out[1::2], x[64:].reshape(8, 8))


def test_a_distribution_moves_items_of_its_own_width(tmp_path: Path) -> None:
    """`NORM_B32` stores words of halves, `UNPK_B16` fills words of a register of floats."""
    x = _RNG.integers(1, 999, 128).astype(np.uint16)
    body = """RegTensor<half> v;
        RegTensor<float> w;
        MaskReg all = pset_b32(PAT_ALL);
        vlds((RegTensor<uint16_t>&)v, src, 0, NORM);
        vsts(v, dst, 0, NORM_B32, all);
        vlds(w, src, 0, UNPK_B16);
        vsts(w, (__ubuf__ uint32_t*)(dst + 128), 0, NORM_B32, all);"""
    out = _run(tmp_path, "uint16_t", x, "uint16_t", 256, body)
    assert np.array_equal(out[:128], x)
    assert np.array_equal(out[128:].view(np.uint32), x[:64].astype(np.uint32))


def test_products_are_added_to_what_the_register_holds(tmp_path: Path) -> None:
    x = _RNG.integers(-9, 9, 128).astype(np.float32)
    body = """RegTensor<float> a, b, sum;
        MaskReg all = pset_b32(PAT_ALL);
        vlds(a, src, 0, NORM);
        vlds(b, src, 64, NORM);
        vdup(sum, 3.0f, all, MODE_ZEROING);
        vmula(sum, a, b, all, MODE_ZEROING);
        vaxpy(sum, a, 2.0f, all, MODE_ZEROING);
        vsts(sum, dst, 0, NORM_B32, all);"""
    out = _run(tmp_path, "float", x, "float", 64, body)
    assert np.array_equal(out, 3 + x[:64] * x[64:] + 2 * x[:64])


def test_a_function_takes_registers_and_masks_by_value(tmp_path: Path) -> None:
    x = _RNG.standard_normal(64).astype(np.float32)
    kernel = _KERNEL.format(
        of="float", n=64, to="float", m=64, body="""RegTensor<float> v;
        MaskReg all = pset_b32(PAT_ALL);
        vlds(v, src, 0, NORM);
        twice(v, v, all);
        vsts(v, dst, 0, NORM_B32, all);""",
    )  # fmt: skip
    function = """AICORE void twice(RegTensor<float>& to, RegTensor<float> of, MaskReg on)
{
    vadd(to, of, of, on, MODE_ZEROING);
}
"""
    path = tmp_path / "work.cpp"
    path.write_text(kernel.replace("__global__", function + "__global__", 1), encoding="utf-8")
    out = np.zeros(64, np.float32)
    pto.cpp(str(path), profile="a5")["work"](out, x)
    assert np.array_equal(out, x + x)


def test_a_race_inside_a_scope_is_found_at_its_lines(tmp_path: Path) -> None:
    x = np.zeros(64, np.float32)
    body = """RegTensor<float> v, w;
        MaskReg all = pset_b32(PAT_ALL);
        vlds(v, src, 0, NORM);
        vsts(v, dst, 0, NORM_B32, all);
        vlds(w, dst, 0, NORM);
        vsts(w, dst, 0, NORM_B32, all);"""
    kernel = _kernel(tmp_path, "float", 64, "float", 64, body)
    report = kernel.sanitize(np.zeros(64, np.float32), x)
    codes = {finding.code for finding in report}
    assert codes and all(code in ("PTO-R005", "PTO-R006", "PTO-R007") for code in codes)
    ordered = body.replace("vlds(w", "mem_bar(VST_VLD);\n        vlds(w")
    (tmp_path / "ordered").mkdir()
    kernel = _kernel(tmp_path / "ordered", "float", 64, "float", 64, ordered)
    report = kernel.sanitize(np.zeros(64, np.float32), x)
    assert "PTO-R005" not in {finding.code for finding in report}


def test_a_store_after_the_load_that_it_depends_on_is_no_race(tmp_path: Path) -> None:
    body = """RegTensor<float> v;
        MaskReg all = pset_b32(PAT_ALL);
        vlds(v, src, 0, NORM);
        vadds(v, v, 1.0f, all, MODE_ZEROING);
        vsts(v, src, 0, NORM_B32, all);
        vsts(v, dst, 0, NORM_B32, all);"""
    kernel = _kernel(tmp_path, "float", 64, "float", 64, body)
    assert not list(kernel.sanitize(np.zeros(64, np.float32), np.zeros(64, np.float32)))


def test_a_scope_takes_longer_with_more_instructions(tmp_path: Path) -> None:
    body = """RegTensor<float> v;
        MaskReg all = pset_b32(PAT_ALL);
        vlds(v, src, 0, NORM);
        for (int i = 0; i < {times}; ++i) vexp(v, v, all, MODE_ZEROING);
        vsts(v, dst, 0, NORM_B32, all);"""
    times = list[float]()
    for n in (10, 2000):
        folder = tmp_path / str(n)
        folder.mkdir()
        kernel = _kernel(folder, "float", 64, "float", 64, body.replace("{times}", str(n)))
        times.append(kernel.time((64,), (64,)).us)
    assert times[1] > times[0]


def _finding(folder: Path, body: str) -> str:
    x, out = np.zeros(64, np.float32), np.zeros(64, np.float32)
    with pytest.raises(PtoError) as error:
        _kernel(folder, "float", 64, "float", 64, body)(out, x)
    return str(error.value)


def test_a_flag_inside_a_scope_is_refused(tmp_path: Path) -> None:
    text = _finding(tmp_path, "pipe_barrier(PIPE_V);")
    assert "PTO-S113" in text and "work.cpp:" in text


def test_types_of_operands_must_agree(tmp_path: Path) -> None:
    body = """RegTensor<float> v;
        RegTensor<int32_t> w;
        MaskReg all = pset_b32(PAT_ALL);
        vdup(v, 1.0f, all, MODE_ZEROING);
        vadd(w, v, v, all, MODE_ZEROING);"""
    assert "PTO-T080" in _finding(tmp_path, body)


def test_a_word_of_another_instruction_is_refused(tmp_path: Path) -> None:
    body = """RegTensor<float> v;
        vlds(v, src, 0, PART_EVEN);"""
    assert "vlds has no place for PART_EVEN" in _finding(tmp_path, body)


def test_the_call_of_another_form_names_what_is_taken(tmp_path: Path) -> None:
    body = """RegTensor<float> v;
        MaskReg all = pset_b32(PAT_ALL);
        vadd(v, v, all);"""
    assert "vadd takes result, lhs, rhs, mask" in _finding(tmp_path, body)


def test_a_register_that_nothing_wrote_is_a_warning(tmp_path: Path) -> None:
    body = """RegTensor<float> v, w;
        MaskReg all = pset_b32(PAT_ALL);
        vlds(v, src, 0, NORM);
        vadd(v, v, w, all, MODE_ZEROING);
        vsts(v, dst, 0, NORM_B32, all);"""
    x, out = np.ones(64, np.float32), np.zeros(64, np.float32)
    kernel = _kernel(tmp_path, "float", 64, "float", 64, body)
    (finding,) = kernel.sanitize(out, x)
    assert finding.code == "PTO-U255" and finding.severity == "warning"
    assert finding.loc is not None and finding.loc.line == 23
    assert (out == 1).all()


def test_registers_are_names_of_a5_alone(tmp_path: Path) -> None:
    path = tmp_path / "work.cpp"
    path.write_text(_KERNEL.format(of="float", n=64, to="float", m=64, body="vector_f32 v;"))
    with pytest.raises(PtoError) as error:
        pto.cpp(str(path), profile="a2a3")["work"](np.zeros(64, "f"), np.zeros(64, "f"))
    assert "provided on a5" in (error.value.diagnostics[0].help or "")
