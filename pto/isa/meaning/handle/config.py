"""Waiting, binding tiles to storage, and mode registers: state that later instructions read."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from pto.core.errors import fail
from pto.core.global_tensor import GlobalTensor
from pto.core.memory import Memory
from pto.core.tile import Tile
from pto.isa.meaning.cube.accumulator import SIGN, quant_of
from pto.isa.meaning.cube.factors import SCALE_SHIFT
from pto.isa.meaning.handle.memref import is_view
from pto.isa.meaning.handle.view import Handles, TileForm, as_tile, handles
from pto.isa.meaning.kinds import Blocked, Do, Move
from pto.isa.meaning.machine import Machine
from pto.isa.meaning.memory import registers
from pto.isa.meaning.order.words import AgentSignals
from pto.isa.meaning.tile.mover import Mover
from pto.isa.rules.rule import Case

# ---- waiting


def _sync_all(case: Case) -> Callable[..., Any]:
    """A barrier of all agents of core_type in all blocks."""
    kind = case.word("core_type") or "mix"
    mine = f"{registers.SYNC_ALL} {kind}"

    def run(x: AgentSignals, workspace: Any, used: Any) -> Any:
        agent_count = all_cores(x, kind, None if used is None else x.number(used))

        def arrive() -> None:
            x.arrive(kind)
            x.put(mine, x.get(mine), 1)

        def met() -> Any:
            x.when((agent_count > 0) & (x.get(mine, 1) == 0), arrive)
            return (agent_count == 0) | (x.arrivals(kind) >= (x.get(mine) + 1) * agent_count)

        def take() -> None:
            x.when(agent_count > 0, lambda: x.put(mine, x.get(mine) + 1, 0))

        def reason() -> Blocked:
            missing = (x.get(mine) + 1) * agent_count - x.arrivals(kind)
            return Blocked(f"{missing} of {agent_count} cores to reach it")

        return x.until(met, take, reason)

    return run


def all_cores(x: AgentSignals, kind: str, used: int | None) -> int:
    """The number of agents in the barrier; 0 if this one does not take part.

    `used` counts the agents of a mixed barrier, else blocks; 0 stands for all (syncall_soft.hpp).
    """
    here = x.number(_participants(x, kind))
    agent_count = here * x.core.blocks
    if used is None:
        return agent_count
    if kind == "mix":
        named = x.choose(x.core.block * here < used, lambda: used, 0)
    else:
        named = x.choose(x.core.block < used, lambda: here * used, 0)
    return named + x.choose(used == 0, lambda: agent_count, 0)


def round_of(core: Machine, kind: str) -> int:
    """The number of the barrier that an agent waits at, or passed last."""
    return sum(registers.get(core, f"{registers.SYNC_ALL} {kind}"))


def _participants(x: AgentSignals, kind: str) -> int:
    """The number of agents of this block that take part; 0 if this agent does not."""
    if x.side == "both":
        return 1
    if kind == "mix":
        return x.agents[0] + x.agents[1]
    if (kind == "aiv_only") != (x.side == "vector"):
        return 0
    return x.agents[0] if x.side == "vector" else 1


SYNC_ALL = Do(_sync_all, blocks=True, words=AgentSignals)

# ---- storage


def _assign(x: Handles, target: Any, address: int) -> Tile | GlobalTensor:
    """Place a tile at a byte address of its buffer, or a view at a global address."""
    if not is_view(target):
        form, pitch = TileForm(target.type), target.window_pitch
        return x.tile(form, target.memory, address, target.known_valid, pitch)
    at = x.global_pointer(address, target.dtype)
    return x.view(at.memory, at.address, target.dtype, target.shape, target.strides, target.layout)


def _bound(locate: Callable[[Handles, Tile, Tile, list[int]], tuple[Memory, int]]) -> Do:
    """Make dst a name for other bytes.

    `locate` computes their address from src, dst and the operands.
    """

    def run(x: Handles, src: Tile, *rest: Any) -> Tile:
        *numbers, dst = rest
        type, found = dst.type, locate(x, src, dst, numbers)
        pitch = type.shape[type.layout.pitch_axis]
        return x.tile(TileForm(type), *found, dst.get_valid(), pitch)

    return handles(lambda case: run, defines="dst")


def _part(x: Handles, src: Tile, dst: Tile, at: list[int]) -> tuple[Memory, int]:
    """The address of a window, by the block layout alone as in C++: it must not cut boxes."""
    row, col = at
    (rows, cols), (height, width) = src.type.shape, dst.get_valid()
    x.require(
        (row >= 0) & (col >= 0) & (row + height <= rows) & (col + width <= cols),
        lambda: fail("PTO-S060", f"{height}x{width} at ({row}, {col}) is not inside {src.type}"),
    )
    plain = src.type.layout.blayout.value == "row_major"
    offset = row * cols + col if plain else row + col * rows
    return src.memory, src.address + offset * src.type.itemsize


ASSIGN = handles(lambda case: _assign)
SUBVIEW = _bound(_part)
ALIAS = _bound(lambda x, src, dst, numbers: (src.memory, src.address))
SCALE_ADDRESS = _bound(lambda x, src, dst, numbers: (dst.memory, src.address >> SCALE_SHIFT))

# ---- mode registers


def _hf32(case: Case) -> Callable[..., None]:
    enabled = case.word("enable") == "true"
    return lambda x: x.put(registers.HF32, int(enabled))


def _tf32(case: Case) -> Callable[..., None]:
    """Set the bits of CTRL that `mad` reads, if the matrix unit supports tf32.

    According to the page CAST_ROUND rounds to nearest even, and other modes are reserved. The C++
    headers make CAST_ROUND round ties away from zero.
    """
    enabled, mode = case.word("enable") == "true", case.word("mode")
    if mode not in ("ROUND", "RINT"):
        raise fail("PTO-T174", f"tf32 rounds to nearest even; {mode} is reserved")
    other_bits = ~(1 << registers.TF32 | 1 << registers.TF32_AWAY)
    away = enabled and mode == "ROUND" and case.profile.tf32_round == "away"
    bits = enabled << registers.TF32 | away << registers.TF32_AWAY

    def run(x: Mover) -> None:
        if case.profile.tf32:
            x.put(registers.CTRL, x.get(registers.CTRL) & other_bits | bits)

    return run


def scale_register(case: Case) -> str:
    """The register of a scale: for pushes to one queue, or for the next push to any queue."""
    queue = case.word("id")
    if case.row.body is QUANT_SCALAR:
        queue = None if case.word("out_type") else queue or "0"
    return registers.TILE_QUANT if queue is None else quant_of(int(queue))


def _quant_scalar(case: Case) -> Callable[..., None]:
    kind, register = case.word("out_type"), scale_register(case)

    def run(core: Machine, scale: Any) -> None:
        if kind is None:
            core.registers[register] = np.float32(scale)
            return
        bits = int(np.float32(scale).view(np.uint32)) | (kind == "i8") << SIGN
        registers.put(core, register, (kind, bits))

    return run


def _quant_vector(case: Case) -> Callable[..., None]:
    type, register = case.type("fp"), scale_register(case)

    def run(core: Machine, fp: Any) -> None:
        tile = as_tile(fp, type)
        core.registers[register] = (None, tile) if register == registers.TILE_QUANT else tile

    return run


HF32_MODE = Move(_hf32)
TF32_MODE = Move(_tf32)
_OF_PUSHES = "sets the scale of pushes, which Python makes"
QUANT_SCALAR = Do(_quant_scalar, host_only=_OF_PUSHES)
QUANT_VECTOR = Do(_quant_vector, host_only=_OF_PUSHES)
