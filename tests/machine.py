"""A bench for tests: run a few instructions on tiles, pointers or registers given as arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from pto.core.memory import Memory, Space
from pto.core.pointer import Pointer
from pto.core.tile import Tile
from pto.ir.graph import Module
from pto.ir.text.parser import parse
from pto.ir.text.types import parse_type, type_text
from pto.isa.row import types as t
from pto.run.machine.agents import Agent, run_cooperatively
from pto.run.machine.core import Cluster, Core
from pto.run.machine.device import Device
from pto.run.reference.compile import Compiler
from pto.target.profile import profile as find_profile
from tests import agreement


def run_agents(agents: Sequence[tuple[Core, Any, list[Any]]]) -> None:
    """Run the agents of one core until all are done."""
    pending = [[Agent.of(*each) for each in agents]]
    run_cooperatively(lambda: pending.pop() if pending else ())


def new_core(profile: str = "a5", side: str = "both") -> Core:
    """An agent with its buffers, outside any launch."""
    chosen = find_profile(profile)
    return Core(Cluster(Device(chosen), 0, 1), chosen, side, 0, 1)


class Bench:
    """Values by name, then a body that uses them.

    >>> bench = Bench("a5")
    >>> bench.tile("a", "vec, 8x16xf32", array); bench.tile("c", "vec, 8x16xf32")
    >>> bench.run("pto.tadd ins(%a, %a : {a}, {a}) outs(%c : {c})")
    >>> bench["c"]
    """

    def __init__(self, profile: str = "a5", side: str = "both") -> None:
        self.core = new_core(profile, side)
        self.values: dict[str, Any] = {}
        self.types: dict[str, str] = {}
        self._next: dict[Space, int] = {}

    def _room(self, space: Space, nbytes: int) -> int:
        start = self._next.get(space, 0)
        self._next[space] = start + -(-nbytes // 512) * 512
        return start

    def tile(
        self,
        name: str,
        type: str,
        values: Any = None,
        *,
        valid: tuple[int, int] | None = None,
        fill: int = 0xA5,
    ) -> Tile:
        """A tile at a fresh address; bytes not given hold `fill`, so that stray writes show."""
        parsed = parse_type(f"!pto.tile_buf<{type}>")
        assert isinstance(parsed, t.TileBuf)
        memory = self.core.memory(parsed.tile.space)
        address = self._room(parsed.tile.space, parsed.tile.nbytes)
        tile = Tile(parsed.tile, memory, address, valid)
        memory.view(address, parsed.tile.nbytes)[:] = fill
        if values is not None:
            array = np.asarray(values)
            target = tile.read()
            target[: array.shape[0], : array.shape[1]] = array.astype(target.dtype, copy=False)
            tile.write(target)
        self.values[name] = tile
        self.types[name] = type_text(parsed)
        return tile

    def pointer(self, name: str, type: str, values: Any) -> np.ndarray[Any, Any]:
        """`!pto.ptr<type>` to a fresh place that holds `values`; returns the live array."""
        parsed = parse_type(f"!pto.ptr<{type}>")
        assert isinstance(parsed, t.Ptr) and isinstance(parsed.elem, t.Scalar)
        kind = parsed.elem.dtype
        assert kind is not None
        array = np.ascontiguousarray(values, dtype=kind.numpy)
        if parsed.space is Space.GM:
            memory: Memory = self.core.device.attach(array)
            address = 0
        else:
            memory = self.core.memory(parsed.space)
            address = self._room(parsed.space, array.nbytes)
            memory.view(address, array.nbytes)[:] = array.reshape(-1).view(np.uint8)
        self.values[name] = Pointer(memory, address, kind)
        self.types[name] = type_text(parsed)
        return memory.view(address, array.nbytes).view(kind.numpy)

    def bytes(self, name: str, elem: str, values: Any) -> np.ndarray[Any, Any]:
        """`!pto.ptr<elem, gm>` to these bytes; returns the live array of bytes."""
        live = self.pointer(name, "ui8, gm", values)
        parsed = parse_type(f"!pto.ptr<{elem}, gm>")
        assert isinstance(parsed, t.Ptr) and isinstance(parsed.elem, t.Scalar)
        self.values[name] = Pointer(self.values[name].memory, 0, parsed.elem.dtype)
        self.types[name] = type_text(parsed)
        return live

    def array(self, name: str, type: str, values: Any) -> np.ndarray[Any, Any]:
        """An argument of this type, as a launch makes it of an array; returns the live array."""
        array = np.ascontiguousarray(values)
        parsed = parse_type(type)
        self.values[name] = self.core.device._value(name, parsed, array)
        self.types[name] = type
        return array

    def scalar(self, name: str, type: str, value: Any) -> None:
        parsed = parse_type(type)
        assert isinstance(parsed, t.Scalar)
        kind = parsed.dtype
        is_float = kind is not None and kind.is_float
        self.values[name] = kind.numpy.type(value) if is_float and kind else int(value)
        self.types[name] = type

    def run(self, body: str, *, results: str = "") -> list[Any]:
        """Execute the body; `{a}` stands for the type of a; `results` is `%x : T; %y : U`."""
        for name, type in self.types.items():
            body = body.replace("{" + name + "}", type)
        args = ", ".join(f"%{n}: {type}" for n, type in self.types.items())
        kinds = [r.split(":")[1].strip() for r in results.split(";") if r.strip()]
        names = [r.split(":")[0].strip() for r in results.split(";") if r.strip()]
        arrow = f" -> ({', '.join(kinds)})" if kinds else ""
        back = f"{', '.join(names)} : {', '.join(kinds)}" if kinds else ""
        text = f"func.func @bench({args}){arrow} {{\n{body}\nreturn {back}\n}}"
        return self._execute(parse(text), text)

    def _execute(self, module: Module, text: str) -> list[Any]:
        def go(agents: Any, compiler: Any) -> list[Any]:
            ((core, values),) = agents
            code = compiler(0).code("bench")
            with np.errstate(all="ignore"):
                if code.can_wait:
                    run_agents([(core, code, values)])
                    return []
                return code.call(core, values)

        given = [(self.core, list(self.values.values()))]
        if Compiler is not agreement.Compiler:  # somebody chose an engine
            return go(given, lambda _: Compiler(module, self.core.profile, self.core.side))
        return agreement.run(given, [module], go, text)

    def __getitem__(self, name: str) -> Any:
        """The whole content of a tile as an array of its logical shape."""
        value = self.values[name]
        return value.read() if isinstance(value, Tile) else value
