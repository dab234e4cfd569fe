"""Products into one accumulator: barriers of M on a3, and unit flags instead of flags to FIX."""

from __future__ import annotations

import numpy as np
import pytest

from pto.ir.text.parser import parse
from pto.ir.text.printer import print_module
from pto.observe import sanitize
from pto.plan.sync import insert
from pto.target.profile import profile
from tests.observe.catalogue import HERE

_FIRST = "pto.tmatmul ins(%a, %b : !left, !right) outs(%c : !acc)"
_MORE = "pto.tmatmul.acc ins(%c, %a, %b : !acc, !left, !right) outs(%c : !acc)"
_BARRIER = "pto.barrier #pto.pipe<PIPE_M>"


def _codes(arch: str, *between: str) -> set[str]:
    """The planted product in two steps, each now with a second product right behind it."""
    text = (HERE / "cube_tiles.pto").read_text(encoding="utf-8").replace("$target", arch)
    for line in (_FIRST, _MORE):
        text = text.replace(f"{line}  //", "\n".join((line, *between, f"{_MORE}  //")))
    args = [np.ones((16, 32), np.float16), np.ones((32, 16), np.float16)]
    found = sanitize(parse(text), args=[*args, np.zeros((16, 16), np.float32)])
    return {d.code for d in found.findings}


@pytest.mark.parametrize(("arch", "needs"), [("a3", True), ("a5", False)])
def test_dependent_products(arch: str, needs: bool) -> None:
    assert _codes(arch) == ({"PTO-R004"} if needs else set())
    assert _codes(arch, _BARRIER) == set()


def _products(rows: int, cols: int, *between: str) -> str:
    acc = (
        f"!pto.tile_buf<acc, {rows}x{cols}xf32, blayout=col_major, slayout=row_major, fractal=1024>"
    )
    left = f"!pto.tile_buf<left, {rows}x32xf16, slayout=row_major>"
    right = f"!pto.tile_buf<right, 32x{cols}xf16, slayout=col_major>"
    lines = [_FIRST, *between, _MORE]
    for word, type in (("!acc", acc), ("!left", left), ("!right", right)):
        lines = [line.replace(word, type) for line in lines]
    given = f"%a: {left}, %b: {right}, %c: {acc}"
    head = 'module attributes {pto.target_arch = "a3"} {'
    return "\n".join([head, f"func.func @f({given}) {{", *lines, "return", "}", "}"])


@pytest.mark.parametrize(
    ("rows", "cols", "needs"),
    [(32, 32, True), (48, 48, True), (32, 80, False), (64, 64, False), (128, 256, False)],
)
def test_large_products_settle_by_themselves_on_a3(rows: int, cols: int, needs: bool) -> None:
    """Ten boxes of 16 x 16: 2 x 5 are enough, 3 x 3 are not."""
    made = print_module(insert(parse(_products(rows, cols)), profile("a2a3")))
    assert ("<PIPE_M>" in made) is needs


_TO_FIX = '["PIPE_M", "PIPE_FIX", "EVENT_ID0"]'


def _by_unit_flags(product: str, transfer: str) -> set[str]:
    """The flag from M to FIX taken out; both sides of the accumulator carry unit flags instead."""
    text = (HERE / "cube_tiles.pto").read_text(encoding="utf-8").replace("$target", "a5")
    text = text.replace(f"pto.set_flag{_TO_FIX}", "").replace(f"pto.wait_flag{_TO_FIX}", "")
    text = text.replace(_MORE, f"{_MORE} {{accPhase = #pto<acc_phase {product}>}}")
    store = "outs(%dst : !out)"
    text = text.replace(store, f"{store} {{stPhase = #pto<st_phase {transfer}>}}")
    args = [np.ones((16, 32), np.float16), np.ones((32, 16), np.float16)]
    found = sanitize(parse(text), args=[*args, np.zeros((16, 16), np.float32)])
    return {d.code for d in found.findings}


@pytest.mark.parametrize(
    ("product", "transfer", "codes"),
    [
        ("final", "final", set()),
        ("final", "partial", set()),  # it looks, and leaves the mark
        ("partial", "partial", {"PTO-R001"}),  # nobody marks the tile
        ("partial", "final", {"PTO-R001"}),
        ("final", "unspecified", {"PTO-R001"}),  # nobody looks
    ],
)
def test_a_tile_is_ready_when_a_product_has_marked_it(
    product: str, transfer: str, codes: set[str]
) -> None:
    assert _by_unit_flags(product, transfer) == codes
