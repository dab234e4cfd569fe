"""Every function of our good programs on both engines: so every row of the table is compared.

Arguments are made from their types: buffers of zeros and of random bytes, small numbers. Where the
reference refuses what it finds there, compiled code has to refuse it with the same words.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pto.core.errors import PtoError
from pto.core.memory import Space
from pto.core.pointer import Pointer
from pto.core.tile import Tile
from pto.ir.graph import Operation
from pto.ir.text.parser import parse_file
from pto.isa.meaning.handle.view import as_tile
from pto.isa.row import types as t
from pto.isa.row.attributes import Str
from pto.plan.memory import plan_memory
from pto.run.machine.core import Cluster, Core
from pto.run.machine.device import Device
from pto.target.profile import choose
from tests import agreement
from tests.machine import run_agents

PROGRAMS = sorted((Path(__file__).parent / "pto" / "good").glob("*.pto"))
BYTES = 1 << 16
# Functions that stop, as program.function: the code of both engines, and why. All others run to
# their end, and one of these that does is a failure too.
STOPS = {
    "arith.integers": ("no value", "vectors of two integers are made by SIMT code alone"),
    "collective.ranks": ("PTO-M195", "there is one rank"),
    "text_only.floats": ("PTO-T152", "what packing does to floats is not defined"),
    "cross_core_a2a3.both": ("PTO-D110", "there is no other agent"),
    "cube_move.move": ("PTO-M161", "a stride of 1 leaves the array"),
    "dma_manual.generic": ("PTO-M164", "a pitch of 1 is not aligned"),
    "dma_ub.copies": ("PTO-M161", "a stride of 1 leaves the array"),
    "extract_a5.windows": ("PTO-M111", "there is no second vector agent"),
    "fence.fences": ("PTO-D110", "there is no other agent"),
    "fifo_frontend.cube": ("PTO-D110", "nobody takes from the queue"),
    "fifo_frontend.odd_vector": ("PTO-D191", "one agent is both ends"),
    "fifo_frontend.vector": ("PTO-D110", "nobody puts into the queue"),
    "fifo_frontend.vector_to_cube": ("PTO-D191", "one agent is both ends"),
    "fifo_handles.vector": ("PTO-D191", "one agent is both ends"),
    "fixpipe_copies.copies": ("PTO-M111", "there is no second vector agent"),
    "mad_products.products": ("PTO-S164", "the word of sizes 1 has n = 0"),
    "move_a5.a5": ("PTO-M111", "there is no second vector agent"),
    "predicate_masks.memory": ("PTO-M080", "an offset of 1 is not aligned"),
    "scalar.scalars": ("PTO-S135", "it ends in a trap"),
    "scope.scopes": ("PTO-M140", "an offset of 1 is not aligned"),
    "shared.packed": ("no value", "vectors of two floats are made by SIMT code alone"),
    "simt_lanes.second": ("PTO-V218", "what another entry keeps"),
    "simt_work.memory": ("no value", "vectors of two floats are made by SIMT code alone"),
    "simt_work.numbers": ("no value", "vectors of two floats are made by SIMT code alone"),
    "tile_handle.lowered": ("PTO-M002", "an address of 1 is not aligned"),
    "vector_compare_convert_reduce.compare": ("PTO-X140", "what vselrv2 selects by is undefined"),
    "vector_rearrange_special.sort": ("PTO-X140", "the config of vsort32 is undefined"),
    "vmi.parts": ("no value", "no argument is a register"),
    "view.older": ("PTO-M006", "a part from 1 leaves the view"),
    "view.views": ("PTO-M006", "a part from 1 leaves the view"),
}
# Functions that stop on random bytes only: they are taken for indices.
WILD = {
    "gather_a2a3.forms": "PTO-M180",
    "gather_a5.forms": "PTO-M180",
    "gather_a5.tables": "PTO-M180",
    "gather_a5.tiles": "PTO-M180",
    "rearrange.rearrange": "PTO-S066",
    "vector_load_store.gather": "PTO-M141",
    "vmi.memory": "PTO-M141",
}
_SIDE = 16  # of a dimension that is not given


class Unmade(Exception):
    """There is no value of this type here."""


def _rest(type: t.MemRef) -> tuple[Any, ...]:
    return type.elem, type.layout, type.space


class Values:
    """Arguments by type, each at a place of its own; `wild`: of random bytes, else of zeros."""

    def __init__(self, core: Core, wild: bool) -> None:
        self.core = core
        self.wild = wild
        self.rng = np.random.default_rng(5)
        self._next: dict[Space, int] = {}

    def of(self, name: str, type: t.Type) -> Any:
        if isinstance(type, t.Scalar):
            is_float = type.dtype is not None and type.dtype.is_float
            return type.dtype.numpy.type(1.5) if is_float and type.dtype else 1
        if isinstance(type, t.TileBuf):
            return self._tile(type)
        if isinstance(type, t.LogicalMask):
            return self._bytes(type.lanes) % 2 == 0
        if isinstance(type, t.LogicalVReg) and type.elem.dtype is not None:
            kind = type.elem.dtype
            return self._bytes(type.lanes * kind.itemsize).view(kind.storage).view(kind.numpy)
        if isinstance(type, t.Ptr) and type.space.is_local:
            elem = type.elem.dtype if isinstance(type.elem, t.Scalar) else None
            return Pointer(self._filled(type.space), self._room(type.space, 8192), elem)
        if isinstance(type, t.MemRef) and type.space.is_local:
            place = Pointer(self._filled(type.space), self._room(type.space, 8192), type.elem.dtype)
            known = t.MemRef(tuple(n or _SIDE for n in type.shape), *_rest(type))
            return as_tile(place, known)
        if isinstance(type, t.Ptr | t.View) or (
            isinstance(type, t.MemRef) and not type.space.is_local
        ):
            array = self._array(type)
            return self.core.device._value(name, type, array)
        raise Unmade(str(type))

    def _array(self, type: Any) -> Any:
        elem = type.elem.dtype if isinstance(type.elem, t.Scalar) else None
        if elem is None:
            raise Unmade(str(type))
        shape = [n or _SIDE for n in getattr(type, "shape", None) or [BYTES // elem.itemsize]]
        raw = self._bytes(int(np.prod(shape)) * elem.itemsize)
        return raw.view(elem.storage).view(elem.numpy).reshape(shape)

    def _tile(self, type: t.TileBuf) -> Tile:
        tile = type.tile
        memory = self._filled(tile.space)
        address = self._room(tile.space, tile.nbytes)
        return Tile(tile, memory, address, tile.shape if None in tile.valid else None)

    def _room(self, space: Space, nbytes: int) -> int:
        start = self._next.get(space, 0)
        end = start + -(-nbytes // 512) * 512
        if end > self.core.memory(space).size:  # they may share bytes: engines agree there, too
            start, end = 0, nbytes
        self._next[space] = end
        return start

    def _filled(self, space: Space) -> Any:
        memory = self.core.memory(space)
        if not memory.data.any():
            memory.data[:] = self._bytes(memory.size)
        return memory

    def _bytes(self, count: int) -> Any:
        return self.rng.integers(0, 256 if self.wild else 1, count, dtype=np.uint8)


def outcome(module: Any, function: Operation, profile: Any, wild: bool) -> str:
    """On both engines, as one agent that has all of a core; the code of what was refused."""
    cluster = Cluster(Device(profile), 0, 1)
    core = Core(cluster, profile, "both", 0, 1, plan_memory([function], profile))
    made = Values(core, wild)
    args = function.regions[0].block.args
    try:
        values = [made.of(arg.name or f"a{n}", arg.type) for n, arg in enumerate(args)]
    except Unmade:
        return "no value"

    def go(agents: Any, compiler: Any) -> list[Any]:
        ((agent, given),) = agents
        code = compiler(0).code(function)
        with np.errstate(all="ignore"):
            if code.can_wait:
                run_agents([(agent, code, given)])
                return []
            return code.call(agent, given)

    try:
        agreement.run([(core, values)], [module], go, f"@{function.symbol}")
    except PtoError as error:
        return error.diagnostics[0].code
    return "ran"


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_functions_of_good_programs(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(agreement.STATE, "mode", "all")
    module = parse_file(path)
    arch = module.op.attrs.get("pto.target_arch")
    profile = choose(target_arch=arch.value if isinstance(arch, Str) else None).profile
    for function in (f for f in module.functions() if f.has_body):
        name = f"{path.stem}.{function.symbol}"
        calm, _ = STOPS.get(name, ("ran", ""))
        assert outcome(module, function, profile, wild=False) == calm, name
        assert outcome(module, function, profile, wild=True) == WILD.get(name, calm), name


def test_every_listed_function_exists() -> None:
    modules = [(path.stem, parse_file(path)) for path in PROGRAMS]
    known = {f"{stem}.{f.symbol}" for stem, m in modules for f in m.functions()}
    assert {*STOPS, *WILD} - known == set()
