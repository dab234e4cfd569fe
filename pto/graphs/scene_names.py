"""The names that a scene test imports from its project, as far as one chip needs them."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, IntEnum
from importlib import import_module
from typing import Any

from pto.core.errors import Diagnostic, PtoError, fail
from pto.lang.call.place import here


class ArgDirection(Enum):
    IN = "in"
    OUT = "out"
    INOUT = "inout"
    SCALAR = "scalar"


# Element types in the order of the runtime's numbers: torch's name, the runtime's.
ELEMENTS = {
    "float32": "FLOAT32",
    "float16": "FLOAT16",
    "int32": "INT32",
    "int16": "INT16",
    "int8": "INT8",
    "uint8": "UINT8",
    "bfloat16": "BFLOAT16",
    "int64": "INT64",
    "uint64": "UINT64",
    "uint16": "UINT16",
    "uint32": "UINT32",
    "bool": "BOOL",
    "float8_e4m3fn": "FP8E4M3FN",
    "float8_e8m0fnu": "FP8E8M0",
    "float4_e2m1fn_x2": "FP4E2M1",
}
DataType = IntEnum("DataType", list(ELEMENTS.values()), start=0)


def torch_bytes(tensor: Any) -> Any:
    """The elements of a tensor as bytes; those of a contiguous tensor itself."""
    torch: Any = import_module("torch")
    return tensor.contiguous().reshape(-1).view(torch.uint8).numpy()


def torch_dtype_to_datatype(kind: Any) -> DataType:
    name = str(kind).removeprefix("torch.")
    if name not in ELEMENTS:
        raise fail("PTO-U323", f"a tensor is {name}, which the runtime does not accept")
    return DataType[ELEMENTS[name]]


def scalar_to_uint64(value: Any) -> int:
    """A scalar as the 64-bit word that a kernel receives."""
    plain = getattr(value, "value", value)
    if isinstance(value, ctypes.c_double):
        return int.from_bytes(struct.pack("<d", plain), "little")
    if isinstance(plain, float):
        return int.from_bytes(struct.pack("<f", plain), "little")
    return int(plain) & ((1 << 64) - 1)


class SceneTestLevel(IntEnum):
    CHIP = 2
    NODE = 3
    NETWORK1 = 4


@dataclass
class TensorArg:
    name: str
    value: Any


@dataclass
class Scalar:
    name: str
    value: Any


class _UnknownArgument(PtoError, AttributeError):
    """A test uses an argument name that does not exist."""


class TaskArgsBuilder:
    """Arguments in order, each also an attribute."""

    def __init__(self, *specs: TensorArg | Scalar) -> None:
        self.specs: list[TensorArg | Scalar] = list(specs)

    def __getattr__(self, name: str) -> Any:
        for spec in self.__dict__.get("specs", ()):
            if spec.name == name:
                return spec.value
        specs = self.__dict__.get("specs", ())
        message = f"there is no argument {name!r}; there are {', '.join(s.name for s in specs)}"
        raise _UnknownArgument(Diagnostic("PTO-U281", message, here()))

    def add_tensor(self, name: str, value: Any) -> None:
        self.specs.append(TensorArg(name, value))

    def add_scalar(self, name: str, value: Any) -> None:
        self.specs.append(Scalar(name, value))

    def tensor_names(self) -> list[str]:
        return [s.name for s in self.specs if isinstance(s, TensorArg)]

    def clone(self) -> TaskArgsBuilder:
        copies = [
            TensorArg(s.name, s.value.clone()) if isinstance(s, TensorArg) else s
            for s in self.specs
        ]
        return TaskArgsBuilder(*copies)


class SceneTestCase:
    """The base of a scene test."""

    RTOL = 1e-5
    ATOL = 1e-5
    SKIP_GOLDEN = False
    CALLABLE: Mapping[str, Any] = {}
    CASES: Sequence[Mapping[str, Any]] = ()
    run_case: Callable[[], None]  # set by what runs a scene of several chips

    def test_run(self, st_platform: str, st_worker: Any, request: Any) -> None:
        """Run the case; a test that overrides this uses the worker itself."""
        self.run_case()

    def generate_args(self, params: Mapping[str, Any]) -> TaskArgsBuilder:
        raise NotImplementedError

    def compute_golden(self, args: TaskArgsBuilder, params: Mapping[str, Any]) -> None:
        raise NotImplementedError

    def compare_outputs(
        self, test_args: Any, golden_args: Any, output_names: Sequence[str], params: Any
    ) -> None:
        """Every output within the tolerances of the class."""
        for name in output_names:
            self.compare_tensor(name, getattr(test_args, name), getattr(golden_args, name))

    def compare_tensor(self, name: str, ours: Any, golden: Any, equal_nan: bool = False) -> None:
        torch: Any = import_module("torch")
        if ours.shape != golden.shape:
            shapes = f"shape {list(ours.shape)}, and the golden has {list(golden.shape)}"
            raise AssertionError(f"{name} has {shapes}")
        if not torch.allclose(ours, golden, rtol=self.RTOL, atol=self.ATOL, equal_nan=equal_nan):
            far = (ours.to(torch.float64) - golden.to(torch.float64)).abs()
            wrong = far > self.ATOL + self.RTOL * golden.to(torch.float64).abs()
            raise AssertionError(
                f"{name}: {int(wrong.sum())} of {wrong.numel()} elements differ, by up to"
                f" {far.nan_to_num().max().item():g} (rtol {self.RTOL:g}, atol {self.ATOL:g})"
            )

    @classmethod
    def run_module(cls, *names: str) -> None:
        """Run as a script; here the caller runs the cases."""


def scene_test(level: int, runtime: str = "") -> Any:
    def mark(scene: type) -> type:
        scene.scene_level, scene.scene_runtime = int(level), runtime  # type: ignore[attr-defined]
        return scene

    return mark


def scene_level(level: int) -> Any:
    def mark(scene: Any) -> Any:
        scene.scene_level = int(level)
        return scene

    return mark
