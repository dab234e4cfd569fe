"""A time that a launch cannot fall below: what its blocks load, at the rate of a core.

It is read from the program without a run, so that a search looks at many programs and times few.
"""

from __future__ import annotations

from pto.core.memory import Space
from pto.ir.graph import Operation
from pto.isa.handle.tile import ALLOC_TILE
from pto.isa.row.traits import Control
from pto.isa.row.types import TileBuf
from pto.isa.tile.move import TLOAD
from pto.observe.timing import Bench
from pto.target.profile import profile
from pto.transform.cores import CUBE, VECTOR, cores
from pto.transform.schedule import ProgramLaunch
from pto.transform.strides import trip_count

_EDGES = 0.9  # of the bytes: tiles at the edges of arrays load less than they hold


def cores_of(launch: ProgramLaunch, bench: Bench) -> int:
    """The cores of a chip that run blocks of a launch."""
    used = {side for function in launch.functions for side in cores(function)}
    return bench.device.cube_cores if CUBE in used else bench.device.vector_cores


def least_us(launch: ProgramLaunch, bench: Bench) -> float:
    """The time of all loads on one core; infinite if a tile is larger than its buffer."""
    sizes = profile(bench.device.profile).buffers
    cycles = 0.0
    for op in (op for function in launch.functions for op in function.walk()):
        type = op.results[0].type if op.row is ALLOC_TILE else None
        if isinstance(type, TileBuf) and type.tile.nbytes > sizes.get(
            type.tile.space.value, type.tile.nbytes
        ):
            return float("inf")
        if op.row is TLOAD:
            cycles += _trips(op) * _load_cycles(op, bench)
    rounds = -(-launch.blocks // cores_of(launch, bench))
    used = {side for function in launch.functions for side in cores(function)} or {VECTOR}
    return bench.of_kind(used).chip.launch_us + rounds * _EDGES * cycles / bench.mhz


def _load_cycles(op: Operation, bench: Bench) -> float:
    type = op.group("dst")[0].type
    if not isinstance(type, TileBuf):
        return 0.0
    path = "gm>ub" if type.tile.space is Space.UB else "gm>l1"
    return type.tile.nbytes / bench.costs.of(path)["r_hit"]


def _trips(op: Operation) -> int:
    """How often a block runs an operation; loops of unknown length count once."""
    trips = 1
    for outer in op.ancestors():
        if outer.control is Control.FOR:
            trips *= trip_count(outer) or 1
    return trips
