"""Static regions that headers fill wrong: a warning for C++ kernels, dynamic in exports."""

from __future__ import annotations

import re

import pytest

from pto.cxx.export import cpp
from pto.ir.text.parser import parse
from pto.target.library import library
from pto.target.profile import profile
from pto.verify.program import verify

PROGRAM = """
!t = !pto.tile_buf<vec, SHAPE>
!g = !pto.ptr<f32>
!v = !pto.tensor_view<?x512xf32>
!p = !pto.partition_tensor_view<8x205xf32>
module attributes {pto.target_arch = "ARCH"} {
  func.func @k(%x: !g, %n: f32) attributes {pto.entry} {
    %t = pto.alloc_tile : !t
    pto.OPERATION
    return
  }
}
"""
FILL = "texpands ins(%n : f32) outs(%t : !t)"
FUSED = "tmuladddst ins(%t, %t : !t, !t) outs(%t : !t)"


def module(operation: str, shape: str, arch: str = "a2a3"):
    text = PROGRAM.replace("SHAPE", shape).replace("OPERATION", operation)
    return parse(text.replace("ARCH", arch))


@pytest.mark.parametrize(
    ("shape", "is_wrong"),
    [
        ("8x512xf32, valid=8x205", True),
        ("8x512xf32", False),
        ("8x512xf32, valid=1x205", False),
        ("8x512xf32, valid=5x512", False),
    ],
)
def test_a_fill_of_a_static_part_is_a_warning_for_kernels_in_cpp(shape: str, is_wrong: bool):
    """a2a3/TExpandS.hpp:60 compares with ValidCol, so rows of constants are filled as one run."""
    program = module(FILL, shape)
    found = verify(program, library(profile("a2a3")))
    assert [d.code for d in found] == ["PTO-L066"] * is_wrong
    assert verify(program, profile("a2a3")) == []


@pytest.mark.parametrize(
    ("operation", "shape", "arch", "region"),
    [
        (FILL, "8x512xf32, valid=8x205", "a2a3", "DYNAMIC, DYNAMIC"),
        (FILL, "8x512xf32", "a2a3", ""),
        (FUSED, "8x512xf32", "a5", "DYNAMIC, DYNAMIC"),
    ],
)
def test_an_export_prints_a_dynamic_region(operation: str, shape: str, arch: str, region: str):
    text = cpp(module(operation, shape, arch), profile(arch))
    (tile,) = re.findall(r"Tile<TileType::Vec, float, 8, 512([^>]*)>", text)
    assert ("DYNAMIC" in tile) == bool(region) and region in tile
