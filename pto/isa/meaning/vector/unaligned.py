"""Unaligned streams.

A state is a value: the primed block of a load, or the pending bytes of a store.

A store stream writes UB in whole 32-byte blocks; the rest is pending in the state until a flush,
which must name the current address of the stream. Bytes outside the stream are never touched.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from pto.core.constants import BLOCK_BYTE_SIZE, VREG_BYTES
from pto.core.errors import fail
from pto.core.memory import Memory
from pto.core.pointer import Pointer
from pto.isa.meaning.kinds import Do, Make
from pto.isa.meaning.memory.registers import AR, SQZN
from pto.isa.meaning.vector.masks import Mask
from pto.isa.meaning.vector.ub import ItemAccess, Items, access, dtype_of, element_alignment
from pto.isa.meaning.vector.words import Registers
from pto.isa.rules.rule import Case


@dataclass(frozen=True, slots=True)
class LoadState:
    """The 32-byte block that a load stream has buffered, by its number."""

    memory: Memory
    block: int


@dataclass(frozen=True, slots=True)
class StoreState:
    """Pending bytes, the address of the first, and the address that a flush must name."""

    memory: Memory | None
    pending: bytes
    address: int
    mark: int


EMPTY = StoreState(None, b"", 0, 0)

# ---- loads


class Streams(Registers):
    """The interface of registers, extended by streams."""

    def prime(self, source: Pointer) -> LoadState:
        """The state of a load stream with the block of an address buffered."""
        source.memory.check(source.address // BLOCK_BYTE_SIZE * BLOCK_BYTE_SIZE, 1)
        return LoadState(source.memory, source.address // BLOCK_BYTE_SIZE)

    def follow(self, state: LoadState | StoreState, source: Pointer) -> LoadState:
        """The state after a register is loaded; its block must be the buffered one."""
        if not isinstance(state, LoadState):
            raise fail(
                "PTO-M142",
                "'pto.vldus' op is given the state of a store stream, which holds no block to load",
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
        return LoadState(source.memory, (source.address + VREG_BYTES) // BLOCK_BYTE_SIZE)

    def begin(self) -> StoreState:
        """A store stream without pending bytes."""
        return EMPTY

    def append(
        self, state: StoreState, to: Pointer, data: Items, nbytes: int, stays: bool
    ) -> StoreState:
        """Append the first bytes of `data` to the stream at an address, and write the complete
        blocks.

        With `stays` the flush names the start of this store, not its end: the address is not
        advanced.
        """
        _require_store(state)
        memory, start = to.memory, to.address
        pending = state.pending
        if pending and (state.memory is not memory or state.address + len(pending) != start):
            raise fail(
                "PTO-M143",
                f"this store begins at {start:#x}, but its state holds bytes up to "
                f"{state.address + len(pending):#x}",
                help="move the base on by what the last store appended, or begin with"
                " pto.init_align",
            )
        first, end = state.address if pending else start, start + nbytes
        memory.check(first, end - first)
        stream = pending + data.view(np.uint8)[:nbytes].tobytes()
        aligned_end = max(end // BLOCK_BYTE_SIZE * BLOCK_BYTE_SIZE, first)
        if aligned_end > first:
            memory.data[first:aligned_end] = np.frombuffer(stream, np.uint8, aligned_end - first)
        return StoreState(
            memory, stream[aligned_end - first :], aligned_end, start if stays else end
        )

    def flush(self, state: StoreState, to: Pointer) -> None:
        """Write the pending bytes of a store stream; the pointer must name its current address."""
        _require_store(state)
        if state.memory is None:
            return
        if state.memory is not to.memory or state.mark != to.address:
            raise fail(
                "PTO-M143",
                f"this flush names address {to.address:#x}, but its stream is at {state.mark:#x}",
                help="pto.vstas takes the base and offset of the last pto.vstus, or the last"
                " base_out of pto.pstu and 0; pto.vstar the base of the last pto.vstur",
            )
        to.memory.data[state.address : state.address + len(state.pending)] = np.frombuffer(
            state.pending, np.uint8
        )

    def align(self, pointer: Pointer, needed: int) -> None:
        """Check that an address is a multiple of this number of bytes, inside its memory."""
        pointer.memory.check(pointer.address, 0, needed)


def _require_store(state: StoreState | LoadState) -> None:
    if not isinstance(state, StoreState):
        raise fail(
            "PTO-M143",
            "a store stream is given the state of a load stream",
            help="start a store stream with pto.init_align",
        )


def _streams(make: Make) -> Do:
    return Do(make, words=Streams)


def _prime(x: Streams, source: Pointer, offset: Any) -> LoadState:
    return x.prime(source if offset is None else x.moved(source, offset))


def _anywhere(case: Case) -> ItemAccess:
    """Load a register from any address of an element."""
    kind = dtype_of(case, "result")
    return access(case, kind.numpy, kind.lanes)


def _vldus(case: Case) -> Callable[..., Any]:
    at, update = _anywhere(case), len(case.op.results) == 3

    def run(x: Streams, source: Pointer, state: LoadState, increment: Any) -> Any:
        after = x.follow(state, source)
        loaded = x.load(at, source)
        if not update:
            return loaded, after
        return loaded, after, x.moved(source, 0 if increment is None else increment)

    return run


def _uvld(case: Case) -> Callable[..., Items]:
    at, step = _anywhere(case), dtype_of(case, "source").itemsize
    return lambda x, source, offset: x.load(at, source, offset, step)


# ---- stores


def _vstus(case: Case) -> Callable[..., Any]:
    kind, update = dtype_of(case, "value"), len(case.op.results) == 2
    needed = element_alignment(case, kind.itemsize)

    def run(x: Streams, state: StoreState, offset: Any, value: Items, base: Pointer) -> Any:
        count = x.number(offset)
        x.align(base, needed)
        x.require(
            (count >= 0) & (count <= kind.lanes),
            lambda: fail(
                "PTO-S140",
                f"'pto.vstus' op stores {count} elements of a register of {kind.lanes}",
                help="offset counts the elements this step appends",
            ),
        )
        after = x.append(state, base, value, count * kind.itemsize, stays=False)
        return (after, x.moved(base, count)) if update else after

    return run


def _vstur(case: Case) -> Callable[..., StoreState]:
    moves = case.word("mode") == "POST_UPDATE"
    needed = element_alignment(case, dtype_of(case, "value").itemsize)

    def run(x: Streams, state: StoreState, value: Items, base: Pointer) -> StoreState:
        x.align(base, needed)
        count, offset = x.get(SQZN), x.get(AR)
        x.require(
            count >= 0,
            lambda: fail(
                "PTO-M144",
                "'pto.vstur' op stores the number of bytes in SQZN, but SQZN was never set",
                help="execute pto.vsqz or pto.vusqz before it: they set SQZN",
            ),
        )
        after = x.append(state, x.moved(base, offset, 1), value, count, stays=not moves)
        if moves:
            x.put(AR, offset + count)
        return after

    return run


def _vstu(case: Case) -> Callable[..., tuple[StoreState, int]]:
    """Store a whole register, at an offset in elements that the program passes along."""
    step, moves = dtype_of(case, "base").itemsize, case.word("mode") == "POST_UPDATE"
    needed = element_alignment(case, dtype_of(case, "value").itemsize)

    def run(
        x: Streams, state: StoreState, offset: Any, value: Items, base: Pointer
    ) -> tuple[StoreState, int]:
        x.align(base, needed)
        count = x.number(offset)
        start = x.moved(base, offset, step)
        after = x.append(state, start, value, VREG_BYTES, stays=not moves)
        return after, count + VREG_BYTES // step if moves else count

    return run


def _vstas(case: Case) -> Callable[..., Any]:
    update = bool(case.op.results)

    def run(x: Streams, state: StoreState, to: Pointer, offset: Any) -> Pointer | None:
        moved = x.moved(to, offset)
        x.flush(state, moved)
        return moved if update else None

    return run


def _store_register(unit: int) -> Do:
    """Store with AR as a word: an offset of this number of bytes per count."""

    def make(case: Case) -> Callable[..., Any]:
        at, update = access(case, np.dtype(np.uint32), 1, align=4), bool(case.op.results)

        def run(x: Streams, to: Pointer, offset: Any) -> Pointer | None:
            word = x.word(x.get(AR), np.dtype(np.uint32))
            if not update:
                return x.store(at, to, word, None, offset, unit)
            x.store(at, to, word, None)
            return x.moved(to, offset, unit)

        return run

    return _streams(make)


def _pstu(case: Case) -> Callable[..., tuple[StoreState, Pointer]]:
    """Store lanes as bits without gaps: 16 bytes for b16, 8 for b32."""
    width = dtype_of(case, "base").itemsize
    needed, nbytes = element_alignment(case, width), VREG_BYTES // width // 8

    def run(
        x: Streams, state: StoreState, value: Mask, base: Pointer
    ) -> tuple[StoreState, Pointer]:
        x.align(base, needed)
        after = x.append(state, base, x.to_bits(value, width), nbytes, stays=False)
        return after, x.moved(base, nbytes // width)

    return run


VLDAS = _streams(lambda case: _prime)
VLDUS = _streams(_vldus)
UVLD = _streams(_uvld)
INIT_ALIGN = _streams(lambda case: lambda x: x.begin())
SPRCLR = _streams(lambda case: lambda x: x.put(AR, 0))
SPRSTI = _store_register(4)
SPRSTS = _store_register(1)
VSTUS = _streams(_vstus)
VSTUR = _streams(_vstur)
VSTU = _streams(_vstu)
VSTAS = _streams(_vstas)
VSTAR = _streams(lambda case: lambda x, state, to: x.flush(state, x.moved(to, x.get(AR), 1)))
PSTU = _streams(_pstu)
