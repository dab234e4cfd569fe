"""The arguments of a host's launch, converted to arguments of the program's function.

Memory is passed unchanged. A number passed by value keeps its bits if the program reads it as
another type of the same size: hosts pass an f16 as the uint16_t that holds it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from pto.core.dtypes import DType, decode
from pto.core.errors import PtoError, fail
from pto.gym.host import KernelCall
from pto.ir.graph import Module, Operation
from pto.ir.text.types import type_text
from pto.isa.row import types as t

_MOST_NAMES = 8
_LEAST = 64  # bytes of an argument that is not used
Argument = npt.NDArray[Any] | int | float


def functions_of(module: Module) -> dict[str, Operation]:
    """Functions by name; of a cube and a vector part with one name, either."""
    return {f.symbol: f for f in module.functions() if f.has_body}


def arguments_of(functions: Mapping[str, Operation], launch: KernelCall) -> list[Argument]:
    """The arguments of `launch` for the parameters of its function."""
    function = functions.get(launch.kernel)
    if function is None:
        names = ", ".join(f"@{name}" for name in list(functions)[:_MOST_NAMES])
        raise _misfit(launch, f"the program has no @{launch.kernel}, only {names}")
    inputs, count = function.signature.inputs, len(launch.arguments)
    if count > len(inputs) or _are_used(function, count):
        counts = f"{count} arguments, and the function takes {len(inputs)}"
        raise _misfit(launch, f"{launch.kernel} is launched with {counts}")
    rest: list[Argument] = [
        0 if isinstance(wanted, t.Scalar) else _elements(np.zeros(_LEAST, np.uint8), wanted)
        for wanted in inputs[count:]
    ]
    return [*(_argument(launch, i, inputs) for i in range(count)), *rest]


def _are_used(function: Operation, first: int) -> bool:
    """True if a parameter from `first` on is used: hosts leave out unused ones."""
    rest = function.regions[0].block.args[first:]
    return any(value in rest for op in function.walk() for value in op.operands)


def _argument(launch: KernelCall, index: int, inputs: Sequence[t.Type]) -> Argument:
    argument, wanted = launch.arguments[index], inputs[index]
    if isinstance(argument, np.ndarray):
        if isinstance(wanted, t.Scalar):
            raise _misfit(launch, f"{_named(launch, index)} is memory, not a {type_text(wanted)}")
        return _elements(argument, wanted)
    if not isinstance(wanted, t.Scalar):
        raise _misfit(launch, f"{_named(launch, index)} is a number, not a {type_text(wanted)}")
    if wanted.dtype is None or not wanted.dtype.is_float:
        if argument.dtype.kind == "f":
            raise _misfit(
                launch, f"{_named(launch, index)} is a {argument.dtype}, not a {type_text(wanted)}"
            )
        return int(argument)
    return _as_float(launch, index, argument, wanted.dtype)


def _elements(memory: npt.NDArray[np.uint8], wanted: t.Type) -> npt.NDArray[Any]:
    """Bytes of a host as an array of the program's element type, without a partial element."""
    elem = getattr(wanted, "elem", None)
    kind = elem.dtype if isinstance(elem, t.Scalar) else None
    if kind is None:
        return memory
    return memory[: memory.size // kind.itemsize * kind.itemsize].view(kind.numpy)


def _as_float(launch: KernelCall, index: int, number: np.generic, wanted: DType) -> float:
    raw = np.frombuffer(number.tobytes(), np.uint8)
    if raw.size != wanted.itemsize:
        sizes = f"{raw.size} bytes where the function reads {wanted.itemsize} ({wanted})"
        raise _misfit(launch, f"{_named(launch, index)} is a {number.dtype} of {sizes}")
    value: Any = decode(wanted, raw.view(wanted.storage))
    return float(value[0])


def _named(launch: KernelCall, index: int) -> str:
    return f"argument {index + 1} of {launch.kernel}"


def _misfit(launch: KernelCall, message: str) -> PtoError:
    return fail("PTO-U068", message, loc=launch.loc)
