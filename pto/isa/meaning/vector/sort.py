"""Sorting, merging and transposing in UB. A record is 8 bytes: a score, then a 32-bit index.

The order is descending and stable; NaN follows every number.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pto.core.dtypes import U32, U64, DType
from pto.core.errors import fail
from pto.core.pointer import Pointer
from pto.core.tile import Role, Tile, TileType
from pto.isa.meaning.kinds import Do
from pto.isa.meaning.lanes import Lanes
from pto.isa.meaning.memory.registers import VMS4_SR
from pto.isa.meaning.tile.merge import RECORD, WAYS, descending, sort_key
from pto.isa.meaning.tile.mover import Mover
from pto.isa.meaning.tile.sort import BLOCK, sort_records
from pto.isa.meaning.vector.ub import Items, dtype_of, element_alignment
from pto.isa.rules.rule import Case

GROUP = BLOCK  # number of records that vbitsort sorts together
_MOST_REPEATS = 255
_SIDE = 16  # of the block that vtranspose transposes, the only size of this vector instruction


class PointerMoves(Mover):
    """The words of a mover, and words about elements at pointers."""

    __slots__ = ()

    def rows_at(self, pointer: Pointer, kind: DType, rows: int, cols: int, align: int) -> Tile:
        """Contiguous rows of elements; unless there are none, they lie inside the memory."""
        if rows:
            pointer.memory.check(pointer.address, rows * cols * kind.itemsize, align)
        type = TileType.of(Role.VEC, kind, max(rows, 1), cols)
        return Tile(type, pointer.memory, pointer.address if rows else 0, (rows, cols), pitch=cols)

    def merge(
        self, lists: Sequence[Tile], lengths: Sequence[int], to: Pointer, how: Merge
    ) -> list[int]:
        """Merge descending lists of records, `how.repeats` times; returns how many records of each
        list the last repetition took. Lists and results of one repetition follow the last."""
        total, done = sum(lengths), list[tuple[Items, Items]]()
        for k in range(how.repeats):
            parts = [each.items[k * total :][:n] for each, n in zip(lists, lengths, strict=True)]
            done.append(_merged(parts, how))
        for k, (records, _) in enumerate(done):
            nbytes = records.size * RECORD
            to.memory.check(to.address, 0, how.align)
            view = to.memory.view(to.address + k * total * RECORD, nbytes)
            view.view(records.dtype)[:] = records
        return np.bincount(done[-1][1], minlength=WAYS).tolist() if done else [0] * WAYS


class Merge:
    """How lists are merged."""

    def __init__(self, kind: DType, align: int, repeats: Any, stops: Any) -> None:
        self.kind, self.align = kind, align
        self.repeats = repeats
        self.stops = stops  # at the end of the first list that is exhausted

    def score(self, record: Lanes) -> Lanes:
        return record.astype(np.dtype(f"u{self.kind.itemsize}")).view(self.kind.numpy)


def _merged(lists: list[Items], how: Merge) -> tuple[Items, Items]:
    """The records of one repetition, and the list of each."""
    records = np.concatenate(lists)
    owner = np.repeat(np.arange(WAYS), [each.size for each in lists])
    for n, each in enumerate(lists):
        _check_descending(n, how.score(each))
    order = descending(how.score(records))
    if how.stops and order.size:
        lasts = [np.flatnonzero(owner[order] == n)[-1] for n, each in enumerate(lists) if each.size]
        order = order[: min(lasts) + 1]
    return records[order], owner[order]


def _check_descending(n: int, scores: Items) -> None:
    rises = np.flatnonzero(scores[:-1] < scores[1:])
    if rises.size:
        at = int(rises[0])
        raise fail(
            "PTO-M145",
            f"'pto.vmrgsort4' op needs descending lists: list {n} has "
            f"{scores[at + 1]} at record {at + 1}, after {scores[at]}",
            help="sort each list first, with pto.vbitsort",
        )


def _vbitsort(case: Case) -> Callable[..., None]:
    """An f16 score is in the low half of its word; the high half is 0."""
    kind = dtype_of(case, "source")

    def sort(x: PointerMoves, to: Any, source: Any, indices: Any, repeat: Any) -> None:
        times = x.number(repeat)
        x.require(
            (times >= 0) & (times <= _MOST_REPEATS),
            lambda: fail(
                "PTO-S140", f"'pto.vbitsort' op repeats 0 to {_MOST_REPEATS} times, not {times}"
            ),
        )
        size = kind.itemsize
        scores = x.rows_at(source, kind, times, GROUP, element_alignment(case, size))
        numbers = x.rows_at(indices, U32, times, GROUP, element_alignment(case, 4))
        records = x.rows_at(to, U64, times, GROUP, element_alignment(case, 4))

        x.when(times > 0, lambda: sort_records(x, times, GROUP, scores, numbers, records))

    return sort


def _vmrgsort4(case: Case) -> Callable[..., None]:
    kind, align = dtype_of(case, "destination"), element_alignment(case, RECORD)

    def merge(x: PointerMoves, to: Any, *rest: Any) -> None:
        *sources, words, word = rest
        count, config = x.number(words), x.number(word)
        valid = config >> 8 & 0xF
        x.require(
            (valid == 0b0011) | (valid == 0b0111) | (valid == 0b1111),
            lambda: fail(
                "PTO-S140",
                f"'pto.vmrgsort4' op merges lists 0..1, 0..2 or 0..3; bits 11..8 of its config "
                f"{config & 0x1FFF:#x} name {valid:#06b}",
            ),
        )
        lengths = [(valid >> n & 1) * (count >> 16 * n & 0xFFFF) for n in range(WAYS)]
        total = sum(lengths[1:], lengths[0])
        repeats = x.choose(total > 0, lambda: config & 0xFF, 0)
        lists: list[Tile] = []
        for source, length in zip(sources, lengths, strict=True):
            some = (length > 0) & (repeats > 0)
            records = x.choose(some, lambda n=length: (repeats - 1) * total + n, 0)
            lists.append(x.rows_at(source, U64, records, 1, align))
        taken = x.merge(lists, lengths, to, Merge(kind, align, repeats, config >> 12 & 1))
        x.put(VMS4_SR, taken[0] | taken[1] << 16 | taken[2] << 32 | taken[3] << 48)

    return merge


def _taken(x: PointerMoves) -> tuple[int, ...]:
    """The fields as i16 numbers."""
    fields = (x.get(VMS4_SR) >> 16 * n & 0xFFFF for n in range(WAYS))
    return tuple((field + (1 << 15) & 0xFFFF) - (1 << 15) for field in fields)


def _require_plain(x: PointerMoves, config: Any, plain: str) -> None:
    """Require that the configuration is 0, the plain form."""
    word = x.number(config)
    x.require(
        word == 0,
        lambda: fail(
            "PTO-X140",
            f"'{x.case.row.name}' op: the fields of its config word are not defined by the ISA, "
            f"got {word:#x}",
            help=f"0 is read as the plain form: {plain}",
        ),
    )


def _vsort32(case: Case) -> Callable[..., None]:
    kind = dtype_of(case, "source")
    align = element_alignment(case, kind.itemsize)

    def sort(x: PointerMoves, to: Any, source: Any, config: Any) -> None:
        _require_plain(x, config, "32 elements, descending")
        values, sorted_values = (x.rows_at(p, kind, 1, GROUP, align) for p in (source, to))

        def key(j: Lanes) -> Lanes:
            return sort_key(x.read(values, 0, j))

        def cell(i: Lanes, j: Lanes) -> tuple[Any, Lanes, None]:
            def count(k: Lanes, ahead: Lanes) -> tuple[Lanes]:
                first = (key(k) > key(j)) | (key(k) == key(j)) & (k < j)
                return (ahead + first.astype(np.int64),)

            (rank,) = x.fold(GROUP, [np.int64(0)], count)
            return (0, x.index(rank)), x.read(values, i, j), None

        x.place(1, GROUP, cell, sorted_values)

    return sort


def _vtranspose(case: Case) -> Callable[..., None]:
    kind = dtype_of(case, "source")
    align = element_alignment(case, kind.itemsize)

    def transpose(x: PointerMoves, to: Any, source: Any, config: Any) -> None:
        _require_plain(x, config, "one block of 16x16 elements")
        block, turned = (x.rows_at(p, kind, _SIDE, _SIDE, align) for p in (source, to))
        x.copy(block, (0, 0), turned, (0, 0), (_SIDE, _SIDE), turned=True)

    return transpose


VBITSORT = Do(_vbitsort, words=PointerMoves)
VMRGSORT4 = Do(_vmrgsort4, words=PointerMoves)
GET_VMS4_SR = Do(lambda case: _taken, words=PointerMoves)
VSORT32 = Do(_vsort32, words=PointerMoves)
VTRANSPOSE = Do(_vtranspose, words=PointerMoves)
