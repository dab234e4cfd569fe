"""Warnings of a first run: holes, idle blocks, no result, a result that is cut, unwritten tiles."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pto
from pto import isa
from pto.core.errors import Diagnostic
from pto.plan.stores import percent, uses
from pto.run.launch.call import require_legal

F32 = pto.Global[pto.f32]
ADD = Path(__file__).parents[2] / "examples" / "add.pto"


def told(run: Callable[[], object]) -> list[str]:
    """The codes of the warnings of a run."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        run()
    return [str(w.message).split("[PTO-")[1][:4] for w in caught]


def messages(run: Callable[[], object]) -> str:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        run()
    return "\n".join(str(w.message) for w in caught)


def ones(*shape: int) -> Any:
    return np.ones(shape, np.float32)


def rows(x: F32, y: F32) -> None:
    i = pto.block_idx() * 16
    pto.store(y[i:, :], pto.load(x[i:, :], 16, 64))


def spaced(x: F32, y: F32) -> None:
    """A step of 32, a tile of 16."""
    for i in pto.range(0, x.shape[0], 32):
        pto.store(y[i : i + 16, :], pto.load(x[i : i + 16, :], 16, 64))


def early(x: F32, y: F32) -> None:
    """Whole tiles only."""
    for i in pto.range(0, x.shape[0] // 16 * 16, 16):
        pto.store(y[i : i + 16, :], pto.load(x[i : i + 16, :], 16, 64))


def overlapping(x: F32, y: F32) -> None:
    """As many elements as the array has, half of them twice."""
    i = pto.block_idx() * 8
    pto.store(y[i : i + 16, :], pto.load(x[i : i + 16, :], 16, 64))


def halves(x: F32, y: F32) -> None:
    i = pto.block_idx() * 16
    pto.store(y[i:, 0:32], pto.load(x[i:, 0:32], 16, 32))
    pto.store(y[i:, 32:], pto.load(x[i:, 32:], 16, 32))


def conditional(x: F32, y: F32) -> None:
    i = pto.block_idx() * 16
    if i < 48:
        pto.store(y[i:, :], pto.load(x[i:, :], 16, 64))


def chosen(x: F32, y: F32) -> None:
    """Odd blocks write once more what the block before them has written."""
    i = pto.block_idx() * 16
    if pto.block_idx() % 2 == 0:
        pto.store(y[i:, :], pto.load(x[i:, :], 16, 64))
    else:
        pto.store(y[i - 16 :, :], pto.load(x[i:, :], 16, 64))


def apart(x: F32, y: F32) -> None:
    """All of x, to every second tile of y."""
    i = pto.block_idx() * 16
    pto.store(y[2 * i :, :], pto.load(x[i:, :], 16, 64))


def tiles(x: F32, y: F32) -> None:
    for i in pto.range(0, x.shape[0], 16):
        for j in pto.range(0, 64, 32):
            pto.store(y[i:, j:], pto.load(x[i:, j:], 16, 32))


def tiles_apart(x: F32, y: F32) -> None:
    """Columns 32 to 47 are left out, and some rows."""
    for i in pto.range(0, x.shape[0], 24):
        for j in pto.range(0, 64, 48):
            pto.store(y[i:, j:], pto.load(x[i:, j:], 16, 32))


def nested(x: F32, y: F32) -> None:
    """Block 0 writes 64 rows, the others 8 of them again."""
    i = pto.block_idx() * 8
    rows = pto.max(64 - pto.block_idx() * 64, 8)
    pto.store(y[i : i + rows, :], pto.load(x[i : i + rows, :], 64, 64))


CASES: dict[str, tuple[Any, int, Any, Any]] = {
    "all": (rows, 7, ones(100, 64), ones(100, 64)),
    "a block too few": (rows, 6, ones(100, 64), ones(100, 64)),
    "half of the blocks": (rows, 4, ones(128, 64), ones(128, 64)),
    "step too long": (spaced, 1, ones(128, 64), ones(128, 64)),
    "no tail": (early, 1, ones(100, 64), ones(100, 64)),
    "step too short": (overlapping, 8, ones(128, 64), ones(128, 64)),
    "two stores": (halves, 3, ones(40, 64), ones(40, 64)),
    "two stores, a block too few": (halves, 2, ones(40, 64), ones(40, 64)),
    "both ways of a condition": (chosen, 4, ones(64, 64), ones(64, 64)),
    "gaps, although the input is read": (apart, 4, ones(64, 64), ones(128, 64)),
    "windows inside another": (nested, 4, ones(64, 64), ones(64, 64)),
    "tiles": (tiles, 1, ones(40, 64), ones(40, 64)),
    "gaps between tiles": (tiles_apart, 1, ones(40, 64), ones(40, 64)),
    "condition": (conditional, 4, ones(64, 64), ones(64, 64)),
}


TWICE = ("step too short", "both ways of a condition", "windows inside another")


@pytest.mark.parametrize("name", CASES)
def test_holes_are_those_that_a_watched_run_finds(name: str):
    function, blocks, x, y = CASES[name]
    kernel = pto.kernel(function)
    said = messages(lambda: kernel[blocks](x, y))
    if name in TWICE:
        assert "PTO-U314" in said
        return
    (found,) = kernel[blocks](x, y, coverage=True).coverage
    assert bool(found.never) == bool(said)
    assert not said or said.startswith(f"{found} [PTO-U310]")


def test_the_number_of_blocks_that_leaves_no_hole_is_named():
    said = messages(lambda: pto.kernel(rows)[4](ones(100, 64), ones(100, 64)))
    assert "a launch of 7 blocks writes all of it" in said
    assert "blocks writes all" not in messages(
        lambda: pto.kernel(spaced)(ones(64, 64), ones(64, 64))
    )


def test_blocks_behind_the_end_are_named():
    said = messages(lambda: pto.kernel(rows)[8](ones(100, 64), ones(100, 64)))
    assert said.startswith("block 7 of 8 writes nothing: the arrays end before their part")
    assert "a launch of 7 blocks writes the same" in said
    said = messages(lambda: pto.kernel(rows)[9](ones(100, 64), ones(100, 64)))
    assert said.startswith("2 of 9 blocks (7 to 8) write nothing")


@pytest.mark.parametrize(("shape", "what"), [((8, 64), "rows"), ((16, 32), "columns")])
def test_a_result_that_is_larger_than_its_array_is_cut(shape: tuple[int, int], what: str):
    @pto.kernel
    def k(x: F32, y: F32) -> None:
        pto.store(y, pto.load(x, 16, 64) + 1.0)

    said = messages(lambda: k(ones(16, 64), ones(*shape)))
    assert f"{what} of the result are not stored [PTO-U313]" in said
    assert not told(lambda: k(ones(*shape), ones(*shape)))


def test_what_is_shown_stands_at_the_line_of_the_user_once_for_each_shape():
    kernel = pto.kernel(rows)
    with pytest.warns(pto.PtoWarning) as caught:
        kernel[3](ones(64, 64), ones(64, 64))
    assert caught[0].filename == __file__
    assert caught[0].lineno == rows.__code__.co_firstlineno + 2
    assert not told(lambda: kernel[3](ones(64, 64), ones(64, 64)))
    assert told(lambda: kernel[3](ones(80, 64), ones(80, 64))) == ["U310"]


def test_a_kernel_that_is_launched_each_time_is_looked_at_once():
    kernel = pto.kernel(rows)
    run = lambda: kernel[3](ones(64, 64), ones(64, 64), engine="reference")  # noqa: E731
    assert (told(run), told(run)) == (["U310"], [])


@pytest.mark.parametrize("how", ["keyword", "variable"])
def test_the_check_can_be_left_out(how: str, monkeypatch: pytest.MonkeyPatch):
    more = {"coverage": False} if how == "keyword" else {}
    if how == "variable":
        monkeypatch.setenv("PTO_COVERAGE", "0")
    assert not told(lambda: pto.kernel(rows)[3](ones(64, 64), ones(64, 64), **more))
    assert os.environ.get("PTO_COVERAGE") == ("0" if how == "variable" else None)


# ---- what is meant


def in_place(x: F32) -> None:
    i = pto.block_idx() * 16
    pto.store(x[i:, :], pto.load(x[i:, :], 16, 64) + 1.0)


def added(x: F32, y: F32) -> None:
    i = pto.block_idx() * 16
    pto.store(y[i:, :], pto.load(x[i:, :], 16, 64), atomic="add")


def corner(x: F32, y: F32) -> None:
    pto.store(y[0:8, 0:8], pto.load(x[0:8, 0:8], 8, 8))


def left(x: F32, y: F32) -> None:
    i = pto.block_idx() * 16
    pto.store(y[i:, 0:32], pto.load(x[i:, 0:32], 16, 32))


def shared_out(x: F32, y: F32) -> None:
    """Any number of blocks."""
    for i in pto.range(pto.block_idx() * 16, x.shape[0], pto.block_num() * 16):
        pto.store(y[i:, :], pto.load(x[i:, :], 16, 64))


def in_shares(x: F32, y: F32) -> None:
    """Equal shares for any number of blocks, of which the last may have nothing left."""
    share = pto.cdiv(x.shape[0], pto.block_num())
    i = pto.block_idx() * share
    pto.store(y[i : i + share, :], pto.load(x[i : i + share, :], 16, 64))


def of_data(table: pto.Global[pto.i32], x: F32, y: F32) -> None:
    i = isa.load_scalar(table, pto.block_idx()) * 16
    pto.store(y[i:, :], pto.load(x[i:, :], 16, 64))


def from_number(start: pto.Scalar[pto.i32], x: F32, y: F32) -> None:
    i = start + pto.block_idx() * 16
    pto.store(y[i:, :], pto.load(x[i:, :], 16, 64))


def asserted(x: F32, y: F32) -> None:
    pto.assert_(pto.load(x, 16, 64) < 2.0, "large")


MEANT: dict[str, tuple[Any, int, list[Any]]] = {
    "in place": (in_place, 2, [ones(64, 64)]),
    "added to": (added, 2, [ones(64, 64), ones(64, 64)]),
    "constant slice": (corner, 1, [ones(64, 64), ones(64, 64)]),
    "columns of a constant slice": (left, 4, [ones(64, 64), ones(64, 64)]),
    "room behind all of the input": (rows, 2, [ones(32, 64), ones(64, 64)]),
    "any grid": (shared_out, 7, [ones(64, 64), ones(64, 64)]),
    "shares of any grid": (in_shares, 9, [ones(10, 64), ones(10, 64)]),
    "decided by data": (of_data, 2, [np.array([1, 2], np.int32), ones(64, 64), ones(64, 64)]),
    "decided by a number": (from_number, 2, [16, ones(64, 64), ones(64, 64)]),
    "condition of a block": (conditional, 5, [ones(48, 64), ones(48, 64)]),
    "assertions": (asserted, 1, [ones(16, 64), ones(16, 64)]),
}


@pytest.mark.parametrize("name", MEANT)
def test_what_is_meant_is_not_warned_of(name: str):
    function, blocks, args = MEANT[name]
    assert not told(lambda: pto.kernel(function)[blocks](*args))


def test_one_array_for_two_parameters_is_in_place():
    x = ones(64, 64)
    assert not told(lambda: pto.kernel(rows)[2](x, x))


def test_a_tile_that_a_loop_carries_is_written_by_its_first_iteration():
    @pto.kernel
    def later(x: F32, y: F32) -> None:
        t = pto.tile(16, 64, pto.f32)
        for i in pto.range(0, 32, 16):
            if i > 0:
                pto.store(y, t)
            isa.tload(t, x[i:, :])

    assert not told(lambda: later(ones(32, 64), ones(16, 64)))


def test_a_first_iteration_that_reads_before_it_writes_is_told():
    @pto.kernel
    def before(x: F32, y: F32) -> None:
        t = pto.tile(16, 64, pto.f32)
        for i in pto.range(0, 32, 16):
            pto.store(y, t)
            isa.tload(t, x[i:, :])

    assert told(lambda: before(ones(32, 64), ones(16, 64))) == ["V219"]


# ---- programs of text


COPY = """
module attributes {pto.target_arch = "a5"} {
  func.func @copy(%x: !pto.ptr<f32>, %y: !pto.ptr<f32>) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c4 = arith.constant 4 : index
    %c16 = arith.constant 16 : index
    %c64 = arith.constant 64 : index
    %xs = pto.make_tensor_view %x, shape = [%c16, %c64], strides = [%c64, %c1] : !pto.tensor_view<16x64xf32>
    %ys = pto.make_tensor_view %y, shape = [%c16, %c64], strides = [%c64, %c1] : !pto.tensor_view<16x64xf32>
    %b = pto.get_block_idx
    %n = arith.index_cast %b : i64 to index
    %i = arith.muli %n, %c4 : index
    %t = pto.alloc_tile : !pto.tile_buf<vec, 4x64xf32>
    %from = pto.partition_view %xs, offsets = [%i, %c0], sizes = [%c4, %c64] : !pto.tensor_view<16x64xf32> -> !pto.partition_tensor_view<4x64xf32>
    %to = pto.partition_view %ys, offsets = [%i, %c0], sizes = [%c4, %c64] : !pto.tensor_view<16x64xf32> -> !pto.partition_tensor_view<4x64xf32>
    pto.tload ins(%from : !pto.partition_tensor_view<4x64xf32>) outs(%t : !pto.tile_buf<vec, 4x64xf32>)
    pto.tstore ins(%t : !pto.tile_buf<vec, 4x64xf32>) outs(%to : !pto.partition_tensor_view<4x64xf32>)
    return
  }
}
"""  # noqa: E501


def test_a_program_of_text_is_looked_at_too():
    module = pto.parse(COPY)
    run = lambda **more: pto.launch(module, args=[ones(16, 64), ones(16, 64)], **more)  # noqa: E731
    assert not told(lambda: run(blocks=3, check=False)), "a run whose rules were checked before"
    assert not told(lambda: run(blocks=2, coverage=False))
    assert "the first is y[12, 0] [PTO-U310]" in messages(lambda: run(blocks=3))
    assert not told(lambda: run(blocks=3))
    assert not told(lambda: run(blocks=4))


def test_numbers_that_the_host_passes_decide_nothing_here():
    args = [ones(40, 64), ones(40, 64), ones(40, 64), 20]
    assert not told(lambda: pto.launch(ADD, args=args))


def test_a_warning_can_be_made_again_from_its_arguments_as_other_processes_do():
    with pytest.warns(pto.PtoWarning) as caught:
        require_legal([Diagnostic("PTO-U310", "a message", severity="warning", help="do this")])
    warning = caught[0].message
    assert isinstance(warning, pto.PtoWarning) and warning.finding is not None
    again = type(warning)(*warning.args)
    assert str(again) == str(warning) == "a message [PTO-U310]\n  help: do this"


def test_slots_of_a_queue_are_written_by_its_pushes():
    text = """
    func.func @f(%gm: !pto.ptr<f32>) attributes {pto.kernel_kind = #pto.kernel_kind<cube>} {
      %c0 = arith.constant 0 : i32
      pto.aic_initialize_pipe {id = 0, dir_mask = 1, slot_size = 1024}
        (gm_slot_buffer = %gm : !pto.ptr<f32>, c2v_consumer_buf = %c0 : i32,
         v2c_consumer_buf = %c0 : i32)
      return
    }
    """
    (function,) = pto.parse(text).functions()
    found = uses([function], {function.regions[0].block.args[0]: "gm"})
    assert found is not None and not found["gm"].is_known


@pytest.mark.parametrize(
    ("part", "whole", "shown"),
    [
        (36, 100, "36"),
        (1, 1, "100"),
        (0, 7, "0"),
        (1, 250, "0.4"),
        (523_776, 524_288, "99.9"),
        (102_398_976, 102_400_000, "99.999"),
        (1, 10**7, "0.00001"),
    ],
)
def test_a_percentage_differs_from_nothing_and_from_all(part: int, whole: int, shown: str):
    assert percent(part, whole) == shown


# ---- elements that two blocks access


def one_place(x: F32, y: F32) -> None:
    i = pto.block_idx() * 16
    pto.store(y[0:16, :], pto.load(x[i:, :], 16, 64))


def added(x: F32, y: F32) -> None:
    i = pto.block_idx() * 16
    pto.store(y[0:16, :], pto.load(y[0:16, :], 16, 64) + pto.load(x[i:, :], 16, 64))


def summed(x: F32, y: F32) -> None:
    """Atomic: the order of the blocks does not matter."""
    i = pto.block_idx() * 16
    pto.store(y[0:16, :], pto.load(x[i:, :], 16, 64), atomic="add")


def of_neighbour(x: F32, y: F32) -> None:
    """Loads a row that the next block stores."""
    i = pto.block_idx() * 16
    rest = pto.load(y[i + 1 : i + 17, :], 16, 64)
    pto.store(y[i : i + 16, :], rest + pto.load(x[i : i + 16, :], 16, 64))


def in_steps(x: F32, y: F32) -> None:
    """Even rows by even blocks, odd rows by odd ones, column by column."""
    b = pto.block_idx()
    for j in pto.range(0, 64, 32):
        pto.store(y[b % 2 :: 2, j : j + 32], pto.load(x[b % 2 :: 2, j : j + 32], 16, 32))


def half_of_the_blocks(x: F32, y: F32) -> None:
    i = pto.block_idx() * 16
    if i < 32:
        pto.store(y[i : i + 16, :], pto.load(x[i : i + 16, :], 16, 64))
    if i >= 48:
        pto.store(y[i - 48 : i - 32, 63:64], pto.load(x[i : i + 16, 0:1], 16, 1))


BASE = ones(80, 64)
CONFLICTS: dict[str, tuple[Any, int, Any, Any, str]] = {
    "one place": (one_place, 4, ones(64, 64), ones(16, 64), "blocks 0 and 1 both store y[0, 0]"),
    "one block": (one_place, 1, ones(16, 64), ones(16, 64), ""),
    "load, add, store": (added, 2, ones(32, 64), ones(16, 64), "both store y[0, 0]"),
    "atomic": (summed, 4, ones(64, 64), ones(16, 64), ""),
    "a row of the next block": (
        of_neighbour,
        3,
        ones(49, 64),
        ones(49, 64),
        "block 0 loads y[16, 0], which block 1 stores",
    ),
    "rows in steps": (in_steps, 2, ones(32, 64), ones(32, 64), ""),
    "rows in steps, twice": (in_steps, 3, ones(32, 64), ones(32, 64), "blocks 0 and 2 both store"),
    "by a condition": (
        half_of_the_blocks,
        4,
        ones(64, 64),
        ones(64, 64),
        "blocks 0 and 3 both store y[0, 63]",
    ),
    "by no other block": (half_of_the_blocks, 3, ones(64, 64), ones(64, 64), ""),
    "arrays that overlap": (
        rows,
        4,
        BASE[:64],
        BASE[16:],
        "overlap in memory: block 0 stores y[0, 0], which block 1 loads by x",
    ),
    "the other way": (
        rows,
        4,
        BASE[16:],
        BASE[:64],
        "block 1 stores y[16, 0], which block 0 loads",
    ),
    "neighbours in memory": (rows, 2, BASE[:32], BASE[32:64], ""),
    "in place": (rows, 4, BASE[:64], BASE[:64], ""),
}


@pytest.mark.parametrize("name", CONFLICTS)
def test_an_element_that_two_blocks_access_is_named(name: str):
    function, blocks, x, y, wanted = CONFLICTS[name]
    kernel = pto.kernel(function)
    said = messages(lambda: kernel[blocks](x, y))
    assert ("PTO-U314" in said) == bool(wanted) and wanted in said
    races = {d.code for d in kernel[blocks].sanitize(x.copy(), y.copy())} if x.base is None else ()
    assert x.base is not None or any(code > "PTO-R020" for code in races) == bool(wanted)


def test_blocks_that_wait_for_each_other_have_an_order():
    def k(x: F32, y: F32) -> None:
        i = pto.block_idx() * 16
        pto.store(y[i : i + 16, :], pto.load(x[i : i + 16, :], 16, 64))
        isa.syncall()
        pto.store(y[0:16, :], pto.load(y[32:48, :], 16, 64))

    assert "U314" not in messages(lambda: pto.kernel(k)[4](ones(64, 64), ones(64, 64)))


def test_the_check_of_conflicts_can_be_left_out(monkeypatch: pytest.MonkeyPatch):
    kernel = pto.kernel(one_place)
    assert messages(lambda: kernel[4](ones(64, 64), ones(16, 64), coverage=False)) == ""
    monkeypatch.setenv("PTO_COVERAGE", "0")
    assert messages(lambda: pto.kernel(one_place)[4](ones(64, 64), ones(16, 64))) == ""
