"""Tiles that are written and never read, and those that only look so."""

from __future__ import annotations

import pytest

from pto.ir.text.parser import parse
from pto.observe.deep import deep
from pto.plan.unread import unread

_HEAD = """
!tile = !pto.tile_buf<vec, 16x64xf32>
!view = !pto.partition_tensor_view<16x64xf32>
module attributes {pto.target_arch = "a5", pto.kernel_kind = #pto.kernel_kind<vector>} {
func.func @k(%x: !view, %y: !view, %n: index) attributes {pto.aicore} {
%c0 = arith.constant 0 : index
%c1 = arith.constant 1 : index
%at = arith.constant 0 : i64
%behind = arith.constant 2048 : i64
"""
TILES = "%a = pto.alloc_tile : !tile\n%b = pto.alloc_tile : !tile\n%c = pto.alloc_tile : !tile"
LOAD = "pto.tload ins(%x : !view) outs(%a : !tile)"
STORE = "pto.tstore ins(%{} : !tile) outs(%y : !view)"


def abs_of(src: str, dst: str) -> str:
    return f"pto.tabs ins(%{src} : !tile) outs(%{dst} : !tile)"


def found(*lines: str) -> list[str]:
    module = parse(_HEAD + "\n".join(lines) + "\nreturn\n}\n}\n")
    (function,) = module.functions()
    return [d.message.partition("tile ")[2].partition(",")[0] for d in unread(function)]


def test_a_result_that_nothing_takes_is_told_of_once() -> None:
    """As in PTOAS#899: the store takes the operand, not the result."""
    assert found(TILES, LOAD, abs_of("a", "b"), abs_of("a", "b"), STORE.format("a")) == ["b"]
    assert found(TILES, LOAD, abs_of("a", "b"), STORE.format("b")) == []


def test_a_chain_is_told_of_where_it_ends() -> None:
    """b is read, by an instruction whose own result is not."""
    lines = abs_of("a", "b"), abs_of("b", "c"), STORE.format("a")
    assert found(TILES, LOAD, *lines) == ["c"]


def test_in_place_work_is_a_read() -> None:
    assert found(TILES, LOAD, abs_of("a", "a")) == []


LOOP = "scf.for %i = %c0 to %n step %c1 {"


def test_the_next_iteration_may_read() -> None:
    assert found(TILES, LOAD, LOOP, STORE.format("b"), abs_of("a", "b"), "}") == []


def test_another_name_of_the_tile_is_the_tile() -> None:
    other = "!pto.tile_buf<vec, 32x32xf32>"
    name = f"%w = pto.treshape %b : !tile -> {other}"
    lines = (TILES, LOAD, abs_of("a", "b"), name)
    assert found(*lines, STORE.format("a")) == ["b"]
    assert found(*lines, f"pto.tprint ins(%w : {other})", STORE.format("a")) == []


def at(second: str) -> str:
    places = {"a": "%at", "b": second, "c": "%behind"}
    return "\n".join(f"%{n} = pto.alloc_tile addr = {p} : !tile" for n, p in places.items())


def test_tiles_that_share_bytes_are_read_together() -> None:
    """b lies on the second half of a and the first half of c, of which c is stored."""
    lines = LOAD, abs_of("a", "b"), STORE.format("c")
    assert found(at("%at"), *lines) == []
    far = "%far = arith.constant 65536 : i64\n" + at("%far")
    assert found(far, *lines) == ["b"]


def test_nothing_is_said_where_addresses_are_not_known() -> None:
    run = "%run = arith.index_cast %n : index to i64\n" + at("%run")
    assert found(run, LOAD, abs_of("a", "b")) == []


def test_a_second_destination_is_not_blamed_while_the_first_is_used() -> None:
    """tinterleave gives two tiles: a program may want one."""
    two = "pto.tinterleave ins(%a, %a : !tile, !tile) outs(%b, %c : !tile, !tile)"
    assert found(TILES, LOAD, two, STORE.format("b")) == []
    assert found(TILES, LOAD, two, STORE.format("a")) == ["b", "c"]


def test_working_space_is_not_a_result() -> None:
    one = "!pto.tile_buf<vec, 16x1xf32, blayout=col_major>"
    tiles = f"{TILES}\n%r = pto.alloc_tile : {one}"
    row_sum = f"pto.trowsum ins(%a, %b : !tile, !tile) outs(%r : {one})"
    assert found(tiles, LOAD, row_sum, STORE.format("a")) == ["r"]


@pytest.mark.parametrize(("stored", "codes"), [("b", []), ("a", ["PTO-V220"])])
def test_check_deep_tells_of_it(stored: str, codes: list[str]) -> None:
    text = _HEAD.replace("%x: !view, %y: !view", "%p: !pto.ptr<f32>, %q: !pto.ptr<f32>")
    whole = "!pto.tensor_view<16x64xf32>"
    lines = ["%c16 = arith.constant 16 : index", "%c64 = arith.constant 64 : index"]
    for pointer, name in (("p", "x"), ("q", "y")):
        lines += [
            f"%v{name} = pto.make_tensor_view %{pointer}, shape = [%c16, %c64],"
            f" strides = [%c64, %c1] : {whole}",
            f"%{name} = pto.partition_view %v{name}, offsets = [%c0, %c0],"
            f" sizes = [%c16, %c64] : {whole} -> !view",
        ]
    lines += [TILES, LOAD, abs_of("a", "b"), STORE.format(stored)]
    module = parse(text + "\n".join(lines) + "\nreturn\n}\n}\n")
    (looked,) = deep(module, profile=None, device=None)
    assert [d.code for d in looked.verdict.findings] == codes
