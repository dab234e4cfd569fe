"""`pto prove` and `kernel.prove`: what is proved, refuted by numbers, or unknown."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import pto
from examples.gallery.attention import attention
from examples.gallery.batched_gemm import batched_gemm
from pto.cli.main import main
from pto.core.errors import PtoError
from pto.ir.text.parser import parse
from pto.observe.proofs import prove
from pto.prove.assume import assumed
from pto.prove.facts import facts
from pto.prove.number import Symbol, evaluated, number, of
from pto.prove.questions import Answer

VIEW = "!pto.tensor_view<?x128xf32>"
PART = "!pto.partition_tensor_view<8x128xf32>"
Rows = pto.Global[pto.f32, "n", 64]
TILE = "!pto.tile_buf<vec, 8x128xf32>"


def program(load: str, store: str, *lines: str) -> str:
    """Rows from `load` on go to rows from `store` on, eight a block."""
    return "\n".join(
        [
            'module attributes {pto.target_arch = "a5"} {',
            "func.func @k(%x: !pto.ptr<f32>, %y: !pto.ptr<f32>, %rows: index) {",
            *(f"%c{n} = arith.constant {n} : index" for n in (0, 1, 2, 8, 128)),
            *(
                f"%{a}v = pto.make_tensor_view %{a}, shape = [%rows, %c128],"
                f" strides = [%c128, %c1] : {VIEW}"
                for a in "xy"
            ),
            "%raw = pto.get_block_idx",
            "%block = arith.index_cast %raw : i64 to index",
            "%first = arith.muli %block, %c8 : index",
            *lines,
            f"%t = pto.alloc_tile : {TILE}",
            f"%p = pto.partition_view %xv, offsets = [{load}, %c0], sizes = [%c8, %c128]"
            f" : {VIEW} -> {PART}",
            f"pto.tload ins(%p : {PART}) outs(%t : {TILE})",
            f"%q = pto.partition_view %yv, offsets = [{store}, %c0], sizes = [%c8, %c128]"
            f" : {VIEW} -> {PART}",
            f"pto.tstore ins(%t : {TILE}) outs(%q : {PART})",
            "return } }",
        ]
    )


def told(text: str, *assume: str) -> dict[str, Answer]:
    module = parse(text)
    found = prove(module, list(module.functions()), assume=assume)
    return {answer.question: answer for _, answer in found}


def test_a_window_that_no_size_guards_is_refuted_with_numbers():
    found = told(program("%first", "%first"))
    bounds = found["bounds"]
    assert bounds.verdict == "refuted"
    assert bounds.example is not None
    rows, blocks = bounds.example.names["rows"], bounds.example.blocks
    assert rows < 8 * blocks  # then, and only then, the last block has fewer than eight rows
    module = parse(program("%first", "%first"))
    shown = str(prove(module, list(module.functions())))
    assert f"a run confirms it: rows = {rows}, {blocks} block" in shown


def test_a_refutation_names_the_inequality_that_fails():
    """rows * rows - block * block may be negative too, but block 0 of 16 rows is behind the end."""
    lines = (
        "%rr = arith.muli %rows, %rows : index",
        "%bb = arith.muli %block, %block : index",
        "%at = arith.subi %rr, %bb : index",
    )
    bounds = told(program("%at", "%at", *lines))["bounds"]
    assert bounds.verdict == "refuted" and bounds.example is not None
    rows, block = bounds.example.names["rows"], bounds.example.block
    assert (">= 0 does not hold" in bounds.text) == (rows**2 < block**2)
    assert ("<= rows does not hold" in bounds.text) == (rows**2 >= block**2)


def test_a_window_of_fewer_than_no_rows_is_refuted():
    """What is left for a block behind the last row is negative, and a run stops there."""
    left = (
        "%left = arith.subi %rows, %first : index",
        "%n = arith.minsi %left, %c8 : index",
        "%none = arith.maxsi %n, %c0 : index",
    )
    part, tile = "!pto.partition_tensor_view<?x128xf32>", TILE.replace(">", ", valid=?x128>")

    def sized(size: str) -> str:
        text = program("%first", "%first", *left).replace(PART, part).replace(TILE, tile)
        text = text.replace("alloc_tile", f"alloc_tile valid_row = {size}")
        text = text.replace("sizes = [%c8", f"sizes = [{size}")
        head, _, rest = text.partition("%t = ")
        made, _, rest = rest.partition("\n")  # the windows come first, so that a run shows them
        return head + rest.replace("pto.tload", f"%t = {made}\npto.tload", 1)

    found = told(sized("%n"))["bounds"]
    assert found.verdict == "refuted" and found.example is not None
    assert found.example.names["rows"] < 8 * (found.example.blocks - 1)
    assert told(sized("%n"), "rows >= 8 * blocks")["bounds"].verdict == "proved"
    assert told(sized("%none"))["bounds"].verdict != "proved"  # and begins behind the last row


def test_an_assumption_settles_it():
    found = told(program("%first", "%first"), "rows >= 8 * blocks")
    assert {a.verdict for a in found.values()} == {"proved"}
    assert "rows >= 8 * blocks" in found["bounds"].assumes


def test_blocks_that_write_one_place_are_refuted():
    found = told(program("%first", "%c0"), "rows >= 8 * blocks")
    assert found["bounds"].verdict == "proved"
    assert found["blocks"].verdict == "refuted"
    example = found["blocks"].example
    assert example is not None and example.blocks > 1


def test_half_a_window_too_near_is_refuted():
    half = "%near = arith.divsi %first, %c2 : index"
    found = told(program("%near", "%near", half), "rows >= 8 * blocks")
    assert found["bounds"].verdict == "proved"
    assert found["blocks"].verdict == "refuted"


def test_an_offset_from_memory_is_unknown_and_named():
    read = "%n = pto.load_scalar %x[%c0] : !pto.ptr<f32> -> f32"
    cast = "%m = arith.fptosi %n : f32 to i32"
    index = "%where = arith.index_cast %m : i32 to index"
    found = told(program("%where", "%first", read, cast, index), "rows >= 8 * blocks")
    assert found["bounds"].verdict == "unknown"
    assert "tload" in found["bounds"].text
    assert found["blocks"].verdict == "proved"  # of what is only read, any place will do


def test_kernels_of_the_gallery():
    half = [(2, 64, 64)] * 3
    sizes = batched_gemm[4, 2, 32].prove(*half, assume=["b >= 32", "k >= 1"])
    assert [a.verdict for _, a in sizes] == ["proved"] * len(sizes)
    shapes = [(2, 64, 64)] * 4 + [(4, 32, 32)]
    heads = attention[4, 2].prove(*shapes, assume=["h >= 2", "b >= 8"])
    assert [a.verdict for _, a in heads] == ["proved"] * len(heads)
    assert "assumed by all proofs: h >= 2" in str(heads)
    (_, bounds), *_ = attention[4, 3].prove(*shapes)  # of two heads
    assert bounds.verdict == "refuted"
    assert bounds.example is not None and bounds.example.blocks == 12
    (_, bounds), *_ = attention.prove(*shapes)
    assert bounds.example is not None and bounds.example.names["h"] < 16


def test_a_loop_over_tiles_is_proved_for_every_length():
    @pto.kernel(profile="a5")
    def persistent(x: Rows, y: Rows) -> None:
        for i in pto.range(pto.block_idx(), pto.cdiv(x.shape[0], 8), pto.block_num()):
            pto.store(y[i * 8 :, :], pto.load(x[i * 8 :, :], 8, 64))

    found = persistent.prove((80, 64), (80, 64))
    assert found[0][1].verdict == "proved", found


@pytest.mark.parametrize(
    ("text", "holds"),
    [
        ("rows >= 8 * blocks", lambda r, b: r >= 8 * b),
        ("rows == blocks", lambda r, b: r == b),
        ("1 <= rows < 2 * blocks - 3", lambda r, b: 1 <= r < 2 * b - 3),
        ("-rows > -9", lambda r, b: -r > -9),
    ],
)
def test_assumptions(text: str, holds: object):
    rows, blocks = Symbol("rows", "argument"), Symbol("blocks", "argument")
    found = assumed(text, {"rows": of(rows), "blocks": of(blocks)})
    for r in range(12):
        for b in range(12):
            values = [evaluated(n, {rows: r, blocks: b}) for n in found]
            assert all(v is not None and v >= 0 for v in values) == holds(r, b)  # type: ignore


@pytest.mark.parametrize(
    "text", ["rows", "rows ** 2 > 1", "f(1) > 2", "columns > 1", "1 <", "'a' < 2"]
)
def test_what_is_no_assumption(text: str):
    with pytest.raises(PtoError) as caught:
        assumed(text, {"rows": number(3)})
    assert caught.value.diagnostics[0].code == "PTO-U340"


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    file = tmp_path / "k.pto"
    file.write_text(program("%first", "%first"))
    assert main(["prove", str(file), "--format", "json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert [f["code"] for f in found["findings"]] == ["PTO-V230"]
    assert [a["verdict"] for a in found["answers"]] == ["refuted"] + ["proved"] * 4
    assert main(["prove", str(file), "--assume", "rows >= 8 * blocks"]) == 0
    assert "bounds   proved" in capsys.readouterr().out
    assert main(["prove", str(file), "--set", "rows=16", "--blocks", "2"]) == 0
    assert main(["prove", str(file), "--set", "rows=16", "--blocks", "3"]) == 1
    assert main(["prove", str(file), "--set", "cols=16"]) == 2


def test_rows_that_data_choose_are_refuted_with_equal_data():
    """All elements are the same row: with zeros in the array, every block writes row 0."""
    lines = (
        "%ints = pto.castptr %x : !pto.ptr<f32> -> !pto.ptr<i32>",
        "%data = pto.load_scalar %ints[%block] : !pto.ptr<i32> -> i32",
        "%row = arith.index_cast %data : i32 to index",
    )
    blocks = told(program("%c0", "%row", *lines))["blocks"]
    assert blocks.verdict == "refuted"
    assert "arrays of zeros" in str(blocks.example)


def test_a_shift_may_be_negative_unless_it_is_said_not_to_be():
    """Below zero, several blocks write the first rows."""
    lines = (
        "%moved = arith.addi %first, %shift : index",
        "%at = arith.maxsi %moved, %c0 : index",
    )
    text = program("%c0", "%at", *lines).replace("%rows: index", "%rows: index, %shift: index")
    found = told(text)["blocks"]
    assert found.verdict == "refuted"
    assert found.example is not None and found.example.names["shift"] < 0
    assert found.example.names["rows"] >= 8
    assert told(text, "shift >= 0")["blocks"].verdict == "proved"


def test_vector_code_beside_a_cube_runs_on_two_sub_blocks() -> None:
    """The second one of block 0 writes the rows of the first one of block 1."""

    def text(*cube: str) -> str:
        sub = "%s = pto.get_subblock_idx", "%sub = arith.index_cast %s : i64 to index"
        sums = "%n = arith.addi %sub, %block : index", "%at = arith.muli %n, %c8 : index"
        begin, rest = program("%at", "%at", *sub, *sums).split("%raw = ")
        body, end = rest.split("return }")
        return f"{begin}{''.join(cube)}pto.section.vector {{\n%raw = {body}}}\nreturn }}{end}"

    assert told(text())["blocks"].verdict == "proved"
    assert (
        told(text("pto.section.cube { pto.barrier <PIPE_ALL> }\n"))["blocks"].verdict == "unknown"
    )


def test_steps_of_pointers_to_half_bytes_are_not_lost() -> None:
    found = facts(
        parse(
            "module { func.func @k(%x: !pto.ptr<f4E2M1x2>, %n: index) {\n"
            "%c1 = arith.constant 1 : index\n"
            "%p = pto.addptr %x, %n : !pto.ptr<f4E2M1x2> -> !pto.ptr<f4E2M1x2>\n"
            "%q = pto.castptr %p : !pto.ptr<f4E2M1x2> -> !pto.ptr<i8>\n"
            "%v = pto.load_scalar %q[%c1] : !pto.ptr<i8> -> i8\n"
            "return } }"
        )
        .functions()
        .__next__()
    )
    assert found.unknown


def test_an_array_that_no_memory_holds_leaves_a_question_open() -> None:
    """A flag that only a branch sets needs a run, and the run has no room for its array."""
    huge = "memref<99999999999999x16xf32, #pto.address_space<gm>>"
    module = parse(
        f'module attributes {{pto.target_arch = "a5"}} {{ func.func @k(%x: {huge}, %n: index) {{\n'
        "%c0 = arith.constant 0 : index\n"
        "%c = arith.cmpi sgt, %n, %c0 : index\n"
        'scf.if %c { pto.set_flag["PIPE_MTE2", "PIPE_V", "EVENT_ID0"] }\n'
        'pto.wait_flag["PIPE_MTE2", "PIPE_V", "EVENT_ID0"]\n'
        "return } }"
    )
    found = {a.question: a.verdict for _, a in prove(module, list(module.functions()))}
    assert found["deadlock"] == "unknown"
