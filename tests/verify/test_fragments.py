"""Arrays of work items that outlive a section: which elements are used, and when."""

from __future__ import annotations

import pytest

from pto.ir.text.parser import parse
from pto.target.profile import profile
from pto.verify import verify

_PROGRAM = """
module attributes {{pto.target_arch = "a5", pto.kernel_kind = #pto.kernel_kind<vector>}} {{
  func.func @k(%dst: !pto.ptr<f32, ub>, %n: i64) attributes {{pto.entry}} {{
    %two = arith.constant 2 : i32
    %i = arith.constant {index} : i64
    %own = llvm.alloca %two x f32 {{pto.persistent}} : (i32) -> !llvm.ptr
    %zero = arith.constant 0.0 : f32
    %c0 = arith.constant 0 : index
    pto.section.simt<<<32, 1, 1>>> {{
      {first}
    }}
    pto.section.simt<<<{size}, 1, 1>>> {{
      %at = llvm.getelementptr %own[{at}] : (!llvm.ptr, i64) -> !llvm.ptr, {unit}
      %v = llvm.load %at : !llvm.ptr -> f32
      pto.store %v, %dst[%c0] : !pto.ptr<f32, ub>, f32
    }}
    return
  }}
}}
"""


def errors(**words: str) -> list[str]:
    store = "llvm.store %zero, %own : f32, !llvm.ptr"
    usual = {"index": "0", "first": store, "size": "32", "at": "%i", "unit": "f32"}
    found = verify(parse(_PROGRAM.format(**{**usual, **words})), profile("a5"))
    return [d.message for d in found if d.code == "PTO-S143"]


def test_an_element_is_stored_and_loaded() -> None:
    assert errors() == []


@pytest.mark.parametrize(
    ("words", "part"),
    [
        ({"index": "2"}, "ends at byte 12 of an array of 8"),
        ({"index": "2", "unit": "i8"}, "expects a multiple of 4 bytes: it is 2"),
        ({"index": "1"}, "loads byte 4, which nothing has stored"),
        ({"first": ""}, "loads byte 0, which nothing has stored"),
        ({"at": "%n"}, "expects an element that is known beforehand"),
        ({"size": "64"}, "expects the sections beside an array to have one size"),
    ],
)
def test_what_is_refused(words: dict[str, str], part: str) -> None:
    assert any(part in message for message in errors(**words)), errors(**words)
