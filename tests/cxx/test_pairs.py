"""Exported programs of cube and vector code: a board starts two vector sub-blocks, and so do these
tests. The second one works where the launch has it, and neither waits nor stores where it has not.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pto
from pto import isa
from pto.cxx import st
from pto.cxx.export import cpp, folder
from pto.ir.text.parser import parse
from pto.suite import pool
from pto.target.profile import profile
from tests.known.test_fifo import round_trip

HALF, FLOAT = pto.Global[pto.f16], pto.Global[pto.f32]
ROWS, COLS = 32, 64
SLOT = ROWS * COLS * 4


def pair(target: str, both_ways: bool, split: int, **options: object) -> pto.Kernel[...]:
    """o = 2 q k^T, or 4 (q k^T) k, summed over two rounds; each sub-block stores its half.

    On a2a3 the slots of the queue lie in the argument `room`.
    """
    mask, slots = (3, 4) if both_ways else (1, 8)
    rows, cols = (ROWS // 2, COLS) if split == 1 else (ROWS, COLS // 2 if split == 2 else COLS)
    in_memory = target == "a2a3"

    def opened(room: FLOAT, buffers: dict[str, Any]) -> dict[str, Any]:
        return buffers | {"gm_slot_buffer": room} | options if in_memory else buffers | options

    def cube(q: HALF, k: HALF, o: FLOAT, room: FLOAT) -> None:
        buffers = {"c2v_consumer_buf": isa.import_reserved_buffer("c2v", "vector")}
        if both_ways:
            buffers["v2c_consumer_buf"] = isa.reserve_buffer("v2c", slots * SLOT, "mat", True)
        isa.aic_initialize_pipe(mask, SLOT, **opened(room, buffers))
        for _ in pto.range(2):
            product = pto.dot(pto.load(q, ROWS, COLS), pto.load(k.T, COLS, COLS))
            isa.tpush_to_aiv(product, split)
            if both_ways:
                left = isa.tpop_from_aiv(split, to=pto.tile_type(ROWS, COLS, pto.f16, role="mat"))
                product = pto.dot(left, pto.load(k, COLS, COLS))
                isa.tfree_from_aiv(split)
                isa.tpush_to_aiv(product, split)

    def vector(q: HALF, k: HALF, o: FLOAT, room: FLOAT) -> None:
        buffers = {"c2v_consumer_buf": isa.reserve_buffer("c2v", slots * SLOT, "vec", True)}
        if both_ways:
            buffers["v2c_consumer_buf"] = isa.import_reserved_buffer("v2c", "f")
        isa.aiv_initialize_pipe(mask, SLOT, **opened(room, buffers))
        half = pto.subblock_idx() if split else 0
        total, popped = pto.zeros(rows, cols, pto.f32), pto.tile_type(rows, cols, pto.f32)
        for _ in pto.range(2):
            twice = isa.tpop_from_aic(split, to=popped) * 2.0
            isa.tfree_from_aic(split)
            if both_ways:
                pushed = twice.to(pto.f16)
                if not in_memory:
                    boxed = pto.tile(rows, cols, pto.f16, layout="NZ")
                    isa.tmov(boxed, pushed)
                    pushed = boxed
                isa.tpush_to_aic(pushed, split)
                twice = isa.tpop_from_aic(split, to=popped)
                isa.tfree_from_aic(split)
            total = total + twice
        i, j = (half * rows if split == 1 else 0), (half * cols if split == 2 else 0)
        pto.store(o[i : i + rows, j : j + cols], total)

    return pto.pair(cube, vector, profile=target, name="f")


def statuses(path: Path) -> list[tuple[str, list[str]]]:
    cases = pool.run(st.suite(st.find([path]), "", 300.0), 1)
    return [(c.outcome, [d.message for d in c.diagnostics]) for c in cases]


@pytest.mark.usefixtures("a_compiler")
@pytest.mark.parametrize("both_ways", [False, True])
@pytest.mark.parametrize("target", ["a2a3", "a5"])
@pytest.mark.parametrize(("split", "options"), [(0, {}), (0, {"nosplit": True}), (1, {}), (2, {})])
def test_an_exported_pair_computes_what_it_computes_here(
    split, options, target, both_ways, tmp_path
):
    """Small integers: products and sums are exact, whatever their order."""
    rng = np.random.default_rng(3)
    q, k = (rng.integers(-2, 3, (n, COLS)).astype(np.float16) for n in (ROWS, COLS))
    kernel, o = pair(target, both_ways, split, **options), np.zeros((ROWS, COLS), np.float32)
    room = np.zeros(8 * SLOT // 4, np.float32)
    kernel.export(q, k, o, room, out=str(tmp_path / "out"))
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
