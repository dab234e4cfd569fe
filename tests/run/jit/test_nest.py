"""Nests by themselves: how they are joined, and how they are written down. No LLVM is compiled."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pto.core import dtypes
from pto.core.layout import REST, Mode
from pto.core.memory import Space
from pto.isa.meaning import lanes as definitions
from pto.isa.meaning import mathlib
from pto.isa.meaning.kinds import Fold
from pto.run.jit.ir.expr import read, trace
from pto.run.jit.ir.kinds import F32
from pto.run.jit.ir.nest import MOST, Nest, Step, written
from pto.run.jit.ir.strided import Access, Strided, axis, row_major
from pto.run.jit.llvm.text import Text
from pto.run.jit.llvm.value import TRUE, Condition
from pto.run.jit.runtime.values import SPACE_NUMBERS

ROWS, COLS = 8, 32
BYTES = ROWS * COLS * 4
UB = SPACE_NUMBERS[Space.UB]


def tile(address: int, private: int = 0) -> Access:
    """All elements of an 8 x 32 tile of f32."""
    return Access(row_major(dtypes.F32, COLS), f"%t{address}", UB, address, BYTES, private)


def column(address: int) -> Access:
    """One value for each row."""
    layout = Strided(dtypes.F32, axis(1), axis(0))
    return Access(layout, f"%t{address}", UB, address, ROWS * 4)


def view(pointer: str) -> Access:
    return Access(row_major(dtypes.F32, COLS), pointer)


def added(dst: Access, a: Access, b: Access) -> Nest:
    expr = trace(definitions.add, [F32, F32], dtypes.F32)
    return Nest(ROWS, COLS, (Step(dst, ((a, F32), (b, F32)), expr),))


def summed(dst: Access, src: Access) -> Nest:
    fold = Fold(definitions.add, "row"), F32
    return Nest(ROWS, COLS, (Step(dst, ((src, F32),), fold=fold),))


def test_steps_on_the_same_or_other_elements_are_joined() -> None:
    first = added(tile(0), tile(BYTES), tile(2 * BYTES))
    found = first.joined(Text(), added(tile(BYTES), tile(0), tile(0)))
    assert found is not None and len(found.steps) == 2 and found.guard.is_true


@pytest.mark.parametrize("begin", [4, BYTES - 4])
def test_steps_on_a_part_of_the_elements_are_not_joined(begin: int) -> None:
    """A row of one would be read before the other has written all of it."""
    first = added(tile(2 * BYTES), tile(4 * BYTES), tile(4 * BYTES))
    other = tile(2 * BYTES + begin)
    assert first.joined(Text(), added(tile(0), other, other)) is None
    assert first.joined(Text(), added(other, tile(0), tile(0))) is None
    assert first.joined(Text(), added(tile(0), tile(3 * BYTES), tile(3 * BYTES))) is not None


def test_a_step_that_overlaps_itself_is_not_joined() -> None:
    empty = Nest(ROWS, COLS, ())
    assert empty.joined(Text(), added(tile(0), tile(4), tile(4))) is None


def test_views_are_compared_when_the_code_runs() -> None:
    first = added(view("%x"), tile(0), tile(0))
    found = first.joined(Text(lambda line: None), added(tile(BYTES), view("%y"), tile(0)))
    assert found is not None and not found.guard.is_known


def test_a_group_has_an_end() -> None:
    found: Nest | None = Nest(ROWS, COLS, ())
    for _ in range(MOST):
        assert found is not None
        found = found.joined(Text(), added(tile(0), tile(0), tile(0)))
    assert found is not None
    assert found.joined(Text(), added(tile(0), tile(0), tile(0))) is None


def test_values_of_rows_join_as_a_column() -> None:
    root = trace(mathlib.sqrt, [F32], dtypes.F32)
    line = Access(row_major(dtypes.F32, ROWS), "%s", UB, 4096, ROWS * 4)
    values = Nest(1, ROWS, (Step(line, ((line, F32),), root),))
    found = summed(column(4096), tile(0)).joined(Text(), values)
    assert found is not None
    assert [step.dst.shape for step in found.steps] == ["column", "column"]
    assert added(tile(0), tile(0), tile(0)).joined(Text(), summed(column(4096), tile(0)))


@pytest.mark.parametrize("size", [(1, ROWS), (ROWS, 1)])
def test_only_values_that_follow_each_other_join_as_a_column(size: tuple[int, int]) -> None:
    """Not values that are a row apart, nor folds, which would fold a whole row."""
    root, pitch = trace(mathlib.sqrt, [F32], dtypes.F32), size[1]
    near = Access(row_major(dtypes.F32, pitch), "%s", UB, 4096, ROWS * 4)
    strided = Strided(dtypes.F32, axis(COLS), axis(COLS))
    far = Access(strided, "%s", UB, 8192, BYTES)
    assert Nest(*size, (Step(near, ((near, F32),), root),)).as_values(ROWS)
    assert not Nest(*size, (Step(near, ((far, F32),), root),)).as_values(ROWS)
    assert not Nest(*size, (Step(far, ((near, F32),), root),)).as_values(ROWS)
    assert not Nest(*size, summed(near, near).steps).as_values(ROWS)
    assert not Nest(*size, (Step(near, ((near, F32),), root),)).as_values(ROWS + 1)


def test_rows_that_follow_each_other_are_one() -> None:
    assert added(tile(0), tile(BYTES), tile(BYTES)).flat
    assert not summed(column(4096), tile(0)).flat
    assert added(tile(0), tile(BYTES), tile(BYTES)).swapped.size == (COLS, ROWS)


def test_equal_nests_are_equal_keys() -> None:
    first, again = (added(tile(0), tile(BYTES), tile(BYTES)) for _ in range(2))
    assert first == again and hash(first) == hash(again)
    assert first != added(tile(0), tile(BYTES), tile(0))


def test_a_nest_as_text() -> None:
    """A loop that adds a view, the values of its rows, and a copy into boxes of 16 columns."""
    boxes = Strided(dtypes.F32, axis(16), (Mode(16, 1), Mode(REST, 128)))
    copy = Step(Access(boxes, "%b", UB, 64, BYTES), ((tile(0, private=2), F32),), read(0, F32))
    steps = (
        *added(tile(0, private=2), view("%x"), tile(4096)).steps,
        *summed(column(8192), tile(0, private=2)).steps,
        copy,
    )
    assert written(Nest(ROWS, COLS, steps)) == [
        "for i < 8, j < 32:",
        "  own2[32 i + j] = add(gm%x[32 i + j], ub+0x1000[32 i + j])",
        "  ub+0x2000[i] = fold of add over j in float32: own2[32 i + j]",
        "  ub+0x40[16 i + (j % 16) + 128 (j / 16)] = own2[32 i + j]",
    ]


def test_a_condition_of_either_nest_is_one_of_both() -> None:
    x = Text()
    first, other = added(tile(0), tile(BYTES), tile(BYTES)), added(tile(BYTES), tile(0), tile(0))
    for guarded in (
        first.joined(x, replace(other, guard=Condition(x, "%plain"))),
        replace(first, guard=Condition(x, "%plain")).joined(x, other),
    ):
        assert guarded is not None and guarded.guard.name == "%plain"


def test_a_row_is_read_at_its_source_unless_a_store_may_reach_it() -> None:
    """A row of a view instead of private tile 1."""
    x, row = Text(), view("%row")
    local = added(tile(0), tile(BYTES, private=1), tile(BYTES, private=1))
    found = local.reading(x, 1, row, TRUE)
    assert found.steps[0].reads == [row, row] and found.guard.is_true and not x.lines
    stored = added(view("%out"), tile(BYTES, private=1), tile(BYTES, private=1))
    found = stored.reading(x, 1, row, TRUE)
    assert found.steps[0].dst == view("%out") and found.steps[0].reads == [row, row]
    assert not found.guard.is_known
    assert local.reading(x, 1, row, Condition(x, "%inside")).guard.name == "%inside"


def test_bytes_that_a_nest_leaves_alone() -> None:
    """What is loaded before a nest may not be stored by it, nor lie where it works."""
    nest = added(tile(BYTES), tile(3 * BYTES), tile(3 * BYTES))
    assert nest.leaves_alone(UB, 0, BYTES) and nest.leaves_alone(UB, 2 * BYTES, BYTES)
    assert not nest.leaves_alone(UB, 0, BYTES + 1)
    assert not nest.leaves_alone(UB, 3 * BYTES, 4)
    assert not nest.leaves_alone(UB, 2 * BYTES - 1, 1)
    assert nest.leaves_alone(UB + 1, BYTES, BYTES)
    assert not added(view("%out"), tile(0), tile(0)).leaves_alone(UB, 8 * BYTES, BYTES)


def test_a_tile_is_plain_if_all_its_accesses_are_one() -> None:
    whole, values = tile(0, private=1), column(0)._replace(private=1)
    nest = added(tile(BYTES), whole, whole)
    assert nest.is_plain(1) and nest.is_plain(2)
    assert not added(tile(BYTES), whole, values).is_plain(1)


def test_a_step_that_writes_what_an_earlier_one_reads_is_checked() -> None:
    """Views may overlap: stores against earlier loads, loads and stores against earlier stores."""
    for first, other in (
        (added(tile(0), view("%a"), view("%a")), added(view("%b"), tile(0), tile(0))),
        (added(view("%a"), tile(0), tile(0)), added(tile(0), view("%b"), view("%b"))),
        (added(view("%a"), tile(0), tile(0)), added(view("%b"), tile(0), tile(0))),
    ):
        found = first.joined(Text(), other)
        assert found is not None and not found.guard.is_known
    loads = added(tile(0), view("%a"), view("%a"))
    found = loads.joined(Text(), added(tile(BYTES), view("%b"), view("%b")))
    assert found is not None and found.guard.is_true
