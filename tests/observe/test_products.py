"""Products into one accumulator: a3 asks for a barrier of M between dependent ones, a5 does not."""

from __future__ import annotations

import numpy as np
import pytest

from pto.ir.text.parser import parse
from pto.observe import sanitize
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
