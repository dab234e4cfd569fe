"""Accumulators out by pointer, and single elements, on the fast engine."""

from __future__ import annotations

import re
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tests.run.jit.both import agree, fails_alike
from tests.run.jit.tiles import Tile, program

_RANDOM = np.random.default_rng(9)
_NUMPY: dict[str, Any] = {
    "f32": np.float32,
    "f16": np.float16,
    "bf16": ml_dtypes.bfloat16,
    "i32": np.int32,
    "i8": np.int8,
}


def _text(src: str, dst: str, body: str) -> tuple[str, list[Any]]:
    tiles = [Tile("acc", 1, 16384, "ui8", role="acc"), Tile("mat", 1, 16384, "ui8", role="mat")]
    names = (
        f"%c = pto.castptr %at0 : i64 -> !pto.ptr<{src}, l0c>\n"
        f"%m = pto.castptr %at0 : i64 -> !pto.ptr<{dst}, l1>\n"
        "%f = arith.constant 1.0 : f32\n"
    )
    used = {int(n) for n in re.findall(r"%i(\d+)", body)}
    numbers = "".join(f"%i{n} = arith.constant {n} : i64\n" for n in sorted(used))
    text = program([("g", dst)], tiles, numbers + names + body)
    args: list[Any] = [_RANDOM.integers(0, 256, 65536, dtype=np.uint8).view(_NUMPY[dst])]
    for tile in tiles:
        args.append(_RANDOM.integers(0, 256, tile.nbytes, dtype=np.uint8))
        args.append(np.zeros(tile.nbytes, np.uint8))
    return text, args


def _move(to: str, src: str, dst: str, sizes: str, clauses: str, more: str = "") -> str:
    own = ", %i0, %i0" if to == "gm" else ""
    types = ", i64, i64" if to == "gm" else ""
    name, space = ("%g", "gm") if to == "gm" else ("%m", "l1")
    return (
        f"pto.mte_l0c_{to} %c, {name}, {sizes}{own}{clauses} : !pto.ptr<{src}, l0c>, "
        f"!pto.ptr<{dst}, {space}>, i64, i64, i64, i64{types}{more}"
    )


_LAYOUTS = [("nz2nd", "64"), ("nz2dn", "48"), ("nz2nz", "1024"), ("nz2nz", "600")]


_RELU = ", pre_relu(mode = normal_relu)"
_CHANGES = [  # integers are rectified by the reference
    *((pair, "") for pair in ("f32 f32", "f32 f16", "f32 bf16", "i32 i32")),
    *((pair, _RELU) for pair in ("f32 f32", "f32 f16", "f32 bf16")),
]


@pytest.mark.parametrize("to", ["gm", "l1"])
@pytest.mark.parametrize(("layout", "stride"), _LAYOUTS)
@pytest.mark.parametrize(("pair", "relu"), _CHANGES)
def test_accumulators_go_out(to: str, layout: str, stride: str, pair: str, relu: str) -> None:
    src, dst = pair.split()
    quant = f", pre_quant(%f, mode = f32_{dst})" if src == "f32" and dst != "f32" else ""
    more = ", f32" if quant else ""
    for m, n in ((32, 48), (30, 41)):
        sizes = f"%i{m}, %i{n}, %i32, %i{stride}"
        body = _move(to, src, dst, sizes, f"{quant}{relu}, {layout}", more)
        text, args = _text(src, dst, body)
        agree(text, args, check=False)


def test_accumulators_go_out_again_and_again() -> None:
    sizes = "%i16, %i20, %i16, %i32"
    body = _move("gm", "f32", "f32", sizes, ", nz2nd, loop3(%i3, %i40, %i700)", ", i64, i64, i64")
    text, args = _text("f32", "f32", body)
    agree(text, args, check=False)


_TABLES = [  # source, destination, mode, slopes of a table, where to
    ("f32", "f16", "qf322f16_pre", True, "gm"),
    ("f32", "bf16", "qf322bf16_pre", False, "l1"),
    ("f32", "i8", "qf322b8_pre", False, "gm"),
    ("i32", "i8", "req8", False, "l1"),
    ("i32", "f16", "deqf16", True, "l1"),
]


def _scaled(src: str, dst: str, clauses: str, types: str, to: str, layout: str) -> str:
    """Scales and slopes are read from L1, so that they lie in the buffer of the fixpipe."""
    tables = (
        "%l = pto.castptr %i8192 : i64 -> !pto.ptr<ui64, l1>\n"
        "%q = pto.castptr %i0 : i64 -> !pto.ptr<ui64, fb>\n"
        "%a = pto.castptr %i1024 : i64 -> !pto.ptr<f32, fb>\n"
        "pto.mte_l1_fb %l, %q, %i32 nburst(%i1, %i0, %i0)"
        " : !pto.ptr<ui64, l1>, !pto.ptr<ui64, fb>, i64, i64, i64, i64\n"
        "%s = pto.load_scalar %g[%n0] : !pto.ptr<{dst}> -> {dst}\n"
    ).replace("{dst}", dst)
    stride = {"nz2nd": 64, "nz2dn": 48, "nz2nz": 1024}[layout]
    body = _move(to, src, dst, f"%i30, %i41, %i32, %i{stride}", f"{clauses}, {layout}", types)
    return tables + body


@pytest.mark.parametrize("layout", ["nz2nd", "nz2dn", "nz2nz"])
@pytest.mark.parametrize(("src", "dst", "mode", "slopes", "to"), _TABLES)
def test_scales_of_a_table(
    layout: str, src: str, dst: str, mode: str, slopes: bool, to: str
) -> None:
    quant = f", pre_quant(%q, mode = {mode}_vec)"
    relu = ", pre_relu(%a, mode = vector_relu)" if slopes else ""
    types = ", !pto.ptr<ui64, fb>" + (", !pto.ptr<f32, fb>" if slopes else "")
    text, args = _text(src, dst, _scaled(src, dst, quant + relu, types, to, layout))
    agree(text, args, check=False)


_SLOPES = (
    "%l = pto.castptr %i8192 : i64 -> !pto.ptr<f32, l1>\n"
    "%a = pto.castptr %i65600 : i64 -> !pto.ptr<f32, fb>\n"
    "pto.mte_l1_fb %l, %a, %i4 nburst(%i1, %i0, %i0)"
    " : !pto.ptr<f32, l1>, !pto.ptr<f32, fb>, i64, i64, i64, i64\n"
)


@pytest.mark.parametrize("to", ["gm", "l1"])
def test_slopes_of_the_relu_table(to: str, python_is_silent: None) -> None:
    """Bit 16 of a fixpipe address: a segment of its own."""
    clauses = ", pre_relu(%a, mode = vector_relu), nz2nd"
    move = _move(to, "f32", "f32", "%i30, %i41, %i32, %i64", clauses, ", !pto.ptr<f32, fb>")
    text, args = _text("f32", "f32", _SLOPES + move)
    given = [np.random.default_rng(n).normal(size=4096).astype(np.float32) for n in range(2)]
    args[1], args[3] = (values.view(np.uint8) for values in given)
    out = agree(text, args, check=False)[0 if to == "gm" else -1].view(np.float32)
    acc, slopes = given[0].reshape(-1, 32, 16), given[1][2048 : 2048 + 41]
    want = np.concatenate(acc[:3], axis=1)[:30, :41]
    want = np.where(want > 0, want, want * slopes)
    assert np.array_equal(out[: 30 * 64].reshape(30, 64)[:, :41], want)


def test_slopes_of_one_block_are_not_those_of_the_next(python_is_silent: None) -> None:
    head, _, tail = _SLOPES.rpartition("pto.mte_l1_fb")
    load = f"""%b = pto.get_block_idx
    %n = arith.constant 1 : i64
    %here = arith.cmpi slt, %b, %n : i64
    scf.if %here {{
      pto.mte_l1_fb{tail}
    }}
    """
    clauses = ", pre_relu(%a, mode = vector_relu), nz2nd"
    move = _move("gm", "f32", "f32", "%i30, %i41, %i32, %i64", clauses, ", !pto.ptr<f32, fb>")
    body = f"{head}{load}%h = pto.addptr %g, %far : !pto.ptr<f32> -> !pto.ptr<f32>\n"
    far = "%wide = arith.constant 2048 : i64\n%fari = arith.muli %b, %wide : i64\n"
    far += "%far = arith.index_cast %fari : i64 to index\n"
    body = body.replace("%h =", far + "%h =") + move.replace("%c, %g", "%c, %h")
    text, args = _text("f32", "f32", body)
    args[1] = np.full(4096, -1.0, np.float32).view(np.uint8)
    args[3] = np.full(4096, 0.5, np.float32).view(np.uint8)
    out = agree(text, args, check=False, blocks=3)[0].view(np.float32).reshape(-1, 2048)
    assert [float(each[0]) for each in out[:3]] == [-0.5, 0.0, 0.0]


@pytest.mark.parametrize(("layout", "how"), [("nz2nd", "add"), ("nz2dn", "max"), ("nz2nz", "min")])
@pytest.mark.parametrize("quant", ["", ", pre_quant(%q, mode = qf322f32_pre_vec)"])
def test_writes_that_are_combined(layout: str, how: str, quant: str) -> None:
    clauses = f"{quant}, {layout}, atomic(type = f32, op = {how})"
    stride = {"nz2nd": 64, "nz2dn": 48, "nz2nz": 1024}[layout]
    body = _scaled("f32", "f32", "", "", "gm", layout).rsplit("pto.mte_l0c", 1)[0]
    more = ", !pto.ptr<ui64, fb>" if quant else ""
    body += _move("gm", "f32", "f32", f"%i30, %i41, %i32, %i{stride}", clauses, more)
    text, args = _text("f32", "f32", body)
    agree(text, args, check=False)


def test_a_scale_known_only_when_it_runs() -> None:
    """The first element of the destination is the scale."""
    clauses = ", pre_quant(%s, mode = qf322f32_pre_scalar)"
    text, args = _text("f32", "f32", _scaled("f32", "f32", clauses, ", f32", "gm", "nz2nd"))
    args[0][:64] = 0.75
    agree(text, args, check=False)


@pytest.mark.parametrize("kind", ["f32", "f16", "bf16"])
def test_scales_and_slopes_of_every_float_type(kind: str) -> None:
    clauses = ", pre_quant(%k, mode = qf322f16_pre_scalar), pre_relu(%k, mode = scalar_relu)"
    body = f"%k = arith.constant 0.25 : {kind}\n" + _move(
        "gm", "f32", "f16", "%i30, %i41, %i32, %i64", f"{clauses}, nz2nd", f", {kind}, {kind}"
    )
    text, args = _text("f32", "f16", body)
    agree(text, args, check=False)


def test_what_leaves_global_memory_is_named() -> None:
    body = _move("gm", "f32", "f32", "%i32, %i32, %i32, %i60000", ", nz2nd")
    text, args = _text("f32", "f32", body)
    assert fails_alike(text, args, check=False) == "PTO-M161"


_SCALARS = """
module attributes {{pto.target_arch = "a5", pto.kernel_kind = #pto.kernel_kind<vector>}} {{
  func.func @k(%a: !pto.ptr<{kind}, gm>, %from: index, %to: index) attributes {{pto.aicore}} {{
    %v = pto.load_scalar %a[%from] : !pto.ptr<{kind}, gm> -> {kind}
    pto.store_scalar %v, %a[%to] : !pto.ptr<{kind}, gm>, {kind}
    return
  }}
}}
"""


@pytest.mark.parametrize("kind", ["f32", "f16", "bf16", "i32"])
def test_single_elements(kind: str) -> None:
    a = _RANDOM.integers(0, 256, 64 * np.dtype(_NUMPY[kind]).itemsize, dtype=np.uint8)
    text = _SCALARS.format(kind=kind)
    agree(text, [a.view(_NUMPY[kind]), 3, 9], check=False)
    for bad in (64, -1, 1 << 62, -(1 << 62)):
        assert fails_alike(text, [a.view(_NUMPY[kind]), bad, 0], check=False) == "PTO-M001"
        assert fails_alike(text, [a.view(_NUMPY[kind]), 0, bad], check=False) == "PTO-M001"
