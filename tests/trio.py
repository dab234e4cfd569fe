"""A bench for tests of queues: the cube and both vector sub-blocks of a core, each with a body."""

from __future__ import annotations

from typing import Any

import numpy as np

from pto.core.memory import Space
from pto.core.tile import Tile
from pto.ir.graph import Module
from pto.ir.text.parser import parse
from pto.ir.text.types import parse_type, type_text
from pto.isa.row import types as t
from pto.run.machine.core import Cluster, Core
from pto.run.machine.device import Device
from pto.target.profile import profile as find_profile
from tests import agreement
from tests.machine import run_agents

FILL = 0xA5  # what buffers hold before a test writes them: stray writes show


class Trio:
    """Agents by name: `cube`, `vector0`, `vector1`; values by agent and name.

    >>> trio = Trio("a5")
    >>> trio.tile("cube", "t", "acc, 16x16xf32, ...", array)
    >>> trio.run(cube="...", vector0="...")
    """

    def __init__(self, profile: str, vectors: int = 2) -> None:
        chosen = find_profile(profile)
        self.profile = chosen
        self.device = Device(chosen)
        cluster = Cluster(self.device, 0, 1)
        self.cores = {"cube": Core(cluster, chosen, "cube", 0, 1)}
        for sub in range(vectors):
            self.cores[f"vector{sub}"] = Core(cluster, chosen, "vector", sub, vectors)
        self.values: dict[str, dict[str, Any]] = {name: {} for name in self.cores}
        self.types: dict[str, dict[str, str]] = {name: {} for name in self.cores}
        for core in self.cores.values():
            for space in (Space.UB, Space.L1, Space.L0C):
                core.memory(space).data[:] = FILL

    def tile(
        self,
        agent: str,
        name: str,
        type: str,
        values: Any = None,
        *,
        address: int = 0x8000,
        valid: tuple[int, int] | None = None,
    ) -> Tile:
        parsed = parse_type(f"!pto.tile_buf<{type}>")
        assert isinstance(parsed, t.TileBuf)
        memory = self.cores[agent].memory(parsed.tile.space)
        tile = Tile(parsed.tile, memory, address, valid)
        if values is not None:
            whole = tile.read()
            array = np.asarray(values)
            whole[: array.shape[0], : array.shape[1]] = array
            tile.write(whole)
        self.values[agent][name] = tile
        self.types[agent][name] = type_text(parsed)
        return tile

    def array(self, name: str, type: str, values: Any) -> np.ndarray[Any, Any]:
        """An array in global memory that every agent knows by this name; live."""
        array = np.ascontiguousarray(values)
        parsed = parse_type(type)
        value = self.device._value(name, parsed, array)  # pyright: ignore[reportPrivateUsage]
        for agent in self.cores:
            self.values[agent][name] = value
            self.types[agent][name] = type
        return array

    def run(self, **bodies: str) -> None:
        """Each agent its body; `{t}` stands for the type of t."""
        given: list[tuple[Core, list[Any]]] = []
        modules: list[Module] = []
        for name, body in bodies.items():
            types = self.types[name]
            for value, type in types.items():
                body = body.replace("{" + value + "}", type)
            args = ", ".join(f"%{n}: {type}" for n, type in types.items())
            modules.append(parse(f"func.func @f({args}) {{\n{body}\nreturn\n}}"))
            given.append((self.cores[name], list(self.values[name].values())))

        def go(agents: Any, compiler: Any) -> list[Any]:
            codes = [(core, compiler(n).code("f"), v) for n, (core, v) in enumerate(agents)]
            with np.errstate(all="ignore"):
                run_agents(codes)
            return []

        agreement.run(given, modules, go, "\n".join(bodies.values()))

    def local(self, agent: str, space: Space, address: int, count: int) -> np.ndarray[Any, Any]:
        """So many f32 of a local buffer."""
        return self.cores[agent].memory(space).data[address : address + 4 * count].view(np.float32)
