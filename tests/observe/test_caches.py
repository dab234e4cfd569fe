"""The data cache of the scalar unit: what has to be dropped, and what written back."""

from __future__ import annotations

import numpy as np
import pytest

from pto.ir.text.parser import parse
from pto.observe import sanitize

_PROGRAM = """
!p = !pto.ptr<i32, gm>
module attributes {{pto.target_arch = "a5", pto.kernel_kind = #pto.kernel_kind<vector>}} {{
  func.func @kernel(%x: !p, %y: !p) attributes {{pto.aicore}} {{
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c16 = arith.constant 16 : index
    %z = arith.constant 0 : i64
    %n = arith.constant 1 : i64
    %bytes = arith.constant 32 : i64
    %nine = arith.constant 9 : i32
    %ub = pto.castptr %z : i64 -> !pto.ptr<i32, ub>
    %block = pto.get_block_idx
    %is_first = arith.cmpi eq, %block, %z : i64
    scf.if %is_first {{
      {first}
    }} else {{
      {early}
    }}
    pto.syncall()
    %is_second = arith.cmpi eq, %block, %n : i64
    scf.if %is_second {{
      {second}
    }} else {{
      {late}
    }}
    return
  }}
}}
"""
WRITE = "pto.store_scalar %nine, %x[%c0] : !p, i32"
READ = """%v = pto.load_scalar %x[%c0] : !p -> i32
      pto.store_scalar %v, %y[%c0] : !p, i32"""
LOAD = """pto.mte_gm_ub %x, %ub, %z, %bytes nburst(%n, %bytes, %bytes)
      : !p, !pto.ptr<i32, ub>, i64, i64, i64, i64, i64"""
STORE = """pto.mte_ub_gm %ub, %x, %bytes nburst(%n, %bytes, %bytes)
      : !pto.ptr<i32, ub>, !p, i64, i64, i64, i64"""
LINE = "pto.cmo.cacheinvalid %x single_cache_line : !p"
OTHER_LINE = "pto.cmo.cacheinvalid %y single_cache_line : !p"
WHOLE = "pto.cmo.cacheinvalid all #pto.address_space<gm>"
DCCI = "pto.dcci %x #pto.dcci_cache_line<SINGLE_CACHE_LINE> : !p"
FLAG = """pto.set_flag["PIPE_S", "PIPE_MTE2", "EVENT_ID0"]
      pto.wait_flag["PIPE_S", "PIPE_MTE2", "EVENT_ID0"]"""
DSB = 'pto.dsb "DDR"'
DROPS = (LINE, WHOLE, DCCI)


def _codes(
    first: tuple[str, ...], second: tuple[str, ...] = (), early: str = "", late: str = ""
) -> set[str]:
    """Of block 0 before they meet and block 1 behind; `early`, `late`: the other one, then."""
    parts = {"first": "\n      ".join(first), "second": "\n      ".join(second)}
    text = _PROGRAM.format(**parts, early=early, late=late)
    args = [np.zeros(64, np.int32), np.zeros(64, np.int32)]
    found = sanitize(parse(text), args=args, blocks=2).findings
    return {d.code for d in found if d.severity == "error"} - {"PTO-V210", "PTO-V214"}


@pytest.mark.parametrize("drop", DROPS)
def test_a_scalar_write_is_written_back_before_another_core_reads_it(drop: str) -> None:
    assert _codes((WRITE, drop), (LOAD,)) == set()
    assert _codes((WRITE,), (LOAD,)) == {"PTO-R039"}
    assert _codes((drop, WRITE), (LOAD,)) == {"PTO-R039"}
    assert _codes((WRITE, OTHER_LINE), (LOAD,)) == {"PTO-R039"}


@pytest.mark.parametrize("drop", DROPS)
def test_a_scalar_read_drops_what_another_core_has_written_since(drop: str) -> None:
    assert _codes((STORE,), (drop, READ)) == set()
    assert _codes((STORE,), (READ,)) == {"PTO-R038"}
    assert _codes((STORE,), (OTHER_LINE, READ)) == {"PTO-R038"}


def test_both_sides_when_both_are_scalar() -> None:
    assert _codes((WRITE, LINE), (LINE, READ)) == set()
    assert _codes((WRITE,), (LINE, READ)) == {"PTO-R039"}
    assert _codes((WRITE, LINE), (READ,)) == {"PTO-R038"}


def test_a_transfer_of_the_same_core_does_not_look_into_the_cache() -> None:
    assert _codes((WRITE, FLAG, LOAD)) == {"PTO-R039"}
    assert _codes((WRITE, LINE, FLAG, LOAD)) == set()


def test_a_scalar_sees_its_own_writes() -> None:
    assert _codes((WRITE, READ)) == set()


def test_the_meeting_comes_between_the_write_back_and_the_drop() -> None:
    assert _codes((WRITE, LINE), (READ,), early=LINE) == {"PTO-R038"}
    assert _codes((WRITE,), (LINE, READ), late=LINE) == {"PTO-R039"}
    assert _codes((WRITE, DCCI, DSB), (DCCI, READ)) == set()
    assert _codes((WRITE, DSB), (DSB, READ)) == {"PTO-R038", "PTO-R039"}


# ---- lines of 64 bytes

SECOND = "pto.store_scalar %nine, %x[%c1] : !p, i32"
NEXT_LINE = "pto.store_scalar %nine, %x[%c16] : !p, i32"
FIRST_WORD = "%w = pto.load_scalar %x[%c0] : !p -> i32"
TO_S = """pto.set_flag["PIPE_MTE3", "PIPE_S", "EVENT_ID0"]
      pto.wait_flag["PIPE_MTE3", "PIPE_S", "EVENT_ID0"]"""
FROM_S = TO_S.replace("PIPE_MTE3", "X").replace("PIPE_S", "PIPE_MTE3").replace("X", "PIPE_S")
PAST = "pto.st_dev %nine, %x[%c1] : !p, i32"


def test_two_cores_store_scalars_to_lines_of_their_own() -> None:
    """Each writes the whole line back: PTOAS#915."""
    assert _codes((WRITE, LINE), early=SECOND + "\n" + LINE) == {"PTO-R043"}
    assert _codes((WRITE,), early=SECOND) == {"PTO-R043"}
    assert _codes((WRITE, LINE), early=NEXT_LINE + "\n" + LINE) == set()


def test_a_line_may_change_hands_in_order() -> None:
    """Written back by the first, and fetched by the second after that."""
    assert _codes((WRITE, LINE), (SECOND,)) == set()
    assert _codes((WRITE,), (SECOND,)) == {"PTO-R043"}
    read_before = f"{FIRST_WORD}\n"
    assert _codes((WRITE, LINE), (SECOND,), early=read_before) == {"PTO-R021", "PTO-R043"}
    assert _codes((WRITE, LINE), (LINE, SECOND), early="") == set()


def test_a_line_that_is_older_than_a_transfer_is_not_written_back() -> None:
    """The line was fetched by a scalar read, then MTE3 wrote it: pypto#2005."""
    assert _codes((FIRST_WORD, FROM_S, STORE, TO_S, SECOND, LINE)) == {"PTO-R044"}
    assert _codes((FIRST_WORD, FROM_S, STORE, TO_S, LINE, SECOND, LINE)) == set()
    assert _codes((STORE, TO_S, SECOND, LINE)) == set()  # the line is fetched after the transfer
    assert _codes((FIRST_WORD, FROM_S, STORE, TO_S, NEXT_LINE, LINE)) == set()


def test_a_line_is_written_back_before_a_transfer_writes_it() -> None:
    assert _codes((SECOND, FROM_S, STORE)) == {"PTO-R044"}
    assert _codes((SECOND, LINE, FROM_S, STORE)) == set()
    assert _codes((NEXT_LINE, FROM_S, STORE)) == set()


def test_a_scalar_read_does_not_see_a_transfer_of_its_own_core_in_an_old_line() -> None:
    again = FIRST_WORD.replace("%w", "%again")
    assert _codes((FIRST_WORD, FROM_S, STORE, TO_S, again)) == {"PTO-R038"}
    assert _codes((FIRST_WORD, FROM_S, STORE, TO_S, LINE, again)) == set()
    assert _codes((STORE, TO_S, again)) == set()


def test_a_store_past_the_cache_touches_no_line() -> None:
    assert _codes((PAST,), early=NEXT_LINE) == set()
    assert _codes((FIRST_WORD, FROM_S, STORE, TO_S, PAST)) == set()
    assert _codes((WRITE, LINE), early=PAST) == {"PTO-R044"}


def test_lines_are_counted_from_the_beginning_of_an_array() -> None:
    """Arrays of the host begin anywhere; those of a device at a multiple of 64."""
    text = _PROGRAM.format(first=WRITE, early=SECOND, second="", late="")
    for skipped in range(16):
        whole = np.zeros(96, np.int32)
        x = whole[(-whole.ctypes.data // 4) % 16 + skipped :][:64]
        found = sanitize(parse(text), args=[x, np.zeros(64, np.int32)], blocks=2).findings
        assert "PTO-R043" in {d.code for d in found}
