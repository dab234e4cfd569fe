"""Groups of 32 that share an exponent, in compiled code: every kind, nothing by Python."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

from pto.target.library import library
from tests.known.test_quant import KINDS
from tests.run.jit.bench import BothEngines

SPECIALS = [0.0, -0.0, np.inf, -np.inf, np.nan, 1e-45, -3e-39, 1e-38, 3e38, 448.0, 6.0, 5.0, 0.25]
FORMS = list(product(("MXFP8", "MXFP4_E2M1"), ("ocp", "nv"), ("axis0", "axis1")))
OUTS = "%d, %e, %m, %f{zz} : {{d}}, {{e}}, {{m}}, {{f}}{types}"


def values(src: str, rows: int, cols: int) -> Any:
    random = np.random.default_rng(rows * cols)
    x = random.normal(size=(rows, cols)) * 10.0 ** random.integers(-42, 38, (rows, cols))
    x[:, ::3] = random.normal(size=x[:, ::3].shape)
    x[1, : len(SPECIALS)] = SPECIALS
    with np.errstate(over="ignore"):
        return x.astype(np.float32).astype(KINDS[src])


def quantise(bench: BothEngines, form: Any, src: str, x: Any, more: str = "", **given: Any) -> None:
    (kind, algorithm, axis), (rows, cols) = form, x.shape
    packed = kind != "MXFP8"
    bench.tile("a", f"vec, {rows}x{cols}x{src}", x, valid=given.get("valid"))
    item = f"{cols // 2}x!pto.f4E2M1x2" if packed else f"{cols}xf8E4M3FN"
    bench.tile("d", f"vec, {rows}x{item}", valid=given.get("d"))
    bench.tile("e", "vec, 1x512xui8")
    bench.tile("m", f"vec, 1x512x{given.get('max', src)}")
    bench.tile("f", f"vec, 1x512x{src}")
    bench.tile("z", "vec, 1x512xui8")
    zz = given.get("zz")
    outs = OUTS.format(zz=", %z" if zz else "", types=", {z}" if zz else "")
    words = (
        f"quant_type = #pto<quant_type {kind}>, quantScaleAlg = #pto<quant_scale_alg {algorithm}>"
    )
    words += f", grpAxis = #pto<mx_group_axis {axis}>{more}"
    bench.run(f"pto.tquant.mx ins(%a : {{a}}) outs({outs}) {{{words}}}")


@pytest.mark.parametrize("src", ["f32", "f16", "bf16"])
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("simulated", [False, True])
def test_every_kind(form: Any, src: str, simulated: bool) -> None:
    bench = BothEngines("a5")
    if simulated:  # as C++ kernels meet it
        bench.core.profile = library(bench.core.profile)
    quantise(bench, form, src, values(src, 64, 64))


def test_a_maximum_of_another_type_and_all_orders_of_exponents() -> None:
    quantise(BothEngines("a5"), FORMS[1], "f32", values("f32", 32, 128), max="f16")
    more = ", storeMode = #pto<vec_store_mode nz>"
    quantise(BothEngines("a5"), FORMS[1], "f32", values("f32", 32, 128), more, zz=True)
    quantise(BothEngines("a5"), FORMS[0], "f16", values("f16", 64, 32), ", interleave = true")


def test_a_short_last_group() -> None:
    bench, x = BothEngines("a5"), values("f32", 8, 64)
    quantise(bench, FORMS[1], "f32", x, valid=(5, 40), d=(5, 40))


def test_a_destination_over_its_source() -> None:
    bench, x = BothEngines("a5"), values("f32", 16, 64)
    tile = bench.tile("a", "vec, 16x64xf32", x)
    bench.tile("e", "vec, 16x32xui8", valid=(16, 2))
    bench.tile("m", "vec, 16x8xf32", valid=(16, 2))
    over = bench.tile("d", "vec, 16x64xf8E4M3FN")
    bench.values["d"] = over.moved(over.memory, tile.address)
    bench.run(
        "pto.tquant.mx ins(%a : {a}) outs(%d, %e, %m, %m : {d}, {e}, {m}, {m})"
        " {quant_type = #pto<quant_type MXFP8>}"
    )
