"""Whether one run stands for all: control flow and addresses that depend on the text alone."""

from __future__ import annotations

import pytest

from pto.ir.text.parser import parse
from pto.prove.closed import takes_one_way

F, S, U = (f"!pto.tile_buf<vec, 1x{n}x{e}>" for n, e in ((64, "f32"), (64, "i32"), (64, "ui32")))
WIDE = "!pto.tile_buf<vec, 1x128xf32>"


def one_way(*lines: str) -> bool:
    tiles = {"f": F, "i": S, "u": U, "d": F, "w": WIDE}
    made = [f"%{name} = pto.alloc_tile : {type}" for name, type in tiles.items()]
    body = "\n".join([*made, *lines, "return"])
    head = 'module attributes {pto.target_arch = "a5"} { func.func @k(%n: index) {'
    return takes_one_way(list(parse(f"{head}\n{body}\n}} }}").functions()))


@pytest.mark.parametrize(
    ("line", "closed"),
    [
        (f"pto.tadd ins(%f, %f : {F}, {F}) outs(%d : {F})", True),
        (f"pto.tsort32 ins(%f, %u : {F}, {U}) outs(%w : {WIDE})", True),  # the indices are data
        (f"pto.tgather ins(%f, %i, %i : {F}, {S}, {S}) outs(%d : {F})", False),
        (f"pto.tscatter ins(%f, %i : {F}, {S}) outs(%d : {F})", False),
    ],
)
def test_indices_that_choose_places_are_input(line: str, closed: bool) -> None:
    assert one_way(line) is closed


def test_an_argument_that_bounds_a_loop_is_input() -> None:
    loop = "%c0 = arith.constant 0 : index\n%c1 = arith.constant 1 : index\nscf.for %k = %c0 to {} "
    loop += "step %c1 { }"
    assert one_way(loop.replace("{}", "%c1"))
    assert not one_way(loop.replace("{}", "%n"))
