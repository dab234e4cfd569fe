"""Unaligned streams. States are values: what a load is primed with, what a store still holds back.

Bytes of a store stream reach UB in whole 32-byte blocks; the rest waits in the state until a flush,
which has to name the place where the stream stands. Bytes beside the stream are never touched.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from pto.core.constants import BLOCK_BYTE_SIZE, VREG_BYTES
from pto.core.errors import fail
from pto.core.memory import Memory
from pto.core.pointer import Pointer
from pto.isa.meaning.kinds import Do, do
from pto.isa.meaning.machine import Machine
from pto.isa.meaning.memory.registers import AR, SQZN, get, put
from pto.isa.meaning.vector.masks import Mask
from pto.isa.meaning.vector.ub import Items, dtype_of, element_alignment, items, post_update
from pto.isa.rules.rule import Case

Bytes = npt.NDArray[np.uint8]


@dataclass(frozen=True, slots=True)
class LoadState:
    """The 32-byte block a load stream has at hand, by its number."""

    memory: Memory
    block: int


@dataclass(frozen=True, slots=True)
class StoreState:
    """Bytes not yet written, the address of the first, and the address a flush has to name."""

    memory: Memory | None
    pending: bytes
    address: int
    mark: int


EMPTY = StoreState(None, b"", 0, 0)

# ---- loads


def _prime(core: Machine, source: Pointer, offset: int | None) -> LoadState:
    source = source.at(offset or 0)
    source.memory.check(source.address // BLOCK_BYTE_SIZE * BLOCK_BYTE_SIZE, 1)
    return LoadState(source.memory, source.address // BLOCK_BYTE_SIZE)


def _vldus(case: Case) -> Callable[..., Any]:
    at = _anywhere(case)

    def load(
        core: Machine, source: Pointer, state: LoadState | StoreState, increment: int | None
    ) -> tuple[Items, LoadState]:
        if not isinstance(state, LoadState):
            raise fail(
                "PTO-M142",
                "'pto.vldus' op takes the state of a store stream, which holds no block to load",
                help="prime a state with pto.vldas",
            )
        block, inside = divmod(source.address, BLOCK_BYTE_SIZE)
        if inside and (state.block != block or state.memory is not source.memory):
            raise fail(
                "PTO-M142",
                f"'pto.vldus' op loads from {source.address:#x}, in the 32-byte block at "
                f"{block * BLOCK_BYTE_SIZE:#x}; its state holds the block at "
                f"{state.block * BLOCK_BYTE_SIZE:#x}",
                help="prime a state with pto.vldas for each place a stream begins at",
            )
        end = (source.address + VREG_BYTES) // BLOCK_BYTE_SIZE
        return at(source, 0).copy(), LoadState(source.memory, end)

    if len(case.op.results) < 3:
        return load
    return post_update(load, lambda source, state, increment: source.at(increment or 0))


def _uvld(case: Case) -> Callable[..., Items]:
    at, step = _anywhere(case), dtype_of(case, "source").itemsize
    return lambda core, source, offset: at(source, offset * step).copy()


def _anywhere(case: Case) -> Callable[[Pointer, int], Items]:
    """A register at any address of an element."""
    kind = dtype_of(case, "result")
    return items(case, kind.numpy, kind.lanes)


# ---- stores


def _append(state: StoreState, to: Memory, start: int, data: Bytes, stays: bool) -> StoreState:
    """Put `data` behind the stream at address `start`; write the blocks that are whole now.

    With `stays` the flush names the start of this store, not its end: the address did not move.
    """
    _require_store(state)
    if state.pending and (state.memory is not to or state.address + len(state.pending) != start):
        raise fail(
            "PTO-M143",
            f"this store begins at {start:#x}, but its state holds bytes up to "
            f"{state.address + len(state.pending):#x}",
            help="move the base on by what the last store appended, or begin with pto.init_align",
        )
    first = state.address if state.pending else start
    end = start + data.size
    to.check(first, end - first)
    stream = state.pending + data.tobytes()
    whole = max(end // BLOCK_BYTE_SIZE * BLOCK_BYTE_SIZE, first)
    if whole > first:
        to.data[first:whole] = np.frombuffer(stream, np.uint8, whole - first)
    return StoreState(to, stream[whole - first :], whole, start if stays else end)


def _require_store(state: StoreState | LoadState) -> None:
    if not isinstance(state, StoreState):
        raise fail(
            "PTO-M143",
            "a store stream takes the state of a load",
            help="begin a stream with pto.init_align",
        )


def _flush(state: StoreState, to: Memory, named: int) -> None:
    _require_store(state)
    if state.memory is None:
        return
    if state.memory is not to or state.mark != named:
        raise fail(
            "PTO-M143",
            f"this flush names address {named:#x}, but its stream stands at {state.mark:#x}",
            help="pto.vstas takes the base and offset of the last pto.vstus, or the last base_out"
            " of pto.pstu and 0; pto.vstar the base of the last pto.vstur",
        )
    to.data[state.address : state.address + len(state.pending)] = np.frombuffer(
        state.pending, np.uint8
    )


def _elements(case: Case, pointer: Pointer, size: int) -> None:
    needed = element_alignment(case, size)
    pointer.memory.check(pointer.address, 0, needed)


def _vstus(case: Case) -> Callable[..., Any]:
    kind = dtype_of(case, "value")

    def store(
        core: Machine, state: StoreState, count: int, value: Items, base: Pointer
    ) -> StoreState:
        _elements(case, base, kind.itemsize)
        if not 0 <= count <= kind.lanes:
            raise fail(
                "PTO-S140",
                f"'pto.vstus' op stores {count} elements of a register of {kind.lanes}",
                help="offset counts the elements this step appends",
            )
        data = value.view(np.uint8)[: count * kind.itemsize]
        return _append(state, base.memory, base.address, data, stays=False)

    if len(case.op.results) < 2:
        return store
    return post_update(store, lambda state, count, value, base: base.at(count))


def _vstur(case: Case) -> Callable[..., StoreState]:
    size, moves = dtype_of(case, "value").itemsize, case.word("mode") == "POST_UPDATE"

    def store(core: Machine, state: StoreState, value: Items, base: Pointer) -> StoreState:
        _elements(case, base, size)
        count = get(core, SQZN)
        if count is None:
            raise fail(
                "PTO-M144",
                "'pto.vstur' op stores as many bytes as the squeeze count SQZN says, and nothing"
                " has set it",
                help="pto.vsqz or pto.vusqz before it sets SQZN",
            )
        offset: int = get(core, AR)
        data = value.view(np.uint8)[:count]
        after = _append(state, base.memory, base.address + offset, data, stays=not moves)
        if moves:
            put(core, AR, offset + count)
        return after

    return store


def _vstu(case: Case) -> Callable[..., tuple[StoreState, int]]:
    """The whole register, at an offset in elements that the program threads itself."""
    kind, step = dtype_of(case, "value"), dtype_of(case, "base").itemsize
    moves = case.word("mode") == "POST_UPDATE"

    def store(
        core: Machine, state: StoreState, offset: int, value: Items, base: Pointer
    ) -> tuple[StoreState, int]:
        _elements(case, base, kind.itemsize)
        start, data = base.address + offset * step, value.view(np.uint8)
        after = _append(state, base.memory, start, data, stays=not moves)
        return after, offset + VREG_BYTES // step if moves else offset

    return store


def _vstas(case: Case) -> Callable[..., Any]:
    step = dtype_of(case, "destination").itemsize

    def flush(core: Machine, state: StoreState, to: Pointer, offset: int) -> None:
        _flush(state, to.memory, to.address + offset * step)

    if not case.op.results:
        return flush
    return post_update(flush, lambda state, to, offset: to.at(offset))


def _store_register(unit: int) -> Do:
    """AR as a word, at an offset of so many bytes a count."""

    def make(case: Case) -> Callable[..., Any]:
        update = bool(case.op.results)

        def store(core: Machine, to: Pointer, offset: int) -> None:
            word = np.array([get(core, AR)], np.uint32)
            at = to.address + (0 if update else offset * unit)
            to.memory.write(at, word, align=word.itemsize)

        if not update:
            return store
        return post_update(
            store, lambda to, offset: Pointer(to.memory, to.address + offset * unit, to.dtype)
        )

    return Do(make)


def _vstar(core: Machine, state: StoreState, to: Pointer) -> None:
    _flush(state, to.memory, to.address + get(core, AR))


def _clear(core: Machine) -> None:
    put(core, AR, 0)


def _pstu(case: Case) -> Callable[..., tuple[StoreState, Pointer]]:
    """Lanes as bits, compact: 16 bytes of b16, 8 of b32."""
    width = dtype_of(case, "base").itemsize

    def store(
        core: Machine, state: StoreState, value: Mask, base: Pointer
    ) -> tuple[StoreState, Pointer]:
        _elements(case, base, width)
        data: Any = np.packbits(value[::width], bitorder="little")
        after = _append(state, base.memory, base.address, data, stays=False)
        return after, base.at(data.size // width)

    return store


VLDAS = do(_prime)
VLDUS = Do(_vldus)
UVLD = Do(_uvld)
INIT_ALIGN = do(lambda core: EMPTY)
SPRCLR = do(_clear)
SPRSTI = _store_register(4)
SPRSTS = _store_register(1)
VSTUS = Do(_vstus)
VSTUR = Do(_vstur)
VSTU = Do(_vstu)
VSTAS = Do(_vstas)
VSTAR = do(_vstar)
PSTU = Do(_pstu)
