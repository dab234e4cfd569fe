"""Exported programs of cube and vector code: a board starts two vector sub-blocks, and so do these
tests. The second one works where the launch has it, and neither waits nor stores where it has not.
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import pto
from pto import isa
from pto.cxx import st
from pto.cxx.export import cpp, folder
from pto.ir.text.parser import parse
from pto.target.profile import profile
from tests.known.test_fifo import round_trip

HALF, FLOAT = pto.Global[pto.f16], pto.Global[pto.f32]
ROWS, COLS = 32, 64
SLOT = ROWS * COLS * 4


def pair(both_ways: bool, split: int, **options: object) -> pto.Kernel[...]:
    """o = 2 q k^T, or 4 (q k^T) k, summed over two rounds; each sub-block stores its rows."""
    mask, slots = (3, 4) if both_ways else (1, 8)
    rows = ROWS // 2 if split else ROWS

    def cube(q: HALF, k: HALF, o: FLOAT) -> None:
        buffers = {"c2v_consumer_buf": isa.import_reserved_buffer("c2v", "vector")}
        if both_ways:
            buffers["v2c_consumer_buf"] = isa.reserve_buffer("v2c", slots * SLOT, "mat", True)
        isa.aic_initialize_pipe(mask, SLOT, **buffers, **options)
        for _ in pto.range(2):
            product = pto.dot(pto.load(q, ROWS, COLS), pto.load(k.T, COLS, COLS))
            isa.tpush_to_aiv(product, split)
            if both_ways:
                left = isa.tpop_from_aiv(split, to=pto.tile_type(ROWS, COLS, pto.f16, role="mat"))
                product = pto.dot(left, pto.load(k, COLS, COLS))
                isa.tfree_from_aiv(split)
                isa.tpush_to_aiv(product, split)

    def vector(q: HALF, k: HALF, o: FLOAT) -> None:
        buffers = {"c2v_consumer_buf": isa.reserve_buffer("c2v", slots * SLOT, "vec", True)}
        if both_ways:
            buffers["v2c_consumer_buf"] = isa.import_reserved_buffer("v2c", "f")
        isa.aiv_initialize_pipe(mask, SLOT, **buffers, **options)
        first = pto.subblock_idx() * rows if split else 0
        total, popped = pto.zeros(rows, COLS, pto.f32), pto.tile_type(rows, COLS, pto.f32)
        for _ in pto.range(2):
            twice = isa.tpop_from_aic(split, to=popped) * 2.0
            isa.tfree_from_aic(split)
            if both_ways:
                boxed = pto.tile(rows, COLS, pto.f16, layout="NZ")
                isa.tmov(boxed, twice.to(pto.f16))
                isa.tpush_to_aic(boxed, split)
                twice = isa.tpop_from_aic(split, to=popped)
                isa.tfree_from_aic(split)
            total = total + twice
        pto.store(o[first : first + rows, :], total)

    return pto.pair(cube, vector, profile="a5", name="f")


def statuses(path: Path) -> list[tuple[str, list[str]]]:
    cases = st.run(st.find([path]), "", 1, 300.0, lambda case: None)
    return [(c.status, [d.message for d in c.findings]) for c in cases]


@pytest.mark.usefixtures("a_compiler")
@pytest.mark.parametrize(
    ("both_ways", "split", "options"),
    [
        (False, 0, {}),
        (False, 0, {"nosplit": True}),
        (False, 1, {}),
        (True, 0, {}),
        (True, 0, {"nosplit": True}),
        (True, 1, {}),
    ],
)
def test_an_exported_pair_computes_what_it_computes_here(both_ways, split, options, tmp_path):
    """Small integers: products and sums are exact, whatever their order."""
    rng = np.random.default_rng(3)
    q, k = (rng.integers(-2, 3, (n, COLS)).astype(np.float16) for n in (ROWS, COLS))
    kernel, o = pair(both_ways, split, **options), np.zeros((ROWS, COLS), np.float32)
    kernel.export(q, k, o, out=str(tmp_path / "out"), device="950pr")
    product = 2 * q.astype(np.float32) @ k.T.astype(np.float32)
    expected = 2 * (product @ k.astype(np.float32) if both_ways else product)
    golden = (tmp_path / "out/data/golden_o.bin").read_bytes()
    assert golden == expected.astype(np.float32).tobytes()
    assert statuses(tmp_path) == [("exact", [])]


@pytest.mark.usefixtures("a_compiler")
@pytest.mark.parametrize("split", [0, 1, 2])
@pytest.mark.parametrize("target", ["a2a3", "a5"])
@pytest.mark.parametrize("in_sections", [False, True])
def test_an_entry_of_both_sides_computes_what_it_computes_here(
    target, split, in_sections, tmp_path
):
    """The known result of `tests/known/test_fifo.py`: twice the data."""
    text = round_trip("a5" if target == "a5" else "a3", split)
    if in_sections:
        calls = re.compile(r"(func.call @(cube|vector).*)")
        text = calls.sub(r"pto.section.\2 {\n\1\n}", text)
    module = parse(text)
    data = np.random.default_rng(2).standard_normal((3 * 32, 32)).astype(np.float32)
    out, slots = np.zeros_like(data), np.zeros(2 * 4 * 1024, np.float32)
    args = [slots, 2 * np.eye(32, dtype=np.float32), data, out, 3]
    folder.export([module], [args], tmp_path / "out", name="both", profile=target)
    assert (tmp_path / "out/data/golden_out.bin").read_bytes() == (2 * data).tobytes()
    assert statuses(tmp_path) == [("exact", [])]


def test_only_code_of_one_sub_block_is_guarded():
    guard = "get_subblockid()"
    for target, split, guarded in [("a5", 0, True), ("a2a3", 0, False)]:
        text = cpp(parse(round_trip("a5" if target == "a5" else "a3", split)), profile(target))
        cube, vector = text.split("void vector(")
        assert guard not in cube
        assert (guard in vector) is guarded


RETURNS = """
module attributes {pto.target_arch = "a2a3"} {
  func.func @main(%a: !pto.ptr<f32>, %n: index) attributes {pto.entry} {
    %place = func.call @next(%n) : (index) -> index
    %two = arith.constant 2.0 : f32
    pto.section.vector {
      pto.store_scalar %two, %a[%place] : !pto.ptr<f32>, f32
    }
    pto.section.cube {
      pto.store_scalar %two, %a[%n] : !pto.ptr<f32>, f32
    }
    return
  }
  func.func private @next(%n: index) -> index
      attributes {pto.kernel_kind = #pto.kernel_kind<vector>} {
    %c1 = arith.constant 1 : index
    %m = arith.addi %n, %c1 : index
    return %m : index
  }
}
"""


@pytest.mark.usefixtures("a_compiler")
def test_a_function_of_one_side_returns_nothing_on_the_other(tmp_path):
    args = [np.zeros(8, np.float32), 3]
    folder.export([parse(RETURNS)], [args], tmp_path / "out", name="returns", profile="a2a3")
    golden = np.fromfile(tmp_path / "out/data/golden_a.bin", np.float32)
    assert golden.tolist() == [0, 0, 0, 2, 2, 0, 0, 0]
    assert statuses(tmp_path) == [("exact", [])]
