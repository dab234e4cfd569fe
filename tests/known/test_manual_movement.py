"""PTO manual: the layouts TLOAD joins, atomic stores, and the moves that a mode opens."""

from itertools import product

import pytest

from pto.core.errors import Diagnostic
from pto.ir.text.parser import parse
from pto.target.profile import profile
from pto.verify import verify

TILES = {
    "ND": "",
    "DN": ", blayout=col_major",
    "NZ": ", blayout=col_major, slayout=row_major",
    "ZN": ", slayout=col_major",
}
# Layout compatibility of TLOAD, as the manual lists it for each tile type.
# The header of a5 also loads DN into NZ.
JOINED = {
    "vec": {("ND", "ND"), ("DN", "DN"), ("NZ", "NZ")},
    "mat": {("ND", "ND"), ("DN", "DN"), ("NZ", "NZ"), ("ND", "NZ"), ("DN", "ZN"), ("DN", "NZ")},
}


def findings(text: str, target: str, edition: str = "current") -> list[Diagnostic]:
    found = verify(parse(text), profile(target, edition=edition))
    return [d for d in found if d.severity == "error"]


def load(role: str, gm: str, tile: str) -> str:
    return f"""
!all = !pto.tensor_view<32x32xf16>
!part = !pto.partition_tensor_view<32x32xf16>
!tile = !pto.tile_buf<{role}, 32x32xf16{TILES[tile]}>
func.func @kernel(%ptr: !pto.ptr<f16>, %tile: !tile, %n: index) {{
  %c0 = arith.constant 0 : index
  %c32 = arith.constant 32 : index
  %all = pto.make_tensor_view %ptr, shape = [%c32, %c32], strides = [%n, %n]
    {{layout = #pto.layout<{gm.lower()}>}} : !all
  %part = pto.partition_view %all, offsets = [%c0, %c0], sizes = [%c32, %c32] : !all -> !part
  pto.tload ins(%part : !part) outs(%tile : !tile)
  return
}}
"""


@pytest.mark.parametrize(("role", "gm", "tile"), list(product(JOINED, ("ND", "DN", "NZ"), TILES)))
def test_tload_joins_exactly_the_layouts_of_the_seed_and_the_header(role: str, gm: str, tile: str):
    refused = any(d.message.startswith("'pto.tload'") for d in findings(load(role, gm, tile), "a5"))
    assert refused == ((gm, tile) not in JOINED[role])


@pytest.mark.parametrize("mode", ["none", "add", "max", "min"])
@pytest.mark.parametrize(("target", "atomics"), [("cpu", False), ("a2a3", True), ("a5", True)])
def test_atomic_stores_exist_where_the_seed_has_them(mode: str, target: str, atomics: bool):
    text = f"""
!part = !pto.partition_tensor_view<32x32xf32>
!tile = !pto.tile_buf<vec, 32x32xf32>
func.func @kernel(%part: !part, %tile: !tile) {{
  pto.tstore ins(%tile : !tile) outs(%part : !part) {{atomicType = #pto<atomic_type atomic_{mode}>}}
  return
}}
"""
    codes = [d.code for d in findings(text, target)]
    assert codes == ([] if atomics or mode == "none" else ["PTO-X003"])


@pytest.mark.parametrize("target", ["a2a3", "a5"])
@pytest.mark.parametrize(
    ("instruction", "mode"), [("textract", "ND2NZ"), ("textract", "ND2NZ2"), ("tinsert", "NZ2ND")]
)
def test_modes_open_the_moves_between_vec_and_left(target: str, instruction: str, mode: str):
    source, into = ("vec", "left") if instruction == "textract" else ("left", "vec")

    def move(attribute: str) -> str:
        return f"""
!vec = !pto.tile_buf<vec, 32x32xi8>
!left = !pto.tile_buf<left, 32x32xi8, slayout=row_major>
func.func @kernel(%vec: !vec, %left: !left) {{
  %c0 = arith.constant 0 : index
  pto.{instruction} ins(%{source}, %c0, %c0 : !{source}, index, index)
    outs(%{into} : !{into}) {attribute}
  return
}}
"""

    assert findings(move(f'{{mode = "{mode}"}}'), target) == []
    assert [d.code for d in findings(move(""), target)] == ["PTO-L060"]


@pytest.mark.parametrize("target", ["cpu", "a2a3", "a5"])
def test_the_manual_edition_multiplies_tiles_as_the_manual_lays_them_out(target: str):
    """PTO manual: Left RowMajor and RowMajor, Right and Acc without boxes."""
    text = """
!a = !pto.tile_buf<left, 32x32xf16, slayout=row_major>
!b = !pto.tile_buf<right, 32x32xf16>
!c = !pto.tile_buf<acc, 32x32xf32>
func.func @kernel(%a: !a, %b: !b, %c: !c) {
  pto.tmatmul ins(%a, %b : !a, !b) outs(%c : !c)
  return
}
"""
    assert findings(text, target, "manual") == []
    today = [d.code for d in findings(text, target)]
    assert today == ([] if target == "cpu" else ["PTO-L022", "PTO-L022"])
