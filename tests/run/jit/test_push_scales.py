"""Accumulators that a queue converts on their way: every mode, the same bits as the reference.
Compiled code converts without scales; with a scale Python pushes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pto
from pto.core.dtypes import dtype
from pto.run.jit.emit.frame import HostFallback

_SLOT, _SLOTS, _TURNS = 2048, 2, 3  # more entries than slots
_NZ = "blayout=col_major, slayout=row_major"
_KINDS = {"i32": "i8", "f32": "f16"}  # of factors, by that of their product
_SCALAR = "pto.set_quant_scalar(%scale : f32) {id = 0}"
_SCALE, _OPENS = 0.3, {"pto.aic_initialize_pipe", "pto.aiv_initialize_pipe"}
_VECTOR = "pto.set_quant_vector(%fp : !fp) {id = 0}"
_SCALED = {"pto.tpush_to_aiv"}  # and the instruction that sets the scale


def _program(profile: str, quant: str, scale: str, kinds: tuple[str, str], how: str) -> str:
    """A product with the unit matrix is pushed, the consumer stores what it has got."""
    (src, dst), (layout, _, relu) = kinds, how.partition(" ")
    factor, word = _KINDS[src], "f16" if profile == "a5" else "ui64"
    epilogue = f"#pto.acc_push_epilogue<layout = {layout}, quant = {quant}, relu = {relu}>"
    queue = f"id = 0, dir_mask = 1, slot_size = {_SLOT}, slot_num = {_SLOTS}, nosplit = true"
    queue += f", acc_push_epilogue = {epilogue}" if quant else ""
    gm = "gm_slot_buffer = %slots : !pto.ptr<f32>, " if profile == "a3" else ""
    where = f"({gm}c2v_consumer_buf = %buf : i32, v2c_consumer_buf = %zero : i32)"
    given = f"""%slots: !pto.ptr<f32>, %x: !pto.ptr<{factor}>, %unit: !pto.ptr<{factor}>,
      %row: !pto.ptr<{word}>, %scale: f32, %out: !pto.ptr<{dst}>, %r: index, %c: index"""
    numbers = f"""
        %zero = arith.constant 0 : i32
        %c0 = arith.constant 0 : index
        %c1 = arith.constant 1 : index
        %c16 = arith.constant 16 : index
        %c32 = arith.constant 32 : index
        %turns = arith.constant {_TURNS} : index"""
    loads = "".join(
        f"""
        %v{name} = pto.make_tensor_view %{name}, shape = [%c{rows}, %c32], strides = [%c32, %c1]
          : !pto.tensor_view<?x?x{kind}>
        %p{name} = pto.partition_view %v{name}, offsets = [%c0, %c0], sizes = [%c{rows}, %c32]
          : !pto.tensor_view<?x?x{kind}> -> !pto.partition_tensor_view<{rows}x32x{kind}>
        %{to} = pto.alloc_tile : !{to}
        pto.tload ins(%p{name} : !pto.partition_tensor_view<{rows}x32x{kind}>)
          outs(%{to} : !{to})"""
        for name, rows, to, kind in (
            ("x", 16, "a", factor),
            ("unit", 32, "b", factor),
            ("row", 1, "w", word),
        )
    )
    steps = "[%c1, %c16]" if layout == "nz2dn" else "[%c32, %c1]"
    order = {"nz2dn": ", blayout=col_major", "nz2nz": f", {_NZ}"}.get(layout, "")
    return f"""
    !a = !pto.tile_buf<mat, 16x32x{factor}, {_NZ}>
    !b = !pto.tile_buf<mat, 32x32x{factor}, {_NZ}>
    !w = !pto.tile_buf<mat, 1x32x{word}>
    !fp = !pto.tile_buf<scaling, 1x32x{word}>
    !left = !pto.tile_buf<left, 16x32x{factor}, {_NZ}>
    !right = !pto.tile_buf<right, 32x32x{factor}, slayout=col_major>
    !acc = !pto.tile_buf<acc, 16x32x{src}, valid=?x?, {_NZ}, fractal=1024>
    !got = !pto.tile_buf<vec, 16x32x{dst}, valid=?x?{order}>
    !out = !pto.tensor_view<?x?x{dst}>
    !some = !pto.partition_tensor_view<?x?x{dst}>
    module attributes {{pto.target_arch = "{profile}"}} {{
      func.func @cube({given}) attributes {{pto.kernel_kind = #pto.kernel_kind<cube>}} {{
        {numbers}
        %buf = pto.import_reserved_buffer {{name = "in", peer_func = @vector}} -> i32
        pto.aic_initialize_pipe {{{queue}}} {where}
        {loads}
        %left = pto.alloc_tile : !left
        %right = pto.alloc_tile : !right
        %fp = pto.alloc_tile : !fp
        %t = pto.alloc_tile valid_row = %c16 valid_col = %c32 : !acc
        pto.tmov ins(%a : !a) outs(%left : !left)
        pto.tmov ins(%b : !b) outs(%right : !right)
        pto.tmov ins(%w : !w) outs(%fp : !fp)
        pto.tmatmul ins(%left, %right : !left, !right) outs(%t : !acc)
        pto.set_validshape %t, %r, %c : !acc
        scf.for %i = %c0 to %turns step %c1 {{
          {scale}
          pto.tpush_to_aiv(%t : !acc) {{id = 0, split = 0}}
        }}
        return
      }}
      func.func @vector({given}) attributes {{pto.kernel_kind = #pto.kernel_kind<vector>}} {{
        {numbers}
        %buf = pto.reserve_buffer {{name = "in", size = {_SLOT * _SLOTS},
          location = #pto.address_space<vec>, auto = true}} -> i32
        pto.aiv_initialize_pipe {{{queue}}} {where}
        %v = pto.make_tensor_view %out, shape = [%r, %c], strides = {steps} : !out
        %p = pto.partition_view %v, offsets = [%c0, %c0], sizes = [%r, %c] : !out -> !some
        scf.for %i = %c0 to %turns step %c1 {{
          %t = pto.tpop_from_aic {{id = 0, split = 0}} -> !got
          pto.tstore ins(%t : !got) outs(%p : !some)
          pto.tfree_from_aic {{id = 0, split = 0}}
        }}
        return
      }}
    }}
    """


def _bits(values: Any, profile: str) -> Any:
    """Scales as a target has them: floats, or words of them."""
    floats = np.asarray(values, np.float32)
    return (
        floats.astype(np.float16) if profile == "a5" else floats.view(np.uint32).astype(np.uint64)
    )


def _factor(kinds: tuple[str, str]) -> Any:
    numbers = np.arange(512).reshape(16, 32) * 37 % 251 - 125
    return numbers.astype(dtype(_KINDS[kinds[0]]).numpy)


def _sent(
    text: str, profile: str, kinds: tuple[str, str], region: tuple[int, int], scales: Any
) -> Any:
    """What arrives, the same by compiled code and by the reference."""
    x, found = _factor(kinds), list[Any]()
    for engine in ("jit", "reference"):
        slots, out = np.zeros(_SLOT * _SLOTS // 4, np.float32), np.zeros(512, dtype(kinds[1]).numpy)
        unit, row = np.eye(32, dtype=x.dtype), _bits(scales, profile).reshape(1, 32)
        args = [slots, x, unit, row, _SCALE, out, *region]
        pto.launch(pto.parse(text), args=args, engine=engine)
        found.append(out)
    assert found[0].tobytes() == found[1].tobytes()
    return found[0]


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The operations that Python does while compiled code runs."""
    found, run = list[str](), HostFallback.__call__

    def tell(self: HostFallback, *given: Any) -> Any:
        found.append(self.__dict__["_op"].name)
        return run(self, *given)

    monkeypatch.setattr(HostFallback, "__call__", tell)
    return found


_MODES = [
    ("a3 a5", "deqf16_vec", "i32", "f16"),
    ("a3 a5", "deqf16_scalar", "i32", "f16"),
    ("a3 a5", "req8_vec", "i32", "si8"),
    ("a3 a5", "req8_scalar", "i32", "ui8"),
    ("a3 a5", "qf322b8_pre_vec", "f32", "si8"),
    ("a3 a5", "qf322f16_pre_scalar", "f32", "f16"),
    ("a3 a5", "f32_bf16", "f32", "bf16"),
    ("a3 a5", "no_convert", "i32", "i32"),
    ("a5", "qs322bf16_pre_vec", "i32", "bf16"),
    ("a5", "qf322fp8_pre_scalar", "f32", "f8E4M3FN"),
    ("a5", "qf322hif8_pre_scalar", "f32", "!pto.hif8"),
]


@pytest.mark.parametrize("how", ["nz2nd no_relu", "nz2dn normal_relu"])
@pytest.mark.parametrize(
    ("profile", "quant", "src", "dst"),
    [(each, *mode) for profiles, *mode in _MODES for each in profiles.split()],
)
def test_every_mode(
    profile: str, quant: str, src: str, dst: str, how: str, asked: list[str]
) -> None:
    if profile == "a3" and how.startswith("nz2dn"):
        how = "nz2nd normal_relu"
    scale = _VECTOR if quant.endswith("_vec") else _SCALAR if quant.endswith("_scalar") else ""
    kinds = src, dst
    text = _program(profile, quant, scale, kinds, how)
    for region in ((16, 32), (11, 7)):
        assert _sent(text, profile, kinds, region, np.linspace(-1.5, 1.5, 32)).view(np.uint8).any()
    sets = {scale.split("(")[0]} if scale else set[str]()
    assert set(asked) - _OPENS == (_SCALED | sets if scale else set())


@pytest.mark.parametrize("profile", ["a3", "a5"])
def test_columns_have_their_own_scales(profile: str, asked: list[str]) -> None:
    kinds, scales = ("i32", "f16"), np.tile([0.5, -2.0, 4.0, 0.25], 8)
    text = _program(profile, "deqf16_vec", _VECTOR, kinds, "nz2nd no_relu")
    found = _sent(text, profile, kinds, (11, 7), scales).reshape(16, 32)
    assert np.array_equal(found[:11, :7], (_factor(kinds) * scales)[:11, :7])
    assert not found[11:].any() and not found[:, 7:].any()
    assert set(asked) - _OPENS == {"pto.set_quant_vector", *_SCALED}


_OTHER = f"""{_VECTOR}
          %wide = pto.alloc_tile : !pto.tile_buf<scaling, 1x64xui64>
          %is_first = arith.cmpi eq, %i, %c0 : index
          scf.if %is_first {{
            pto.set_quant_vector(%wide : !pto.tile_buf<scaling, 1x64xui64>) {{id = 0}}
          }}"""


def test_a_scale_of_another_form(asked: list[str]) -> None:
    kinds, scales = ("i32", "f16"), np.tile([0.5, -2.0, 4.0, 0.25], 8)
    text = _program("a3", "deqf16_vec", _OTHER, kinds, "nz2nd no_relu")
    found = _sent(text, "a3", kinds, (16, 32), scales).reshape(16, 32)
    assert np.array_equal(found, _factor(kinds) * scales)
    assert set(asked) - _OPENS == {"pto.set_quant_vector", *_SCALED}


def test_the_word_of_a_single_column_is_whole(asked: list[str]) -> None:
    """Of a scale that has more bits than that of a channel."""
    kinds = "i32", "f16"
    text = _program("a3", "deqf16_vec", _VECTOR, kinds, "nz2nd no_relu")
    found = _sent(text, "a3", kinds, (16, 1), np.full(32, _SCALE)).reshape(16, 32)
    wanted = _factor(kinds)[:, 0] * np.float32(_SCALE)
    assert np.array_equal(found[:, 0], wanted.astype(np.float16))
    assert set(asked) - _OPENS == {"pto.set_quant_vector", *_SCALED}


_NEXT = [
    ('pto.set_quant_scalar ins(%scale : f32) {out_type = "i8"}', "f32", "si8"),
    ('pto.set_quant_scalar ins(%scale : f32) {out_type = "u8"}', "i32", "ui8"),
    ('pto.set_quant_scalar ins(%scale : f32) {out_type = "bf16"}', "f32", "bf16"),
    ("pto.set_quant_vector ins(%fp : !fp)", "i32", "si8"),
]


@pytest.mark.parametrize(("scale", "src", "dst"), _NEXT)
def test_the_next_push_is_scaled(scale: str, src: str, dst: str, asked: list[str]) -> None:
    text = _program("a3", "", scale, (src, dst), "nz2nd no_relu")
    found = _sent(text, "a3", (src, dst), (16, 32), np.linspace(-1.5, 1.5, 32))
    assert found.view(np.uint8).any()
    assert set(asked) - _OPENS == {scale.split()[0], *_SCALED}


@pytest.mark.parametrize("profile", ["a3", "a5"])
def test_a_push_without_a_scale_beside_one_that_has_it(profile: str, asked: list[str]) -> None:
    """The first of three is scaled to integers of as many bits, the others go as they are."""
    kinds = "f32", "f32"
    scale = """%is_first = arith.cmpi eq, %i, %c0 : index
          scf.if %is_first {
            pto.set_quant_scalar ins(%scale : f32) {out_type = "bf16"}
          }"""
    text = _program(profile, "", scale, kinds, "nz2nd no_relu")
    found = _sent(text, profile, kinds, (16, 32), np.ones(32)).reshape(16, 32)
    assert np.array_equal(found, _factor(kinds))  # of the last push
    assert set(asked) - _OPENS == {"pto.set_quant_scalar", *_SCALED}


def test_a_queue_with_an_epilogue_beside_a_scale_of_the_next_push(asked: list[str]) -> None:
    kinds, scales = ("i32", "f16"), np.tile([0.5, -2.0, 4.0, 0.25], 8)
    never = """%none = arith.cmpi slt, %i, %c0 : index
          scf.if %none {
            pto.set_quant_scalar ins(%scale : f32) {out_type = "bf16"}
          }"""
    text = _program("a3", "deqf16_vec", f"{_VECTOR}\n{never}", kinds, "nz2nd no_relu")
    found = _sent(text, "a3", kinds, (16, 32), scales).reshape(16, 32)
    assert np.array_equal(found, _factor(kinds) * scales)
    assert set(asked) - _OPENS == {"pto.set_quant_vector", *_SCALED}
