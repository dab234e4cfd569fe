"""Two writes of one pipe to one place: a warning, or data that is gone."""

from __future__ import annotations

import numpy as np
import pytest

from pto.ir.text.parser import parse
from pto.observe import sanitize

_PROGRAM = """
!g = !pto.ptr<f32, gm>
!p = !pto.ptr<f32, ub>
module attributes {{pto.target_arch = "a5", pto.kernel_kind = #pto.kernel_kind<vector>}} {{
  func.func @kernel(%x: !g, %y: !g, %z: !g) attributes {{pto.aicore}} {{
    %zero = arith.constant 0 : i64
    %one = arith.constant 1 : i64
    %at = arith.constant {at} : i64
    %bytes = arith.constant 256 : i64
    %a = pto.castptr %zero : i64 -> !p
    %b = pto.castptr %at : i64 -> !p
    pto.mte_gm_ub %x, %a, %zero, %bytes nburst(%one, %bytes, %bytes)
      : !g, !p, i64, i64, i64, i64, i64
    {between}
    pto.mte_gm_ub %y, %b, %zero, %bytes nburst(%one, %bytes, %bytes)
      : !g, !p, i64, i64, i64, i64, i64
    pto.barrier #pto.pipe<PIPE_ALL>
    pto.mte_ub_gm %b, %z, %bytes nburst(%one, %bytes, %bytes) : !p, !g, i64, i64, i64, i64
    return
  }}
}}
"""


@pytest.mark.parametrize(
    ("at", "same", "between", "expected"),
    [
        (0, False, "", ["error"]),  # one of two operands is gone
        (0, True, "", ["warning"]),  # loaded twice, the same
        (128, False, "", ["warning"]),  # the first reaches into the second
        (0, False, "pto.barrier #pto.pipe<PIPE_MTE2>", []),
        (256, False, "", []),
    ],
)
def test_a_load_of_which_nothing_is_left(
    at: int, same: bool, between: str, expected: list[str]
) -> None:
    x = np.arange(64, dtype=np.float32)
    args = [x, x.copy() if same else x + 100, np.zeros(64, np.float32)]
    found = sanitize(parse(_PROGRAM.format(at=at, between=between)), args=args).findings
    assert [d.severity for d in found if d.code == "PTO-R006"] == expected
