"""What a queue does to accumulators: modes, types, scales, and that both ends say the same."""

from __future__ import annotations

import pytest

from pto.ir.text.parser import parse
from pto.target.profile import profile
from pto.verify import verify

_PROGRAM = """
!acc = !pto.tile_buf<acc, 16x16x{pushed}, blayout=col_major, slayout=row_major, fractal=1024>
!out = !pto.tile_buf<vec, 16x16x{popped}{order}>
module attributes {{pto.target_arch = "a5"}} {{
  func.func @cube(%acc: !acc, %x: f32) attributes {{pto.kernel_kind = #pto.kernel_kind<cube>}} {{
    %none = arith.constant 0 : i32
    %there = pto.import_reserved_buffer {{name = "q", peer_func = @vector}} -> i32
    pto.aic_initialize_pipe {{id = 0, dir_mask = 1, slot_size = 1024, nosplit = true,
      acc_push_epilogue =
      #pto.acc_push_epilogue<layout = nz2nd, quant = {quant}, relu = no_relu>}}
      (c2v_consumer_buf = %there : i32, v2c_consumer_buf = %none : i32)
    {scale}
    pto.tpush_to_aiv(%acc : !acc) {{id = 0, split = 0}}
    return
  }}
  func.func @vector() attributes {{pto.kernel_kind = #pto.kernel_kind<vector>}} {{
    %none = arith.constant 0 : i32
    %here = pto.reserve_buffer {{name = "q", size = 8192, location = #pto.address_space<vec>,
      auto = true}} -> i32
    pto.aiv_initialize_pipe {{id = 0, dir_mask = 1, slot_size = {slot}, nosplit = true,
      acc_push_epilogue =
      #pto.acc_push_epilogue<layout = nz2nd, quant = {other}, relu = {relu}>}}
      (c2v_consumer_buf = {buffer} : i32, v2c_consumer_buf = %none : i32)
    {pop}
    return
  }}
}}
"""
_POP = "%t = pto.tpop_from_aic {id = 0, split = 0} -> !out\npto.tfree_from_aic {id = 0, split = 0}"
_SCALE = "pto.set_quant_scalar(%x : f32) {id = 0}"


def errors(target: str = "a5", **words: str) -> list[str]:
    usual = {"pushed": "f32", "popped": "f32", "order": "", "quant": "no_convert", "scale": ""}
    given = {**usual, "slot": "1024", "buffer": "%here", "relu": "no_relu", "pop": _POP, **words}
    given.setdefault("other", given["quant"])
    found = verify(parse(_PROGRAM.format(**given)), profile(target))
    return [d.message for d in found if d.code == "PTO-D116"]


def test_both_ends_agree() -> None:
    assert errors() == []
    assert errors(quant="qf322f16_pre_scalar", popped="f16", scale=_SCALE) == []
    assert errors(quant="req8_scalar", pushed="i32", popped="ui8", scale=_SCALE) == []


@pytest.mark.parametrize(
    ("words", "part"),
    [
        ({"quant": "qf322f32_pre"}, "expects one of f32_f16"),
        ({"relu": "scalar_relu"}, "expects one of no_relu, normal_relu: it is scalar_relu"),
        ({"other": "f32_f16", "popped": "f16"}, "expects the other end to do the same"),
        ({"quant": "f32_f16", "pushed": "i32", "popped": "f16"}, "pushes i32, f32_f16 has f32"),
        ({"quant": "f32_f16"}, "pops f32, f32_f16 has f16"),
        ({"pushed": "i32"}, "expects elements that stay as they are: they are f32 and i32"),
        ({"order": ", blayout=col_major"}, "expects nz2nd tiles at the other end: they are DN"),
        ({"slot": "512"}, "expects slots of 1024 bytes or more: they have 512"),
        ({"buffer": "%none"}, "expects c2v_consumer_buf to come from pto.reserve_buffer"),
        ({"pop": ""}, "nothing pops from this queue"),
        (
            {"quant": "qf322f16_pre_scalar", "popped": "f16"},
            "without a preceding pto.set_quant_scalar of its queue",
        ),
        ({"scale": _SCALE}, "expects a queue that scales by a scalar: its queue has no_convert"),
        ({"scale": _SCALE.replace("0", "1")}, "there is no queue 1"),
    ],
)
def test_what_does_not_fit(words: dict[str, str], part: str) -> None:
    assert any(part in message for message in errors(**words)), errors(**words)


def test_modes_of_a5_alone() -> None:
    words = {"quant": "qs322bf16_pre_scalar", "pushed": "i32", "popped": "bf16", "scale": _SCALE}
    assert errors(**words) == []
    assert any("qs322bf16_pre_scalar is for a5" in m for m in errors("a2a3", **words))
