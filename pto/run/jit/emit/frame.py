"""Values in the argument buffer, in the format of `runtime/values.py`, and parameters of functions
that compiled code calls."""

from __future__ import annotations

from pto.run.jit.llvm import lane_masks as masks
from pto.run.jit.llvm.text import I64, Text, Val
from pto.run.jit.runtime.values import Lowered, Mask, Vector


def put(x: Text, native: Lowered, offset: int) -> None:
    """Store a value; a mask takes a byte for each bit."""
    at = x.at("%frame", offset)
    if isinstance(native, Mask):
        masks.to_frame(x, native, at)
    elif isinstance(native, Vector) and native.dtype is None:
        masks.bits_to_frame(x, native.count, native.name, at)
    else:
        for n, (type, name) in enumerate(native.parts):
            x.store(type, name, x.at("%frame", offset + 8 * n))


def get(x: Text, form: Lowered, offset: int) -> Lowered:
    """Read a value of this form."""
    at = x.at("%frame", offset)
    if isinstance(form, Mask):
        return masks.from_frame(x, at)
    if isinstance(form, Vector) and form.dtype is None:
        return form.renamed([masks.bits_from_frame(x, form.count, at)])
    names = [x.load(ty, x.at("%frame", offset + 8 * n)) for n, ty in enumerate(form.types)]
    return form.renamed(names)


class Parameters:
    """The arguments of a call, and their names inside the function: %p0, %p1, .. Integers of 64
    bits that are known now are not passed."""

    def __init__(self, *given: tuple[str, Val]) -> None:
        self.given = list(given)

    def name(self, value: Val, type: str = I64) -> Val:
        """The name of a value inside the function; equal values are one argument."""
        if isinstance(value, int) and type == I64:
            return value
        if (type, value) in self.given:
            return f"%p{self.given.index((type, value))}"
        return self.add(type, value)

    def add(self, type: str, value: Val) -> str:
        """The name of one more argument."""
        self.given.append((type, value))
        return f"%p{len(self.given) - 1}"

    @property
    def listed(self) -> str:
        """The arguments of the call."""
        return ", ".join(f"{type} {value}" for type, value in self.given)

    @property
    def types(self) -> list[str]:
        return [type for type, _ in self.given]
