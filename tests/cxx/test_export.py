"""Programs written as C++ give the same bits when they come back through the compiler."""

from __future__ import annotations

import numpy as np
import pytest

import pto
from examples import (
    flash_attention,
    gemm_double_buffered,
    gemm_int8,
    gemm_mx,
    layernorm,
    manual_custom_pad,
    softmax,
    softmax_registers,
    top_k,
)
from pto import isa
from pto.cli.main import main
from pto.cxx.export import cpp
from pto.ir.text.parser import parse
from pto.lang.kernel import Kernel
from pto.target.profile import profile as find_profile

EXAMPLES = [
    (module, profile)
    for module in (softmax, gemm_double_buffered, gemm_int8, layernorm, top_k, flash_attention)
    for profile in ("a2a3", "a5")
] + [(gemm_mx, "a5"), (manual_custom_pad, "a5")]


@pytest.fixture
def launched(monkeypatch):
    """Runs of the test: the C++ of the kernel, its arguments before and after, how many blocks."""
    seen = []
    run = Kernel.run

    def spy(self, *args, blocks=1, **named):
        before = [np.array(a) if isinstance(a, np.ndarray) else a for a in args]
        seen.append((self.cpp(*args), before, args, blocks))
        return run(self, *args, blocks=blocks, **named)

    monkeypatch.setattr(Kernel, "run", spy)
    return seen


def entry_of(text: str) -> str:
    head = [line for line in text.splitlines() if line.startswith("__global__")][-1]
    return head.partition("void ")[2].partition("(")[0]


def bits(array):
    return np.ascontiguousarray(array).view(np.uint8)


@pytest.mark.parametrize(
    ("module", "profile"), EXAMPLES, ids=lambda x: getattr(x, "__name__", x).rpartition(".")[2]
)
@pytest.mark.usefixtures("a_compiler")
def test_an_example_comes_back_through_the_compiler(module, profile, launched, tmp_path):
    module.example(profile)
    text, before, after, blocks = launched[0]
    path = tmp_path / "k.cpp"
    path.write_text(text)
    pto.cpp(str(path), profile=profile)[entry_of(text)][blocks](
        *(b for b in before if not isinstance(b, bool))  # numbers of the trace
    )
    arrays = [(here, there) for here, there in zip(before, after, strict=True) if np.ndim(here)]
    assert arrays
    for here, there in arrays:
        assert np.array_equal(bits(here), bits(there))


@pto.kernel(profile="a5")
def counted(x: pto.Global[pto.f32], y: pto.Global[pto.f32], n: pto.i32):
    t = pto.tile(8, 64, pto.f32)
    isa.tload(t, x)
    if n > 2:
        for _ in pto.range(0, n, 1):
            isa.tadds(t, t, 1.0)
    isa.tstore(y, t)


def test_control_flow_is_written_as_control_flow():
    text = counted.cpp(np.zeros((8, 64), np.float32), np.zeros((8, 64), np.float32), 3)
    assert "void counted(__gm__ float* x, __gm__ float* y, int32_t n)" in text
    assert "for (int64_t" in text
    assert "if (" in text
    assert text.count("TADDS(t, t, 1.0f);") == 1
    assert "set_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);" in text  # as `pto sync` puts it


@pto.kernel(profile="a5")
def halved(x: pto.Global[pto.f32], y: pto.Global[pto.f16]):
    t, h = pto.tile(8, 64, pto.f32), pto.tile(8, 64, pto.f16)
    isa.tload(t, x)
    isa.tcvt(h, t)
    isa.tstore(y, h)


def test_a_rounding_that_is_not_written_is_named():
    """The library of the chip asks for one in every conversion."""
    text = halved.cpp(np.zeros((8, 64), np.float32), np.zeros((8, 64), np.float16))
    assert "RoundMode::CAST_RINT);" in text


def test_registers_have_no_form_in_cpp():
    with pytest.raises(pto.PtoError) as caught:
        kernel = next(v for v in vars(softmax_registers).values() if isinstance(v, Kernel))
        softmax_registers.example("a5")
        kernel.cpp()
    assert caught.value.code == "PTO-U249"
    assert caught.value.diagnostics[0].loc is not None


def test_fmt_prints_cpp(capsys):
    assert main(["fmt", "--cpp", "examples/add.pto"]) == 0
    out = capsys.readouterr().out
    assert "#include <pto/pto-inst.hpp>" in out
    assert "TADD(" in out


def written(text: str, profile: str = "a2a3") -> str:
    return cpp(parse(text), find_profile(profile))


TILE = "!pto.tile_buf<vec, {}>"


def test_the_mode_of_a_comparison_is_always_written():
    """TCMP of the chip's library has no default mode."""
    full, mask = TILE.format("16x64xf32"), TILE.format("16x32xui8")
    text = written(f"""func.func @k() {{
    %a = pto.alloc_tile : {full}
    %m = pto.alloc_tile : {mask}
    pto.tcmp ins(%a, %a : {full}, {full}) outs(%m : {mask})
    return
    }}""")
    assert "TCMP(m, a, a, CmpMode::EQ);" in text


def test_scratch_that_the_text_leaves_out_is_declared_and_passed():
    full, column = TILE.format("16x128xf32"), TILE.format("32x1xf32, blayout=col_major, valid=16x1")
    text = written(f"""func.func @k() {{
    %a = pto.alloc_tile : {full}
    %c = pto.alloc_tile : {column}
    pto.trowsum ins(%a : {full}) outs(%c : {column})
    pto.trowmax ins(%a : {full}) outs(%c : {column})
    return
    }}""")
    assert "Tile<TileType::Vec, float, 16, 64> tmp;" in text
    assert "TROWMAX(c, a, tmp_1);" in text
    # the C++ simulator asks for as many rows as the source has
    assert "Tile<TileType::Vec, float, 16, 1, BLayout::ColMajor, DYNAMIC, DYNAMIC> c_seen(" in text
    assert "TROWSUM(c_seen, a, tmp);" in text


def test_a_constructor_takes_the_sizes_that_the_type_leaves_open():
    half = TILE.format("16x64xf32, valid=?x64")
    text = written(f"""func.func @k(%n: index) {{
    %a = pto.alloc_tile valid_row = %n : {half}
    pto.texp ins(%a : {half}) outs(%a : {half})
    return
    }}""")
    assert "BLayout::RowMajor, DYNAMIC> a(n);" in text


def test_indices_are_passed_as_the_unsigned_words_that_the_library_takes():
    src, idx, dst = TILE.format("1x64xf32"), TILE.format("1x64xi32"), TILE.format("1x128xf32")
    text = written(f"""func.func @k() {{
    %s = pto.alloc_tile : {src}
    %i = pto.alloc_tile : {idx}
    %d = pto.alloc_tile : {dst}
    pto.tsort32 ins(%s, %i : {src}, {idx}) outs(%d : {dst})
    return
    }}""")
    assert "Tile<TileType::Vec, uint32_t, 1, 64" in text
    assert "TSORT32(d, s, i_seen);" in text


def test_tiles_that_a_call_wants_of_one_type_have_one():
    known, open_ = TILE.format("16x64xf32"), TILE.format("16x64xf32, valid=?x?")
    text = written(f"""func.func @k(%n: index) {{
    %a = pto.alloc_tile : {known}
    %b = pto.alloc_tile valid_row = %n valid_col = %n : {open_}
    pto.tadd ins(%a, %b : {known}, {open_}) outs(%b : {open_})
    return
    }}""")
    assert "BLayout::RowMajor, DYNAMIC, DYNAMIC> a(16, 64);" in text


def test_tiles_of_one_type_have_one_padding():
    plain, padded = TILE.format("16x64xf32"), TILE.format("16x64xf32, pad=1")
    text = written(f"""func.func @k() {{
    %a = pto.alloc_tile : {plain}
    %b = pto.alloc_tile : {padded}
    pto.tadd ins(%b, %a : {padded}, {plain}) outs(%b : {padded})
    return
    }}""")
    assert "TADD(b, b, a_seen);" in text


def test_a_kernel_may_have_the_name_of_a_word_of_cpp():
    text = written("func.func @double(%x: !pto.ptr<f32>) attributes {pto.entry} {\nreturn\n}")
    assert "void double_(__gm__ float* x)" in text


def test_the_sum_of_one_row_is_passed_as_a_row():
    """A column of one number is shorter than a block; the simulator asks for as many rows."""
    row, column = TILE.format("1x128xf32"), TILE.format("32x1xf32, blayout=col_major, valid=1x1")
    text = written(f"""func.func @k() {{
    %a = pto.alloc_tile : {row}
    %c = pto.alloc_tile : {column}
    pto.trowsum ins(%a : {row}) outs(%c : {column})
    return
    }}""")
    assert "Tile<TileType::Vec, float, 1, 8, BLayout::RowMajor, DYNAMIC, DYNAMIC> c_seen(" in text


def test_packed_values_are_counted_as_the_library_counts_them():
    """Boxes and transfers in values, other plain tiles in bytes (a5/TQuant.hpp)."""
    plain, kind = TILE.format("16x32xf4E2M1x2"), "16x32xf4E2M1x2>"
    text = written(
        f"""!all = !pto.tensor_view<{kind}
    !part = !pto.partition_tensor_view<{kind}
    func.func @k(%p: !pto.ptr<f4E2M1x2>) {{
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c16 = arith.constant 16 : index
    %c32 = arith.constant 32 : index
    %v = pto.make_tensor_view %p, shape = [%c16, %c32], strides = [%c32, %c1] : !all
    %w = pto.partition_view %v, offsets = [%c0, %c0], sizes = [%c16, %c32] : !all -> !part
    %a = pto.alloc_tile : {plain}
    pto.tload ins(%w : !part) outs(%a : {plain})
    return
    }}""",
        "a5",
    )
    assert "Tile<TileType::Vec, float4_e2m1x2_t, 16, 64> a;" in text
    assert "Shape<1, 1, 1, 16, 64>, Stride<1024, 1024, 1024, 64, 1>" in text
