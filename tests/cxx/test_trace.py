"""Transfers of C++ blocks that follow from those of a recorded block."""

from __future__ import annotations

import numpy as np
import pytest

from pto.cxx.trace import BlockTraces, Untraceable, Words
from pto.ir.graph import Operation
from pto.isa.cost.work import GlobalRegion, TransferWork
from pto.observe.timing.stream import RecordStream, TimedJob, Track

X, Y = 1 << 41, 1 << 42  # addresses of two arrays
ARRAYS = [(X, 1 << 20), (Y, 1 << 20)]
OP = Operation("copy")


def words_of(block: int, length: int = 7) -> list[Words]:
    """A load and a store, as records with an address each."""
    return [np.array([1, 2, X + 64 * block, length, 3, 4, Y + 32 * block, length], np.int64)]


def stream_of(block: int, offset: int = 0) -> RecordStream:
    works = (
        GlobalRegion(X + 64 * block + offset, 1, 64, 64, writes=False),
        GlobalRegion(Y + 32 * block, 1, 32, 32, writes=True),
    )
    jobs = [
        TimedJob(OP, (), TransferWork("gm>ub", region.nbytes, 1, region), 0) for region in works
    ]
    return RecordStream(jobs=jobs, pipes=[Track(0, "MTE2")], sides=["vector"])


class Recorder:
    """Records blocks, and counts how many."""

    def __init__(self, odd: int | None = None) -> None:
        self.numbers: list[int] = []
        self._odd = odd

    def __call__(self, block: int) -> RecordStream:
        self.numbers.append(block)
        return stream_of(block, offset=4 if block == self._odd else 0)


def addresses(traces: BlockTraces, block: int) -> list[int]:
    return [region.address for region in traces.regions(block)]


def test_equal_blocks_are_recorded_once_and_one_more_is_compared() -> None:
    record = Recorder()
    traces = BlockTraces(words_of, record, ARRAYS)
    for block in range(1, 9):
        assert addresses(traces, block) == [X + 64 * block, Y + 32 * block]
    assert record.numbers == [0, 1]


def test_an_address_inside_a_tensor_follows_the_word_below_it() -> None:
    def record(block: int) -> RecordStream:
        stream = stream_of(block)
        job = stream.jobs[0]
        assert isinstance(job.work, TransferWork) and job.work.region is not None
        inside = job.work.region._replace(address=job.work.region.address + 256)
        stream.jobs[0] = job._replace(work=job.work._replace(region=inside))
        return stream

    traces = BlockTraces(words_of, record, ARRAYS)
    assert [addresses(traces, n)[0] for n in (1, 2, 3)] == [X + 256 + 64 * n for n in (1, 2, 3)]


def test_a_block_with_other_numbers_is_another_kind() -> None:
    record = Recorder()
    traces = BlockTraces(lambda n: words_of(n, 7 if n < 4 else 9), record, ARRAYS)
    for block in range(1, 8):
        assert addresses(traces, block) == [X + 64 * block, Y + 32 * block]
    assert record.numbers == [0, 1, 4, 5]


def test_a_block_whose_transfers_do_not_follow_ends_it() -> None:
    """The second block of the kind does not start where the words say: all are recorded."""
    record = Recorder(odd=1)
    traces = BlockTraces(words_of, record, ARRAYS)
    assert addresses(traces, 1) == [X + 64 + 4, Y + 32]
    assert addresses(traces, 2) == [X + 128, Y + 64]
    assert record.numbers == [0, 1, 2]


def test_a_block_that_asks_the_simulator_is_recorded() -> None:
    def asks(block: int) -> list[Words]:
        raise Untraceable

    record = Recorder()
    traces = BlockTraces(asks, record, ARRAYS)
    assert addresses(traces, 3) == [X + 192, Y + 96]
    assert record.numbers == [3]


@pytest.mark.parametrize("far", [5, 1 << 43])
def test_words_that_are_no_global_addresses_must_be_equal(far: int) -> None:
    record = Recorder()

    def words(block: int) -> list[Words]:
        found = words_of(block)
        found[0][1] = far + block
        return found

    traces = BlockTraces(words, record, ARRAYS)
    for block in range(1, 4):
        traces.regions(block)
    assert record.numbers == [0, 1, 2, 3]
