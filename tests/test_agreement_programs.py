"""Every function of our good programs on both engines: so every row of the table is compared.

Arguments are made from their types: buffers of random bytes, small numbers. Where the reference
refuses what it finds there, compiled code has to refuse it with the same words.
"""

from __future__ import annotations

from collections import Counter
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
from pto.isa.meaning.handle.memref import as_tile
from pto.isa.row import types as t
from pto.isa.row.attributes import Str
from pto.plan.memory import plan_memory
from pto.run.machine.agents import run_agents
from pto.run.machine.core import Cluster, Core
from pto.run.machine.device import Device
from pto.target.choose import choose
from pto.verify.functions import is_defined, name_of
from tests import agreement

PROGRAMS = sorted((Path(__file__).parent / "pto" / "good").glob("*.pto"))
BYTES = 1 << 16
# What one agent with made-up numbers cannot do: other ranks and agents, and transfers whose
# extents do not fit. Both engines stop there with the same words.
STOPPED = {
    *("collective", "cross_core_a2a3", "fifo_frontend", "extract_a5", "move_a5", "fixpipe_copies"),
    *("convert", "cube_move", "dma_manual", "dma_ub", "mad_products", "quant", "scalar"),
    *("simt_lanes", "simt_work"),
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
        memory = self._filled(tile.role.space)
        address = self._room(tile.role.space, tile.nbytes)
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
    except (Unmade, PtoError) as why:
        return f"no value of {why}"

    def go(agents: Any, compiler: Any) -> list[Any]:
        ((agent, given),) = agents
        code = compiler(0).code(function)
        with np.errstate(all="ignore"):
            if code.can_wait:
                run_agents([(agent, code, given)])
                return []
            return code.call(agent, given)

    try:
        agreement.run([(core, values)], [module], go, f"@{name_of(function)}")
    except PtoError as error:
        return error.diagnostics[0].code
    return "ran"


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_functions_of_good_programs(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(agreement.STATE, "mode", "all")
    module = parse_file(path)
    arch = module.op.attrs.get("pto.target_arch")
    profile = choose(target_arch=arch.value if isinstance(arch, Str) else None).profile
    found = Counter[str]()
    for function in module.functions():
        if is_defined(function):
            for wild in (True, False):
                found[outcome(module, function, profile, wild)] += 1
    assert found["ran"] or path.stem in STOPPED, dict(found)
