"""How operations stand together: what is only warned of, and what depends on the target or level.

Errors that hold everywhere are programs in tests/pto/bad.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from pto.cli.main import main
from pto.core.errors import Diagnostic
from pto.ir.text.parser import parse
from pto.isa.table import lookup
from pto.target.profile import choose, profile
from pto.verify import judge, verify

KB = 1024


def findings(text: str, profile: str = "a5", *, device: str | None = None) -> list[Diagnostic]:
    target = choose(profile_name=None if device else profile, device_name=device)
    return verify(parse(text), target.profile)


def seen(found: list[Diagnostic]) -> list[tuple[str, str, int]]:
    return [(d.severity, d.code, d.loc.line if d.loc else 0) for d in found]


def tiles(*lines: str, tail: str = "") -> str:
    return "\n".join(("func.func @k() {", *lines, tail, "return", "}"))


def placed(name: str, address: int, type: str) -> str:
    return (
        f"%{name}a = arith.constant {address} : i64\n"
        f"%{name} = pto.alloc_tile addr = %{name}a : !pto.tile_buf<{type}>"
    )


def use(*names: str, type: str = "vec, 8x16xf32") -> str:
    """An operation on each, so that they live at one time."""
    tile = f"!pto.tile_buf<{type}>"
    lines = [f"pto.tadd ins(%{n}, %{n} : {tile}, {tile}) outs(%{n} : {tile})" for n in names]
    return "\n".join([*lines, *lines])


# ---- capacity: profile, device by warning, device asked for

# 208 x 256 f32 = 212,992 bytes: within the manual's 256 KB of UB, beyond the 192 KB of the chips.
LARGE = tiles("%t = pto.alloc_tile : !pto.tile_buf<vec, 208x256xf32>")


def test_a_tile_that_fits_the_profile_and_not_every_chip_is_a_warning() -> None:
    (found,) = findings(LARGE, "a2a3")
    assert (found.severity, found.code) == ("warning", "PTO-M103")
    assert f"{192 * KB:,} bytes of ub" in found.message
    assert found.help is not None and found.help.startswith("`--device 910")


def test_with_the_chip_named_it_is_an_error() -> None:
    (found,) = findings(LARGE, device="910b1")
    assert (found.severity, found.code) == ("error", "PTO-M105")
    assert f"212,992 bytes is larger than ub with {192 * KB:,} bytes" in found.message


def test_a5_has_room_for_it() -> None:
    assert findings(LARGE, "a5") == []


def test_the_command_tells_a_chip_from_a_profile(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "large.pto"
    path.write_text(LARGE)
    assert main(["check", "--profile", "a2a3", str(path)]) == 0
    assert "warning[PTO-M103]" in capsys.readouterr().out
    assert main(["check", "--device", "910b1", str(path)]) == 1
    assert "error[PTO-M105]" in capsys.readouterr().out


def test_a_placed_tile_is_judged_by_where_it_ends() -> None:
    """The last 8x16 f32 tile of 192 KB, and the one behind it."""
    inside, behind = 192 * KB - 512, 192 * KB
    assert findings(tiles(placed("t", inside, "vec, 8x16xf32")), "a2a3") == []
    assert seen(findings(tiles(placed("t", behind, "vec, 8x16xf32")), "a2a3")) == [
        ("warning", "PTO-M103", 3)
    ]
    assert seen(findings(tiles(placed("t", behind, "vec, 8x16xf32")), device="910b1")) == [
        ("error", "PTO-M102", 3)
    ]


# ---- overlap and alignment


def test_tiles_that_share_bytes_while_both_are_used_are_a_warning() -> None:
    text = tiles(
        placed("x", 0, "vec, 8x16xf32"), placed("y", 256, "vec, 8x16xf32"), tail=use("x", "y")
    )
    (found,) = findings(text)
    assert (found.severity, found.code) == ("warning", "PTO-M106")
    assert found.message == "two tiles that are live at the same time share UB[0x100..0x200)"
    assert found.loc is not None and found.loc.line == 5
    assert [note.loc.line if note.loc else 0 for note in found.notes] == [3]


def test_neighbours_windows_and_second_names_do_not_overlap() -> None:
    whole, small = "vec, 8x16xf32", "vec, 2x16xf32"
    next_to = tiles(placed("x", 0, whole), placed("y", 512, whole), tail=use("x", "y"))
    assert findings(next_to) == []
    same = tiles(placed("x", 0, whole), placed("y", 0, whole), tail=use("x", "y"))
    assert findings(same) == []
    inside = tiles(
        placed("x", 0, whole),
        placed("y", 128, small),
        tail=use("x") + "\n" + use("y", type=small) + "\n" + use("x"),
    )
    assert findings(inside) == []


def test_tiles_that_are_used_one_after_the_other_may_share_bytes() -> None:
    text = tiles(
        placed("x", 0, "vec, 8x16xf32"),
        use("x"),
        placed("y", 256, "vec, 8x16xf32"),
        use("y"),
    )
    assert findings(text) == []


def test_tiles_in_different_buffers_do_not_overlap() -> None:
    boxes = "16x16xf16, blayout=col_major, slayout=row_major"
    move = f"pto.tmov ins(%y : !pto.tile_buf<mat, {boxes}>) outs(%z : !pto.tile_buf<left, {boxes}>)"
    text = tiles(
        placed("x", 0, "vec, 8x16xf32"),
        placed("y", 256, f"mat, {boxes}"),
        placed("z", 0, f"left, {boxes}"),
        tail=f"{use('x')}\n{move}\n{use('x')}\n{move}",
    )
    assert findings(text) == []


@pytest.mark.parametrize(("address", "codes"), [(32, []), (31, ["PTO-M104"]), (48, ["PTO-M104"])])
def test_addresses_are_multiples_of_32_bytes(address: int, codes: list[str]) -> None:
    assert [d.code for d in findings(tiles(placed("t", address, "vec, 8x16xf32")))] == codes


# ---- flags


def test_a_flag_that_nobody_waits_for_is_a_warning() -> None:
    text = tiles('pto.set_flag["PIPE_MTE2", "PIPE_V", "EVENT_ID0"]')
    assert seen(findings(text)) == [("warning", "PTO-D101", 2)]


def test_a_flag_chosen_at_run_time_may_be_any_of_its_pipes() -> None:
    text = tiles(
        "%i = arith.constant 1 : index",
        "pto.set_flag_dyn[<PIPE_MTE2>, <PIPE_V>, %i]",
        'pto.wait_flag["PIPE_MTE2", "PIPE_V", "EVENT_ID1"]',
    )
    assert findings(text) == []


def test_a_flag_may_be_set_in_a_function_that_is_called() -> None:
    text = """
    func.func @k() attributes {pto.kernel} {
      func.call @set() : () -> ()
      pto.wait_flag["PIPE_MTE2", "PIPE_V", "EVENT_ID0"]
      return
    }
    func.func @set() {
      pto.set_flag["PIPE_MTE2", "PIPE_V", "EVENT_ID0"]
      return
    }
    """
    assert findings(text) == []


# ---- level 2: a compiler places tiles

ASSIGN = """func.func @k(%address: i64) {
%c0 = arith.constant 0 : i64
%t = pto.alloc_tile addr = %c0 : !pto.tile_buf<vec, 8x16xf32>
%u = pto.tassign %t, %address : !pto.tile_buf<vec, 8x16xf32> -> !pto.tile_buf<vec, 8x16xf32>
return
}"""


def test_moving_a_tile_needs_level_3(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, found = judge(parse(ASSIGN), profile="a5")
    assert found == []
    _, found = judge(parse(ASSIGN), profile="a5", level=2)
    assert seen(found) == [("error", "PTO-M100", 3), ("error", "PTO-M100", 4)]
    path = tmp_path / "assign.pto"
    path.write_text(ASSIGN)
    assert main(["check", "--profile", "a5", str(path)]) == 0
    assert main(["check", "--profile", "a5", "--level", "2", str(path)]) == 1
    assert "error[PTO-M100]" in capsys.readouterr().out


LEFT_TO_A_COMPILER = """func.func @k(%c: i32) {
%t = pto.alloc_tile : !pto.tile_buf<vec, 1x64xi32>
%u = pto.alloc_tile : !pto.tile_buf<vec, 1x64xi32>
%m = pto.alloc_multi_tile : !pto.multi_tile_buf<vec, 16x16xf16, count=2>
%b = pto.reserve_buffer {name = "q", size = 1024,
  location = #pto.address_space<vec>, auto = true} -> i32
pto.tci ins(%c : i32) outs(%t : !pto.tile_buf<vec, 1x64xi32>)
pto.trems ins(%t, %c : !pto.tile_buf<vec, 1x64xi32>, i32) outs(%u : !pto.tile_buf<vec, 1x64xi32>)
return
}"""


def test_at_level_3_a_program_places_tiles_buffers_and_scratch() -> None:
    module = parse(LEFT_TO_A_COMPILER)
    assert seen(judge(module, profile="a2a3", level=2)[1]) == []
    _, found = judge(module, profile="a2a3", level=3)
    assert seen(found) == [("error", "PTO-M107", line) for line in (2, 3, 4, 5, 7, 8)]


def test_scratch_that_is_left_out_is_reported_where_no_compiler_plans_it() -> None:
    """The library has no call without it; PTOAS of August plans it at level 2, April's never."""
    column = "!pto.tile_buf<vec, 16x1xf32, blayout=col_major>"
    text = f"""func.func @k(%s: !pto.tile_buf<vec, 16x64xf32>, %d: {column}) {{
    pto.trowsum ins(%s : !pto.tile_buf<vec, 16x64xf32>) outs(%d : {column})
    return
    }}"""
    for target, level, edition, expected in (
        ("a2a3", None, "current", ["warning"]),
        ("a2a3", 2, "current", []),
        ("a5", None, "current", []),  # a5 takes the operand and never touches it
        ("a2a3", 2, "april", ["error"]),
        ("a5", None, "april", ["error"]),
    ):
        _, found = judge(parse(text), profile=target, level=level, edition=edition)
        assert [d.severity for d in found if d.code == "PTO-M107"] == expected, (target, level)


def test_a_compiler_makes_no_scratch_for_a_region_it_does_not_know() -> None:
    src, dst = (f"!pto.tile_buf<vec, 32x32x{t}, valid=?x?>" for t in ("f32", "i8"))
    fp = "!pto.tile_buf<vec, 32x1xf32, blayout=col_major>"
    text = f"""func.func @k(%s: {src}, %f: {fp}, %d: {dst}) {{
    pto.tquant ins(%s, %f : {src}, {fp}) outs(%d : {dst}) {{quant_type = #pto<quant_type INT8_SYM>}}
    return
    }}"""
    assert seen(judge(parse(text), profile="a2a3")[1]) == []
    assert seen(judge(parse(text), profile="a2a3", level=2)[1]) == [("error", "PTO-M107", 2)]


# ---- which target

PLAIN = tiles("%t = pto.alloc_tile : !pto.tile_buf<vec, 8x16xf32>")
FP8 = tiles("%t = pto.alloc_tile : !pto.tile_buf<vec, 32x32xf8E4M3FN>")


def test_a_declared_target_decides() -> None:
    target, _ = judge(parse(f'module attributes {{pto.target_arch = "a3"}} {{\n{PLAIN}\n}}'))
    assert target.profile.name == "a2a3"
    target, found = judge(parse(f'module attributes {{pto.target_arch = "a3"}} {{\n{FP8}\n}}'))
    assert target.profile.name == "a2a3"
    assert [d.severity for d in found] == ["error"]


def test_what_is_asked_for_decides_against_what_is_declared() -> None:
    text = f'module attributes {{pto.target_arch = "a3"}} {{\n{FP8}\n}}'
    target, found = judge(parse(text), profile="a5")
    assert (target.profile.name, found) == ("a5", [])


def test_a_program_without_a_target_gets_one_that_accepts_it() -> None:
    """FP8 is of a5 alone (Target Profiles, Target Profile Comparison)."""
    target, found = judge(parse(FP8))
    assert (target.profile.name, found) == ("a5", [])
    assert not target.declared


def test_a_program_that_no_profile_accepts_is_judged_by_the_default() -> None:
    default, _ = judge(parse(PLAIN))
    target, found = judge(parse(tiles("%t = pto.alloc_tile : !pto.tile_buf<vec, 999x1024xf32>")))
    assert target.profile.name == default.profile.name
    assert [d.code for d in found] == ["PTO-M105"]


@pytest.mark.parametrize(
    ("line", "profile"),
    [
        ("// RUN: ptoas --pto-arch=a5 %s", "a5"),
        ("// RUN: ptoas --pto-arch a3 %s", "a2a3"),
        ("// RUN: not ptoas --pto-arch=a5 %s 2>&1", "a5"),
        ("// RUN: not ptoas --pto-arch=a5 %s\n// RUN: ptoas --pto-arch=a3 %s", "a2a3"),
    ],
)
def test_a_run_line_names_the_target(line: str, profile: str) -> None:
    target, _ = judge(parse(f"{line}\n{PLAIN}"))
    assert target.profile.name == profile


# ---- calls


def test_a_long_chain_of_calls_is_no_recursion() -> None:
    functions = [
        f"func.func @f{n}() {{\nfunc.call @f{n + 1}() : () -> ()\nreturn\n}}" for n in range(2000)
    ]
    assert findings("\n".join([*functions, "func.func @f2000() {\nreturn\n}"])) == []


def test_two_ways_to_one_function_are_no_recursion() -> None:
    call = "func.call @{}() : () -> ()\n"
    bodies = {"a": ("b", "c"), "b": ("d",), "c": ("d",), "d": ()}
    text = "\n".join(
        f"func.func @{name}() {{\n{''.join(call.format(c) for c in callees)}return\n}}"
        for name, callees in bodies.items()
    )
    assert findings(text) == []


def test_names_of_nested_modules_are_their_own() -> None:
    inner = "module {\nfunc.func @k() {\nreturn\n}\n}"
    assert findings(f"module {{\n{inner}\n{inner}\n}}") == []


def test_the_example_of_a_scaled_store_is_legal():
    """Its tiles were in the vector buffer, which its own rules refuse."""
    row = lookup("pto.tstore_fp")
    assert row is not None
    text = row.example
    kinds = re.findall(r"!pto\.\w+<[^<>]*>", text)
    names = re.findall(r"%\w+", text)
    params = ", ".join(f"{n}: {k}" for n, k in zip(names, kinds, strict=True))
    module = parse(f"func.func @f({params}) {{\n{text}\nreturn\n}}")
    for name in ("a2a3", "a5"):
        assert not [d for d in verify(module, profile(name)) if d.severity == "error"]


# ---- views


def test_a_whole_view_that_is_loaded_is_a_warning() -> None:
    """PTOAS wants a part of it; here a view is its own whole part."""
    view, tile = "!pto.tensor_view<16x64xf32>", "!pto.tile_buf<vec, 16x64xf32>"
    load = f"pto.tload ins(%v : {view}) outs(%t : {tile})"
    (found,) = findings(f"func.func @k(%v: {view}, %t: {tile}) {{\n{load}\nreturn\n}}")
    assert (found.severity, found.code) == ("warning", "PTO-T025")
    assert "expects src to be a partition view or a memref" in found.message
