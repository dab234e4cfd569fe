"""Reads of local buffers: what was written before on every way, for every number of iterations."""

from __future__ import annotations

import pytest

from pto.ir.graph import Module
from pto.ir.text.parser import parse, parse_file
from pto.observe.fixes.mutations import PLACES, changes
from pto.observe.proofs import prove
from pto.observe.sanitize import sanitize
from pto.prove.questions import Answer, reads_answer
from pto.target.profile import profile
from tests.observe.test_mutation import ARGS, PROGRAMS

VIEW = "!pto.tensor_view<?x64xf32>"
TILE = "!pto.tile_buf<vec, 8x64xf32>"
OPEN = "!pto.tile_buf<vec, 8x64xf32, valid=?x?>"
PART = "!pto.partition_tensor_view<8x64xf32>"
SOME = "!pto.partition_tensor_view<?x64xf32>"
LOOP = "scf.for %i = %c0 to %n step %c1 {"


def program(*lines: str, tile: str = TILE) -> str:
    return "\n".join(
        [
            'module attributes {pto.target_arch = "a5"} {',
            "func.func @k(%x: !pto.ptr<f32>, %y: !pto.ptr<f32>, %n: index) {",
            *(f"%c{n} = arith.constant {n} : index" for n in (0, 1, 4, 8, 64, 512)),
            *(f"%at{n} = arith.constant {n} : i64" for n in (0, 1024, 2048, 4096)),
            "%one = arith.constant 1.0 : f32",
            *(
                f"%{a}v = pto.make_tensor_view %{a}, shape = [%c512, %c64],"
                f" strides = [%c64, %c1] : {VIEW}"
                for a in "xy"
            ),
            *(
                f"%{new} = pto.partition_view %{old}, offsets = [%c0, %c0], sizes = [%c8, %c64]"
                f" : {VIEW} -> {PART}"
                for new, old in (("p", "xv"), ("q", "yv"))
            ),
            *(f"%{name} = pto.alloc_tile : {tile}" for name in "ab" if tile == TILE),
            *lines,
            "return } }",
        ]
    )


def load(name: str) -> str:
    return f"pto.tload ins(%p : {PART}) outs(%{name} : {TILE})"


def add(first: str, second: str, to: str) -> str:
    return f"pto.tadd ins(%{first}, %{second} : {TILE}, {TILE}) outs(%{to} : {TILE})"


def store(name: str) -> str:
    return f"pto.tstore ins(%{name} : {TILE}) outs(%q : {PART})"


def told(text: str, *assume: str) -> Answer:
    module = parse(text)
    found = prove(module, list(module.functions()), assume=assume)
    return next(answer for _, answer in found if answer.question == "reads")


def test_what_was_loaded_is_there() -> None:
    assert told(program(load("a"), add("a", "a", "b"), store("b"))).verdict == "proved"


def test_what_nobody_has_written_is_not() -> None:
    found = told(program(load("a"), add("a", "b", "b"), store("b")))
    assert found.verdict == "refuted" and found.op is not None


def test_a_loop_of_no_iteration_writes_nothing() -> None:
    text = program(LOOP, load("a"), "}", store("a"))
    found = told(text)
    assert found.verdict == "refuted" and found.example is not None
    assert found.example.names == {"n": 0}
    assert told(text, "n >= 1").verdict == "proved"


def test_the_first_iteration_fills_what_the_others_add_to() -> None:
    def text(first: str) -> str:
        return program(
            LOOP,
            load("a"),
            f"%is_first = arith.cmpi eq, %i, %c{first} : index",
            "scf.if %is_first {",
            add("a", "a", "b"),
            "} else {",
            add("a", "b", "b"),
            "}",
            "}",
        )

    assert told(text("0")).verdict == "proved"
    assert told(text("1")).verdict != "proved"


def test_valid_regions_are_formulas() -> None:
    """Rows that are loaded, and as many or more that are stored."""

    def text(stored: str) -> str:
        return program(
            "%r = arith.minsi %n, %c8 : index",
            "%rows = arith.maxsi %r, %c0 : index",
            f"%t = pto.alloc_tile valid_row = %rows valid_col = %c64 : {OPEN}",
            f"%s = pto.partition_view %xv, offsets = [%c0, %c0], sizes = [%rows, %c64]"
            f" : {VIEW} -> {SOME}",
            f"pto.tload ins(%s : {SOME}) outs(%t : {OPEN})",
            f"pto.set_validshape %t, {stored}, %c64 : {OPEN}",
            f"%to = pto.partition_view %yv, offsets = [%c0, %c0], sizes = [{stored}, %c64]"
            f" : {VIEW} -> {SOME}",
            f"pto.tstore ins(%t : {OPEN}) outs(%to : {SOME})",
            tile=OPEN,
        )

    assert told(text("%rows")).verdict == "proved"
    assert told(text("%c8")).verdict == "refuted"


@pytest.mark.parametrize(
    ("rows", "verdict"),
    [
        (("%c4", "%c4"), "proved"),
        (("%c4", "%c8"), "refuted"),  # more rows from the second iteration on
        (("%c4", "%later"), "refuted"),  # more rows from the third one on
        (("%c8", "%c4"), "refuted"),  # more rows in the first one
    ],
)
def test_regions_that_a_loop_carries(rows: tuple[str, str], verdict: str) -> None:
    """Four rows are written before a loop that reads as many as the iteration before has set."""
    first, then = rows
    text = program(
        f"%t = pto.alloc_tile valid_row = %c4 valid_col = %c64 : {OPEN}",
        f"pto.texpands ins(%one : f32) outs(%t : {OPEN})",
        f"pto.set_validshape %t, {first}, %c64 : {OPEN}",
        "%more = arith.constant 5 : index",
        LOOP,
        f"%r, %w = pto.get_validshape %t : {OPEN}",
        f"%to = pto.partition_view %yv, offsets = [%c0, %c0], sizes = [%r, %c64]"
        f" : {VIEW} -> {SOME}",
        f"pto.tstore ins(%t : {OPEN}) outs(%to : {SOME})",
        "%is_first = arith.cmpi eq, %i, %c0 : index",
        "%later = arith.select %is_first, %c4, %more : index",
        f"pto.set_validshape %t, {then}, %c64 : {OPEN}",
        "}",
        tile=OPEN,
    )
    assert told(text, "n >= 3").verdict == verdict


def test_a_plan_that_reuses_a_live_tile() -> None:
    """The fault of PTOAS issue 934: the second tile lies over the end of the first."""

    def text(second: int) -> str:
        return program(
            f"%f = pto.alloc_tile addr = %at0 : {TILE}",
            f"%g = pto.alloc_tile addr = %at{second} : {TILE}",
            f"%h = pto.alloc_tile addr = %at4096 : {TILE}",
            load("f"),
            f"pto.texpands ins(%one : f32) outs(%g : {TILE})",
            add("f", "g", "h"),
            store("h"),
            tile="",
        )

    assert told(text(2048)).verdict == "proved"
    found = told(text(1024))
    assert found.verdict == "refuted" and "two tiles in use" in found.text


# ---- never proved what a run refutes

_READS = ("PTO-V21", "PTO-M201")


def refuted_by_run(module: Module, name: str) -> bool:
    verdict = sanitize(module, args=ARGS[name](), check=False, fixes=False)
    return any(d.code.startswith(_READS) for d in verdict.findings)


@pytest.mark.parametrize("name", ["tiles"])
def test_no_place_is_proved_that_a_run_refutes(name: str) -> None:
    module, target = parse_file(PROGRAMS / f"{name}.pto"), profile("a2a3")
    assert reads_answer(list(module.functions()), target).verdict == "proved"
    found = 0
    for change in changes(list(module.functions())):
        if change.kind == PLACES:
            with change.edit():
                proved = reads_answer(list(module.functions()), target).verdict == "proved"
                refuted = refuted_by_run(module, name)
            assert not (proved and refuted), change.op.loc
            found += refuted
    assert found


def test_a_tile_with_open_rows_takes_the_bytes_of_a_dead_one() -> None:
    """Two tiles that overlap, each with as many rows as are loaded."""

    def text(*steps: str) -> str:
        lines = [
            "%r = arith.minsi %n, %c8 : index",
            "%rows = arith.maxsi %r, %c0 : index",
            f"%a = pto.alloc_tile addr = %at0 valid_row = %rows valid_col = %c64 : {OPEN}",
            f"%b = pto.alloc_tile addr = %at1024 valid_row = %rows valid_col = %c64 : {OPEN}",
            *(
                f"%{new} = pto.partition_view %{old}, offsets = [%c0, %c0], sizes = [%rows, %c64]"
                f" : {VIEW} -> {SOME}"
                for new, old in (("s", "xv"), ("to", "yv"))
            ),
        ]
        for step in steps:
            word, name = step.split()
            if word == "load":
                lines.append(f"pto.tload ins(%s : {SOME}) outs(%{name} : {OPEN})")
            else:
                lines.append(f"pto.tstore ins(%{name} : {OPEN}) outs(%to : {SOME})")
        return program(*lines, tile=OPEN)

    assert told(text("load a", "store a", "load b", "store b")).verdict == "proved"
    assert told(text("load a", "load b", "store b", "load a", "store a")).verdict == "proved"
    assert told(text("load a", "load b", "store a")).verdict != "proved"
    assert told(text("load a", "store a", "load b", "load a", "store b")).verdict != "proved"


@pytest.mark.parametrize(
    ("fold", "region", "result"),
    [
        ("tcolsum", "%few, %c64", "1x64xf32"),
        ("trowmax", "%c8, %few", "8x1xf32, blayout=col_major"),
    ],
)
def test_a_fold_of_nothing_writes_nothing(fold: str, region: str, result: str) -> None:
    tile, folded = "!pto.tile_buf<vec, 8x64xf32, valid=?x?>", f"!pto.tile_buf<vec, {result}>"
    text = program(
        "%few = arith.minsi %n, %c8 : index",
        f"%t = pto.alloc_tile valid_row = %c8 valid_col = %c64 : {tile}",
        f"pto.set_validshape %t, {region} : {tile}",
        f"pto.texpands ins(%one : f32) outs(%t : {tile})",
        f"%f = pto.alloc_tile : {folded}",
        f"pto.{fold} ins(%t : {tile}) outs(%f : {folded})",
        f"pto.tadds ins(%f, %one : {folded}, f32) outs(%f : {folded})",
        tile=tile,
    )
    assert told(text, "n >= 0").verdict == "unknown"  # no result depends on what is read
    assert told(text, "n >= 1").verdict == "proved"
