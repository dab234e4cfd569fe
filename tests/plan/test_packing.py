"""Packing as numbers: what must hold for any intervals, and cases with a known best answer."""

from hypothesis import given
from hypothesis import strategies as st

from pto.plan.packing import Item, curve, fullest, most_alive, pack

NO_LIMIT = 1 << 40


@st.composite
def items(draw: st.DrawFn, *, fixed: bool = False, size: int | None = None) -> Item:
    first = draw(st.integers(0, 40))
    last = first + draw(st.integers(0, 15))
    bytes = draw(st.integers(1, 300)) if size is None else size
    return Item(first, last, bytes, draw(st.integers(0, 500)) if fixed else -1)


def meet(a: Item, b: Item) -> bool:
    return a.first <= b.last and b.first <= a.last


@given(st.lists(items(), max_size=30), st.lists(items(fixed=True), max_size=5))
def test_what_is_alive_together_lies_apart(free: list[Item], fixed: list[Item]):
    packing = pack(free, fixed, 32, NO_LIMIT)
    placed = [Item(i.first, i.last, i.size, s) for i, s in zip(free, packing.starts, strict=True)]
    assert all(p.start >= 0 and p.start % 32 == 0 for p in placed)
    assert packing.high == max((p.end for p in placed), default=0)
    for n, a in enumerate(placed):
        for b in [*placed[:n], *fixed]:
            assert not meet(a, b) or a.end <= b.start or b.end <= a.start


@given(st.lists(items(size=64), max_size=40))
def test_equal_sizes_are_packed_as_low_as_possible(free: list[Item]):
    # Intervals need as many colours as meet at one point, and no more.
    busiest = max((sum(i.first <= t <= i.last for i in free) for t in range(60)), default=0)
    assert pack(free, [], 32, NO_LIMIT).high == 64 * busiest


@given(st.lists(items(), max_size=30))
def test_no_packing_beats_the_fullest_position(free: list[Item]):
    rounded = [Item(i.first, i.last, -(-i.size // 32) * 32) for i in free]
    busiest = max(
        (sum(i.size for i in rounded if i.first <= t <= i.last) for t in range(60)), default=0
    )
    assert most_alive(free, 32) == busiest
    assert pack(rounded, [], 32, NO_LIMIT).high >= busiest


@given(st.lists(items(), min_size=1, max_size=12), st.lists(items(fixed=True), max_size=4))
def test_the_fullest_position_counts_shared_bytes_once(free: list[Item], fixed: list[Item]):
    def taken(t: int) -> int:
        kept = {b for i in fixed if i.first <= t <= i.last for b in range(i.start, i.end)}
        return len(kept) + sum(-(-i.size // 32) * 32 for i in free if i.first <= t <= i.last)

    position, bytes = fullest(free, fixed, 32)
    assert taken(position) == bytes == max(map(taken, range(60)))


def test_the_curve_of_two_overlapping_items():
    assert curve([Item(1, 2, 32), Item(2, 3, 60)], 32).tolist() == [0, 32, 96, 64, 0]


def test_a_hole_between_fixed_items_is_used():
    fixed = [Item(0, 9, 64, 0), Item(0, 9, 64, 128)]
    assert pack([Item(2, 3, 64)], fixed, 32, NO_LIMIT).starts == (64,)
    assert pack([Item(2, 3, 65)], fixed, 32, NO_LIMIT).starts == (192,)


def test_a_large_item_that_comes_late_still_fits():
    # In program order 100 and 300 leave no 300 free below 600; by size they do.
    free = [Item(0, 1, 96), Item(0, 4, 192), Item(2, 5, 288)]
    assert pack(free, [], 32, 480).high == 480


def test_nothing_to_pack():
    assert pack([], [], 32, 0).high == 0
    assert fullest([], [], 32) == (0, 0)
