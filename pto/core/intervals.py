"""Stretches of bytes as arrays of (start, end): sorted, none touching the next."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import numpy.typing as npt

Intervals = npt.NDArray[np.int64]  # n x 2
Bytes = npt.NDArray[np.uint8]

NOTHING: Intervals = np.empty((0, 2), np.int64)
EVERYTHING: Intervals = np.array([[0, 1 << 62]], np.int64)


def merged(pieces: Sequence[Intervals]) -> Intervals:
    """All of them as one: overlaps and neighbours joined."""
    all_pieces = np.concatenate([NOTHING, *pieces])
    all_pieces = all_pieces[all_pieces[:, 1] > all_pieces[:, 0]]
    if len(all_pieces) < 2:
        return all_pieces
    all_pieces = all_pieces[np.argsort(all_pieces[:, 0], kind="stable")]
    farthest = np.maximum.accumulate(all_pieces[:, 1])
    first = np.flatnonzero(np.concatenate([[True], all_pieces[1:, 0] > farthest[:-1]]))
    last = np.concatenate([first[1:], [len(all_pieces)]]) - 1
    return np.stack([all_pieces[first, 0], farthest[last]], axis=1)


def meet(a: Intervals, b: Intervals) -> bool:
    """Whether they have a byte in common."""
    if not len(a) or not len(b):
        return False
    follower = np.searchsorted(b[:, 1], a[:, 0], side="right")
    near = follower < len(b)
    return bool((b[follower[near], 0] < a[near, 1]).any())


def common(a: Intervals, b: Intervals) -> Intervals:
    """The bytes in both."""
    first = np.searchsorted(b[:, 1], a[:, 0], side="right")
    last = np.searchsorted(b[:, 0], a[:, 1], side="left")
    counts = np.maximum(last - first, 0)
    mine = np.repeat(np.arange(len(a)), counts)
    offsets = np.arange(len(mine)) - np.repeat(np.cumsum(counts) - counts, counts)
    theirs = np.repeat(first, counts) + offsets
    low, high = np.maximum(a[mine, 0], b[theirs, 0]), np.minimum(a[mine, 1], b[theirs, 1])
    return np.stack([low, high], axis=1)


def without(a: Intervals, b: Intervals) -> Intervals:
    """The bytes of `a` that are not in `b`."""
    lows, highs = np.concatenate([[-1], b[:, 1]]), np.concatenate([b[:, 0], [1 << 62]])
    return common(a, np.stack([lows, highs], axis=1))


def length(pieces: Intervals) -> int:
    return int((pieces[:, 1] - pieces[:, 0]).sum())


def within(pieces: Intervals, start: int, end: int) -> Intervals:
    """The part between two addresses, counted from the first."""
    low, high = np.searchsorted(pieces[:, 1], start, "right"), np.searchsorted(pieces[:, 0], end)
    return np.clip(pieces[low:high], start, end) - start


def gather(data: Bytes, pieces: Intervals) -> Bytes:
    """The bytes of all stretches, one after the other."""
    out = np.empty(length(pieces), np.uint8)
    for (start, end), (low, high) in _pairs(pieces):
        out[low:high] = data[start:end]
    return out


def scatter(data: Bytes, pieces: Intervals, values: Bytes) -> None:
    """The reverse."""
    for (start, end), (low, high) in _pairs(pieces):
        data[start:end] = values[low:high]


def _pairs(pieces: Intervals) -> Iterator[tuple[tuple[int, int], tuple[int, int]]]:
    at = 0
    for start, end in pieces.tolist():
        yield (start, end), (at, at + end - start)
        at += end - start


def stretches(spans: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Ranges of addresses with those that overlap joined, in order, without empty ones."""
    out: list[tuple[int, int]] = []
    for low, high in sorted(spans):
        if out and low < out[-1][1]:
            out[-1] = out[-1][0], max(high, out[-1][1])
        elif high > low:
            out.append((low, high))
    return out
