"""How many rows are compiled from their meaning, and which leave compiled code: a ratchet."""

from __future__ import annotations

import sys
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pytest

import pto
from pto import isa
from pto.isa.table import rows
from pto.run.jit.emit.instructions import UNTOLD, compiled_as, why_not

DERIVED = 690  # may only grow
# All rows that Python does inside compiled code; `pto isa --coverage` says why of each.
LEFT = """
tpush tpop talloc tfree talloc_to_aiv talloc_to_aic initialize_l2g2l_pipe initialize_l2l_pipe
comm.ttest
declare_global declare_tile declare_tile_memref llvm.alloca
tprint print
copy_matrix_cc_to_gm copy_matrix_cc_to_cbuf copy_matrix_cc_to_ub
set_quant_vector set_quant_scalar
"""
MOST = 20  # may only fall, but for what is given up on purpose
OPENED = {"jit": 9, "reference": 25}  # files; may only fall


def test_rows_compiled_from_their_meaning_only_become_more() -> None:
    assert sum(compiled_as(r) == "meaning" for r in rows()) >= DERIVED


def test_rows_that_leave_compiled_code_are_these_and_say_why() -> None:
    left = [r for r in rows() if r.body is not None and compiled_as(r) is None]
    assert {r.name.removeprefix("pto.") for r in left} == set(LEFT.split())
    assert len(left) <= MOST
    assert [r.name for r in left if why_not(r) == UNTOLD] == []


@pto.kernel(profile="a5")
def add(x: pto.Global[pto.f32], y: pto.Global[pto.f32], z: pto.Global[pto.f32]) -> None:
    a, b, c = (pto.tile(8, 64, pto.f32) for _ in range(3))
    isa.tload(a, x)
    isa.tload(b, y)
    isa.tadd(c, a, b)
    isa.tstore(z, c)


@pytest.mark.parametrize("engine", OPENED)
def test_who_follows_one_tadd_opens_few_files(engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """From the call to the bits, when everything is prepared."""
    monkeypatch.setenv("PTO_ENGINE", engine)
    arrays = [np.ones((8, 64), np.float32) for _ in range(3)]
    add(*arrays)
    add(*arrays)
    home, opened = str(Path(pto.__file__).parent), set[str]()

    def look(frame: FrameType, event: str, _: Any) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(home):
            opened.add(frame.f_code.co_filename)

    before = sys.getprofile()
    sys.setprofile(look)
    try:
        add(*arrays)
    finally:
        sys.setprofile(before)
    assert len(opened) <= OPENED[engine], sorted(opened)
