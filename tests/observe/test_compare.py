"""Two outputs of one program: the order that one lost, fences that differ, work that differs."""

from __future__ import annotations

from pathlib import Path

import pytest

from pto.cli.main import main
from pto.ir.text.parser import parse
from pto.observe.compare import Compared, compare

_HEAD = """
!view = !pto.tensor_view<16x64xf32>
!part = !pto.partition_tensor_view<16x64xf32>
!tile = !pto.tile_buf<vec, 16x64xf32>
module attributes {pto.target_arch = "a2a3", pto.kernel_kind = #pto.kernel_kind<vector>} {
  func.func @kernel(%x: !pto.ptr<f32>, %y: !pto.ptr<f32>, %n: index) attributes {pto.aicore} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c16 = arith.constant 16 : index
    %c64 = arith.constant 64 : index
    %one = arith.constant 1.0 : f32
    %vx = pto.make_tensor_view %x, shape = [%c16, %c64], strides = [%c64, %c1] : !view
    %px = pto.partition_view %vx, offsets = [%c0, %c0], sizes = [%c16, %c64] : !view -> !part
    %vy = pto.make_tensor_view %y, shape = [%c16, %c64], strides = [%c64, %c1] : !view
    %py = pto.partition_view %vy, offsets = [%c0, %c0], sizes = [%c16, %c64] : !view -> !part
"""
LOAD = "pto.tload ins(%px : !part) outs(%a : !tile)"
ADD = "pto.tadds ins(%a, %one : !tile, f32) outs(%b : !tile)"
STORE = "pto.tstore ins(%b : !tile) outs(%py : !part)"


def flag(src: str, dst: str, number: int = 0) -> list[str]:
    where = f'["PIPE_{src}", "PIPE_{dst}", "EVENT_ID{number}"]'
    return [f"pto.set_flag{where}", f"pto.wait_flag{where}"]


def text(*lines: str, second: int = 4096) -> str:
    """Tile b lies at `second`, tile a at 0."""
    tiles = [
        f"%at{name} = arith.constant {at} : i64\n%{name} = pto.alloc_tile addr = %at{name} : !tile"
        for name, at in (("a", 0), ("b", second))
    ]
    return _HEAD + "\n".join((*tiles, *lines)) + "\nreturn\n}\n}\n"


def compared(first: str, second: str) -> Compared:
    return compare(parse(first, "a.pto"), parse(second, "b.pto"))


def told(first: str, second: str) -> list[str]:
    found = compared(first, second)
    return [d.code for d in (*found.order, *found.fences)]


GOOD = text(LOAD, *flag("MTE2", "V"), ADD, *flag("V", "MTE3"), STORE)
WITHOUT = text(LOAD, ADD, *flag("V", "MTE3"), STORE)


def test_a_flag_that_is_gone_is_named_where_order_is_lost() -> None:
    found = compared(GOOD, WITHOUT)
    (lost,) = found.order
    assert (lost.code, lost.severity) == ("PTO-D220", "error")
    assert lost.loc is not None and lost.loc.file == "b.pto"
    files = [
        note.loc.file for note in lost.notes if "set_flag(MTE2, V, 0)" in note.message and note.loc
    ]
    assert files == ["a.pto"]
    assert not found.fences, "named above"
    assert told(WITHOUT, GOOD) == ["PTO-D221"]


def test_ids_and_addresses_are_not_order() -> None:
    other = text(LOAD, *flag("MTE2", "V", 3), ADD, *flag("V", "MTE3", 5), STORE, second=8192)
    assert told(GOOD, other) == []


def test_other_fences_with_the_same_order_are_notes() -> None:
    """A barrier of all pipes, and a flag that nothing needs."""
    barrier = text(LOAD, "pto.barrier <PIPE_ALL>", ADD, *flag("V", "MTE3"), STORE)
    found = compared(GOOD, barrier)
    assert found.is_same and [d.code for d in found.fences] == ["PTO-D222"] * 3
    needless = text(
        LOAD, *flag("MTE2", "V"), ADD, *flag("V", "MTE3"), *flag("MTE2", "MTE3", 1), STORE
    )
    assert compared(GOOD, needless).is_same


def test_a_wait_behind_the_access_is_a_loss() -> None:
    """The fence stands at another place: both programs have as many."""
    set_flag, wait_flag = flag("MTE2", "V")
    late = text(LOAD, set_flag, ADD, wait_flag, *flag("V", "MTE3"), STORE)
    assert told(GOOD, late) == ["PTO-D220"]


def test_an_address_that_is_used_again_needs_order() -> None:
    """b in the place of a: a second load may overwrite what is not stored yet."""
    twice = (LOAD, *flag("MTE2", "V"), ADD, *flag("V", "MTE2", 1), LOAD, *flag("V", "MTE3"), STORE)
    assert told(text(*twice), text(*twice, second=0)) == ["PTO-D220"]


def test_a_loop_that_runs_often_is_compared_in_all_its_ways() -> None:
    """From the second iteration on: loads and adds each after itself and after the other, adds
    after stores, stores after stores."""
    body = (LOAD, *flag("MTE2", "V"), ADD, *flag("V", "MTE3"), STORE)
    back = flag("V", "MTE2", 1)
    out = flag("MTE3", "V", 2)
    loop = ["scf.for %i = %c0 to %n step %c1 {", *body, "}"]
    fenced = [
        "scf.for %i = %c0 to %n step %c1 {",
        *body,
        *back,
        *out,
        "pto.barrier <PIPE_MTE3>",
        "}",
    ]
    found = compared(text(*fenced), text(*loop))
    assert {d.code for d in found.order} == {"PTO-D220"} and len(found.order) == 5


def test_a_second_program_that_blocks_differs() -> None:
    blocked = text(LOAD, flag("MTE2", "V")[1], ADD, *flag("V", "MTE3"), STORE)
    codes = {d.code for d in compared(GOOD, blocked).order}
    assert "PTO-D100" in codes


@pytest.mark.parametrize(
    ("other", "words"),
    [
        (text(LOAD, *flag("MTE2", "V"), ADD), "tstore is only in the first program"),
        (
            text(LOAD, *flag("MTE2", "V"), ADD, ADD, *flag("V", "MTE3"), STORE),
            "only in the second program",
        ),
        (GOOD.replace("tadds", "tmuls"), "the second program has tmuls here, the first tadds"),
        (GOOD.replace("@kernel", "@other"), ""),
    ],
)
def test_work_that_differs_is_told_of(other: str, words: str) -> None:
    """A function that is the only one of its module needs no name."""
    found = [d.message for d in compared(GOOD, other).order if d.code == "PTO-D223"]
    assert [words in message for message in found] == [True] * bool(words)


def test_status_and_summary(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    a, b = tmp_path / "a.pto", tmp_path / "b.pto"
    a.write_text(GOOD)
    b.write_text(WITHOUT)
    assert main(["diff", str(a), str(a)]) == 0
    assert "the same order: 4 fences in both programs" in capsys.readouterr().out
    assert main(["diff", str(a), str(b)]) == 1
    assert "another order: 1 difference" in capsys.readouterr().out
    assert main(["diff", str(a), str(tmp_path / "none.pto")]) == 2
