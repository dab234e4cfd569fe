"""Sorting, merging and transposing in UB. A record is 8 bytes: a score, then a 32-bit index.

The order is descending and stable; NaN follows every number.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from pto.core.errors import fail
from pto.core.pointer import Pointer
from pto.isa.meaning.kinds import Do, do
from pto.isa.meaning.machine import Machine
from pto.isa.meaning.memory.registers import VMS4_SR, get, put
from pto.isa.meaning.tile.merge import RECORD, descending
from pto.isa.meaning.tile.sort import BLOCK
from pto.isa.meaning.vector.ub import Items, dtype_of, element_alignment
from pto.isa.rules.rule import Case

GROUP = BLOCK  # number of records that vbitsort sorts together
_MOST_REPEATS = 255


def _view(case: Case, pointer: Pointer, dtype: np.dtype[Any], count: int) -> Items:
    align = element_alignment(case, dtype.itemsize)
    return pointer.memory.view(pointer.address, count * dtype.itemsize, align).view(dtype)


def _vbitsort(case: Case) -> Callable[..., None]:
    """An f16 score is in the low half of its word; the high half is 0."""
    kind, word = dtype_of(case, "source"), np.dtype(np.uint32)

    def sort(core: Machine, to: Pointer, source: Pointer, indices: Pointer, repeat: int) -> None:
        if not 0 <= repeat <= _MOST_REPEATS:
            raise fail(
                "PTO-S140", f"'pto.vbitsort' op repeats 0 to {_MOST_REPEATS} times, not {repeat}"
            )
        count = repeat * GROUP
        scores = _view(case, source, kind.numpy, count).reshape(repeat, GROUP)
        numbers = _view(case, indices, word, count).reshape(repeat, GROUP)
        order = descending(scores)
        records = np.empty((repeat, GROUP, 2), word)
        sorted_scores = np.take_along_axis(scores, order, axis=1)
        records[..., 0] = sorted_scores.view(kind.storage)
        records[..., 1] = np.take_along_axis(numbers, order, axis=1)
        _view(case, to, word, 2 * count)[:] = records.reshape(-1)

    return sort


def _lists(config: int, count: int) -> list[tuple[int, int]]:
    """(number, length) of the lists that are merged."""
    valid = config >> 8 & 0xF
    if valid not in (0b0011, 0b0111, 0b1111):
        raise fail(
            "PTO-S140",
            f"'pto.vmrgsort4' op merges lists 0..1, 0..2 or 0..3; bits 11..8 of its config "
            f"{config & 0x1FFF:#x} name {valid:#06b}",
        )
    lengths = [count >> 16 * n & 0xFFFF for n in range(4)]
    return [(n, lengths[n]) for n in range(4) if valid >> n & 1 and lengths[n]]


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


def _vmrgsort4(case: Case) -> Callable[..., None]:
    kind, record = dtype_of(case, "destination"), np.dtype(np.uint64)
    per_record = RECORD // kind.itemsize

    def read(pointer: Pointer, start: int, length: int) -> Items:
        pointer.memory.check(pointer.address, 0, element_alignment(case, RECORD))
        nbytes = length * RECORD
        return pointer.memory.view(pointer.address + start * RECORD, nbytes).view(record)

    def once(sources: list[Pointer], lists: list[tuple[int, int]], start: int, stop: bool) -> Items:
        """The merged records; sets the register with the number taken from each list."""
        parts = [read(sources[n], start, length) for n, length in lists]
        records = np.concatenate(parts)
        scores = records.view(kind.numpy)[::per_record]
        owner = np.repeat([n for n, _ in lists], [length for _, length in lists])
        for n, _ in lists:
            _check_descending(n, scores[owner == n])
        order = descending(scores)
        if stop:
            lasts = [int(np.flatnonzero(owner[order] == n)[-1]) for n, _ in lists]
            order = order[: min(lasts) + 1]
        return np.stack((records[order], owner[order].astype(np.uint64)))

    def merge(core: Machine, to: Pointer, *rest: Any) -> None:
        *sources, count, config = rest
        lists = _lists(config, count)
        total, stop = sum(length for _, length in lists), bool(config >> 12 & 1)
        repeats = config & 0xFF if lists else 0
        done = [once(sources, lists, k * total, stop) for k in range(repeats)]
        for k, (records, _) in enumerate(done):
            read(to, k * total, records.size)[:] = records
        taken = np.bincount(done[-1][1].astype(np.int64), minlength=4) if done else [0] * 4
        put(core, VMS4_SR, sum(int(taken[n]) << 16 * n for n in range(4)))

    return merge


def _taken(core: Machine) -> tuple[int, ...]:
    """The fields as i16 numbers."""
    fields = (get(core, VMS4_SR) >> 16 * n & 0xFFFF for n in range(4))
    return tuple(n - (1 << 16) if n >> 15 else n for n in fields)


def _undefined(name: str, config: int, plain: str) -> None:
    if config:
        raise fail(
            "PTO-X140",
            f"'{name}' op: the fields of its config word are not defined by the ISA, got "
            f"{config:#x}",
            help=f"0 is read as the plain form: {plain}",
        )


def _vsort32(case: Case) -> Callable[..., None]:
    kind = dtype_of(case, "source").numpy

    def sort(core: Machine, to: Pointer, source: Pointer, config: int) -> None:
        _undefined(case.row.name, config, "32 elements, descending")
        values = _view(case, source, kind, GROUP)
        _view(case, to, kind, GROUP)[:] = values[descending(values)]

    return sort


def _vtranspose(case: Case) -> Callable[..., None]:
    """Transpose a 16x16 block, the only size of this vector instruction."""
    kind, side = dtype_of(case, "source").numpy, 16

    def transpose(core: Machine, to: Pointer, source: Pointer, config: int) -> None:
        _undefined(case.row.name, config, "one block of 16x16 elements")
        block = _view(case, source, kind, side * side).reshape(side, side)
        _view(case, to, kind, side * side)[:] = block.T.reshape(-1)

    return transpose


VBITSORT = Do(_vbitsort)
VMRGSORT4 = Do(_vmrgsort4)
GET_VMS4_SR = do(_taken)
VSORT32 = Do(_vsort32)
VTRANSPOSE = Do(_vtranspose)
