"""A bench that runs a body on both engines and compares memory and results, bit for bit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tests.machine
from pto.core.errors import PtoError
from pto.core.memory import Space
from pto.core.pointer import Pointer
from pto.plan.buffers import Placement
from pto.run.jit.compiler import NativeCompiler
from pto.run.jit.emit.unit import Unit
from tests.run.jit.both import same
from tests.vectors import Registers


class BothEngines(Registers):
    """`Registers` whose body also runs as compiled code; nothing in it may be left out."""

    def run(self, body: str, *, results: str = "", all_native: bool = True) -> list[Any]:
        ub = self.core.memory(Space.UB).data
        before = ub.copy()
        wanted = super().run(body, results=results)
        after = ub.copy()
        ub[:] = before
        self.core.registers, self.core.native = {}, None
        got = self._native(body, results, all_native)
        assert np.array_equal(ub, after), np.flatnonzero(ub != after)[:8]
        for mine, other in zip(got, wanted, strict=True):
            _agree(mine, other)
        return got

    def fails(self, body: str, *, results: str = "") -> str:
        """Both engines refuse with the same words and write nothing; the code."""
        ub = self.core.memory(Space.UB).data
        before, said = ub.copy(), list[tuple[str, str]]()
        for run in (super().run, self._native):
            with pytest.raises(PtoError) as caught:
                run(body, results=results)
            found = caught.value.diagnostics[0]
            said.append((found.code, found.message))
            assert np.array_equal(ub, before)
        assert said[0] == said[1]
        return said[0][0]

    def _native(self, body: str, results: str = "", all_native: bool = True) -> list[Any]:
        units: list[Unit] = []

        def native(module: Any, profile: Any, side: str) -> NativeCompiler:
            units.append(Unit())
            return NativeCompiler(units[-1], Placement.nothing(profile), module, profile, side)

        plain, tests.machine.Compiler = tests.machine.Compiler, native  # type: ignore[misc,assignment]
        try:
            got = super().run(body, results=results)
        finally:
            tests.machine.Compiler = plain  # type: ignore[misc]
        if all_native:
            assert not units[0].skipped, dict(units[0].skipped)
        return got


def _agree(mine: Any, other: Any) -> None:
    if isinstance(other, np.ndarray):
        same(mine, other)
    elif isinstance(other, Pointer):
        assert (mine.memory, mine.address, mine.dtype) == (other.memory, other.address, other.dtype)
    else:
        assert mine == other


_SPELLED = {
    "hifloat8": "!pto.hif8",
    "f8e4m3": "f8E4M3FN",
    "f8e5m2": "f8E5M2",
    "e8m0": "f8E8M0FNU",
    "float4_e1m2x2": "!pto.f4E1M2x2",
    "float4_e2m1x2": "!pto.f4E2M1x2",
}


def spelled(name: str) -> str:
    """An element type as programs write it."""
    return _SPELLED.get(name, name.replace("u", "ui") if name.startswith("u") else name)


_FLOATS = (0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 0.5, 2.5, -2.5, 65504.0, 1e-7, 3e38)


def edge_values(kind: Any, count: int, seed: int) -> Any:
    """Random bits, moderate numbers and edges of an element type."""
    rng = np.random.default_rng(seed)
    bits = rng.integers(0, 256, count * kind.itemsize, dtype=np.uint8).view(kind.storage)
    found = bits.view(kind.numpy).copy()
    if kind.numpy == kind.storage and kind.is_float:
        return found
    with np.errstate(all="ignore"):
        if kind.is_float:
            some = (rng.standard_normal(count) * 4).astype(kind.numpy)
            edges = np.array(_FLOATS).astype(kind.numpy)
        else:
            some = rng.integers(0, 8, count).astype(kind.numpy)
            edges = np.array([0, 1, int(kind.max), int(kind.min)], object).astype(kind.numpy)
    found[1::3] = some[1::3]
    at = rng.permutation(count)[: count // 4]
    found[at] = rng.choice(edges, at.size)
    return found
