"""TFREE of a5 signals by the number of pops, so that each tile is freed before the next pop:
pto-isa include/pto/npu/a5/TFree.hpp, `shouldNotifyFree(pipe.cons.tileIndex - 1)`."""

from __future__ import annotations

import pytest

from pto.ir.text.parser import parse
from pto.verify import judge

TILE = "!pto.tile_buf<vec, 16x64xf32>"


def _pop(name: str, id: int = 0) -> str:
    return f"%{name} = pto.tpop_from_aic {{id = {id}, split = 1}} -> {TILE}"


def _free(id: int = 0) -> str:
    return f"pto.tfree_from_aic {{id = {id}, split = 1}}"


def _warned(*lines: str, slots: int = 8, profile: str = "a5") -> list[int]:
    """The numbers of the lines with a pop that comes too early."""
    queues = [
        f"""%b{id} = pto.reserve_buffer {{name = "q{id}", size = 65536,
            location = #pto.address_space<vec>, auto = false, base = {id * 65536}}} -> i32
        pto.aiv_initialize_pipe {{id = {id}, dir_mask = 1, slot_size = 8192, slot_num = {slots}}}
            (c2v_consumer_buf = %b{id} : i32)"""
        for id in (0, 1)
    ]
    head = "\n".join(
        [
            f'module attributes {{pto.target_arch = "{profile}"}} {{',
            "func.func @k(%on: i1) attributes {pto.kernel_kind = #pto.kernel_kind<vector>} {",
            "%c0 = arith.constant 0 : index",
            "%c1 = arith.constant 1 : index",
            "%c4 = arith.constant 4 : index",
            *queues,
        ]
    )
    text = "\n".join([head, *lines, "return", "}", "}"])
    first = head.count("\n") + 2
    _, findings = judge(parse(text))
    return [
        d.loc.line - first
        for d in findings
        if d.code == "PTO-L066" and "before the last one is freed" in d.message and d.loc
    ]


IN_TURN = [_pop("a"), _free(), _pop("b"), _free()]
HELD = [_pop("a"), _pop("b"), _free(), _free()]
LOOP = "scf.for %i = %c0 to %c4 step %c1 {"
CASES = {
    "in turn": (IN_TURN, []),
    "two at once": (HELD, [1]),
    "three at once": ([_pop("a"), _pop("b"), _pop("c"), _free(), _free(), _free()], [1, 2]),
    "of two queues": ([_pop("a"), _pop("b", 1), _free(), _free(1)], []),
    "a loop of pops and frees": ([LOOP, _pop("a"), _free(), "}"], []),
    "one ahead in a loop": ([_pop("a"), LOOP, _pop("b"), _free(), "}", _free()], [2]),
    "freed in the next turn": ([LOOP, _pop("a"), "}", _free()], [1]),
    "in both branches": (
        ["scf.if %on {", _pop("a"), "} else {", _pop("b"), "}", _free()],
        [],
    ),
    "behind a branch": (["scf.if %on {", _pop("a"), "}", _pop("b"), _free(), _free()], [3]),
}


@pytest.mark.parametrize("name", CASES)
def test_a_pop_before_the_last_tile_is_freed_is_a_warning(name: str) -> None:
    lines, expected = CASES[name]
    assert _warned(*lines) == expected


def test_slots_that_are_freed_one_by_one_may_be_held() -> None:
    """With one slot each free signals."""
    assert _warned(*HELD, slots=1) == []
    assert _warned(*HELD, slots=2) == [1]


def test_a2a3_copies_slots_and_frees_them_itself() -> None:
    assert _warned(*HELD, profile="a2a3") == []
