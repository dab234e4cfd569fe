"""The scalar unit beside arithmetic: queries, single elements, local arrays, CTRL, print, trap."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pto.core.errors import PtoError
from pto.ir.text.parser import parse
from pto.run.launch.host import launch
from tests.machine import Bench


def code_of(caught: pytest.ExceptionInfo[PtoError]) -> str:
    return caught.value.diagnostics[0].code


# ---- queries


def test_blocks_know_their_number_and_how_many_they_are() -> None:
    text = """
    func.func @k(%out: !pto.ptr<i64>) attributes {pto.kernel} {
      %c100 = arith.constant 100 : i64
      %block = pto.get_block_idx
      %blocks = pto.get_block_num
      %high = arith.muli %blocks, %c100 : i64
      %both = arith.addi %high, %block : i64
      %at = arith.index_cast %block : i64 to index
      pto.store_scalar %both, %out[%at] : !pto.ptr<i64>, i64
      return
    }
    """
    out = np.zeros(4, np.int64)
    launch(parse(text), args=[out], blocks=3, profile="a5")
    assert out.tolist() == [300, 301, 302, 0]


def test_sub_blocks_of_a_mixed_kernel_know_their_number() -> None:
    text = """
    func.func @k(%out: !pto.ptr<i64>) attributes {pto.kernel} {
      pto.section.cube {
        %c3 = arith.constant 3 : index
        %n = pto.get_subblock_num
        pto.store_scalar %n, %out[%c3] : !pto.ptr<i64>, i64
      }
      pto.section.vector {
        %c10 = arith.constant 10 : i64
        %i = pto.get_subblock_idx
        %at = arith.index_cast %i : i64 to index
        %n = pto.get_subblock_num
        %high = arith.muli %n, %c10 : i64
        %both = arith.addi %high, %i : i64
        pto.store_scalar %both, %out[%at] : !pto.ptr<i64>, i64
      }
      return
    }
    """
    out = np.zeros(4, np.int64)
    launch(parse(text), args=[out], profile="a5")
    assert out[:2].tolist() == [20, 21]


# ---- single elements of memory


@pytest.mark.parametrize(
    ("type", "value", "raw"),
    [
        ("i8", -2, b"\xfe"),
        ("ui8", 254, b"\xfe"),
        ("i16", -2, b"\xfe\xff"),
        ("i32", 0x01020304, b"\x04\x03\x02\x01"),
        ("ui32", 0xFFFFFFFF, b"\xff\xff\xff\xff"),
        ("i64", -1, b"\xff" * 8),
        ("f16", 1.0, b"\x00\x3c"),
        ("bf16", 1.0, b"\x80\x3f"),
        ("f32", -2.0, b"\x00\x00\x00\xc0"),
    ],
)
@pytest.mark.parametrize("space", ["gm", "ub"])
def test_an_element_is_stored_and_loaded_by_its_bits(
    type: str, value: Any, raw: bytes, space: str
) -> None:
    bench = Bench("a5")
    live = bench.pointer("p", f"{type}, {space}", [0, 0, 0])
    bench.scalar("x", type, value)
    bench.scalar("at", "index", 1)
    (got,) = bench.run(
        "pto.store_scalar %x, %p[%at] : {p}, {x}\n%r = pto.load_scalar %p[%at] : {p} -> {x}",
        results=f"%r : {type}",
    )
    size = len(raw)
    assert live.view(np.uint8).tobytes() == bytes(size) + raw + bytes(size)
    assert got == value


@pytest.mark.parametrize("at", [-1, 3])
def test_an_element_outside_its_memory_is_a_finding(at: int) -> None:
    bench = Bench("a5")
    live = bench.pointer("p", "i32, gm", [7, 8, 9])
    bench.scalar("at", "index", at)
    bench.scalar("x", "i32", 1)
    for line in (
        "%r = pto.load_scalar %p[%at] : {p} -> i32",
        "pto.store_scalar %x, %p[%at] : {p}, i32",
    ):
        with pytest.raises(PtoError) as caught:
            bench.run(line)
        assert code_of(caught).startswith("PTO-M")
    assert live.tolist() == [7, 8, 9]


# ---- local arrays


def test_a_local_array_keeps_what_is_set() -> None:
    bench = Bench("a5")
    for n in range(3):
        bench.scalar(f"c{n}", "index", n)
    bench.scalar("x", "i16", -5)
    got = bench.run(
        """
        %a = pto.declare_local_array -> !pto.local_array<2x3xi16>
        pto.local_array_set %a[%c1, %c2], %x : !pto.local_array<2x3xi16>, i16
        %y = pto.local_array_get %a[%c1, %c2] : !pto.local_array<2x3xi16> -> i16
        """,
        results="%y : i16",
    )
    assert got == [-5]


@pytest.mark.parametrize("index", [-1, 4])
def test_an_index_outside_a_local_array_is_a_finding(index: int) -> None:
    bench = Bench("a5")
    bench.scalar("i", "index", index)
    with pytest.raises(PtoError, match="local array of 4") as caught:
        bench.run(
            "%a = pto.declare_local_array -> !pto.local_array<4xi32>\n"
            "%y = pto.local_array_get %a[%i] : !pto.local_array<4xi32> -> i32"
        )
    assert code_of(caught) == "PTO-S133"


# ---- control registers


@pytest.mark.parametrize(
    ("name", "first", "second", "wanted"),
    [
        ("sbitset1", 0, 0, 1),
        ("sbitset1", 1, 3, 9),
        ("sbitset1", 0, 63, -(1 << 63)),
        ("sbitset0", 15, 1, 13),
        ("sbitset0", -1, 63, (1 << 63) - 1),
        ("sbitset0", 0, 5, 0),
    ],
)
def test_bits_are_set_and_cleared(name: str, first: int, second: int, wanted: int) -> None:
    bench = Bench("a5")
    bench.scalar("a", "i64", first)
    bench.scalar("n", "i64", second)
    line = f"%r = pto.{name} %a, %n : i64, i64 -> i64"
    assert bench.run(line, results="%r : i64") == [wanted]


def test_a_bit_that_no_register_has_is_a_finding() -> None:
    bench = Bench("a5")
    bench.scalar("a", "i64", 0)
    bench.scalar("n", "i64", 64)
    with pytest.raises(PtoError, match="bit 64 does not exist: a register has bits 0 to 63"):
        bench.run("%r = pto.sbitset1 %a, %n : i64, i64 -> i64")


def test_ctrl_keeps_all_of_its_bits() -> None:
    bench = Bench("a5")
    bench.scalar("a", "i64", -(1 << 63) + (1 << 48) + 5)
    got = bench.run("pto.set_ctrl %a : i64\n%r = pto.get_ctrl : i64", results="%r : i64")
    assert got == [-(1 << 63) + (1 << 48) + 5]


# ---- print and trap


@pytest.mark.parametrize(
    ("format", "type", "value", "wanted"),
    [
        ("%d", "i32", -3, "-3"),
        ("n = %d of 7", "i32", 3, "n = 3 of 7"),
        ("%5d|", "i32", 42, "   42|"),
        ("%-5d|", "i32", 42, "42   |"),
        ("%05d", "i32", -42, "-0042"),
        ("%+d", "i16", 5, "+5"),
        ("%u", "ui32", 4294967295, "4294967295"),
        ("%lld", "i64", 1 << 40, "1099511627776"),
        ("%x", "ui8", 255, "ff"),
        ("%#X", "ui8", 255, "0XFF"),
        ("%c", "i8", 65, "A"),
        ("%f", "f32", 1.5, "1.500000"),
        ("%+08.3f", "f32", 3.14159, "+003.142"),
        ("%.2e", "f32", 12345.0, "1.23e+04"),
        ("%g", "f16", 0.5, "0.5"),
        ("%f", "f32", float("inf"), "inf"),
        ("%%d", "i32", 3, "%d"),
        ("plain", "i32", 3, "plain"),
        ("%d and %d", "i32", 3, "3 and %d"),
        ("%s%n", "i32", 3, "%s%n"),
    ],
)
def test_print_formats_one_number(format: str, type: str, value: Any, wanted: str) -> None:
    """As C's printf prints it; a format is data, and whatever asks for more stays text."""
    bench = Bench("a5")
    bench.scalar("x", type, value)
    bench.run(f'pto.print ins("{format}", %x : {type})')
    assert list(bench.core.printed) == [wanted]


def test_an_unsigned_format_shows_the_bits_of_a_negative_number() -> None:
    """printf("%x", -1) and ("%u", -1) of a 32-bit int."""
    bench = Bench("a5")
    bench.scalar("x", "i32", -1)
    bench.run('pto.print ins("%x", %x : i32)\npto.print ins("%u", %x : i32)')
    assert list(bench.core.printed) == ["ffffffff", "4294967295"]


def test_an_integer_format_of_a_float_that_is_no_number_is_no_failure() -> None:
    bench = Bench("a5")
    bench.scalar("x", "f32", float("nan"))
    bench.run('pto.print ins("%d", %x : f32)')
    assert list(bench.core.printed) == ["nan"]


def test_trap_stops_with_the_name_of_the_core() -> None:
    with pytest.raises(PtoError, match=r"block 0 reached pto\.trap") as caught:
        Bench("a5").run("pto.trap")
    assert code_of(caught) == "PTO-S135"
