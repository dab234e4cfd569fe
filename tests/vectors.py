"""A bench for registers: masks and vectors given as arrays, results handed back as arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from pto.core.dtypes import dtype
from tests.machine import Bench

REGISTER = 256  # bytes


def mask_image(bits: int, lanes: int | Sequence[int] | None) -> np.ndarray[Any, Any]:
    """The 256 bits of a mask: the first lanes, those listed, or all; lane i is bit i*bits/8."""
    step, image = bits // 8, np.zeros(REGISTER, bool)
    count = REGISTER // step
    chosen = range(count) if lanes is None else range(lanes) if isinstance(lanes, int) else lanes
    image[[lane * step for lane in chosen]] = True
    return image


class Registers(Bench):
    """Values by name, as in `Bench`, and registers and masks too.

    >>> bench = Registers(); bench.vreg("a", "f32", np.arange(64)); bench.mask("m", 32, 5)
    >>> bench.one("%r = pto.vabs %a, %m : {a}, {m} -> {a}", "!pto.vreg<64xf32>")
    """

    def vreg(self, name: str, elem: str, values: Any) -> np.ndarray[Any, Any]:
        """A register; fewer values than lanes are repeated."""
        kind = dtype(elem)
        array = np.resize(np.asarray(values).astype(kind.numpy), kind.lanes)
        self.values[name] = array
        self.types[name] = f"!pto.vreg<{kind.lanes}x{elem}>"
        return array

    def mask(self, name: str, bits: int, lanes: int | Sequence[int] | None = None) -> None:
        self.values[name] = mask_image(bits, lanes)
        self.types[name] = f"!pto.mask<b{bits}>"

    def one(self, body: str, type: str) -> Any:
        """The value of %r after the body."""
        (value,) = self.run(body, results=f"%r : {type}")
        return value

    def two(self, body: str, first: str, second: str | None = None) -> list[Any]:
        """The values of %r and %s."""
        return self.run(body, results=f"%r : {first}; %s : {second or first}")


def reg(elem: str) -> str:
    """The type of a register of these elements."""
    return f"!pto.vreg<{dtype(elem).lanes}x{elem}>"
