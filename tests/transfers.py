"""A bench for transfers and the matrix unit: buffers as bytes, numbers written into the text.

In a body `#12` stands for a constant of type i64, `#true` for one of type i1, and `i64*4` for
four types.
"""

from __future__ import annotations

import re
from typing import Any

import ml_dtypes
import numpy as np

from pto.core.memory import Space
from pto.core.pointer import Pointer
from pto.ir.text.parser import parse
from pto.ir.text.types import parse_type, type_text
from pto.isa.row import types as t
from pto.run.launch.host import launch
from tests.machine import Bench

FILL = 0xA5  # what buffers hold before a test writes them: stray writes show


class Transfers(Bench):
    """Pointers at chosen addresses, over buffers filled with a pattern.

    >>> bench = Transfers(); gm = bench.pointer("g", "f32, gm", array); bench.at("u", "f32, ub", 64)
    >>> bench.go("pto.mte_gm_ub %g, %u, #0, #32 nburst(#1, #32, #32) : {g}, {u}, i64*5")
    """

    def __init__(self, profile: str = "a5", side: str = "both") -> None:
        super().__init__(profile, side)
        self.filled: set[Space] = set()

    def memory(self, space: Space) -> np.ndarray[Any, Any]:
        """All bytes of a buffer, live."""
        data = self.core.memory(space).data
        if space not in self.filled:
            data[:] = FILL
            self.filled.add(space)
        return data

    def at(self, name: str, type: str, address: int, values: Any = None) -> np.ndarray[Any, Any]:
        """A pointer to an address of a local buffer; the bytes from there on, live."""
        parsed = parse_type(f"!pto.ptr<{type}>")
        assert isinstance(parsed, t.Ptr) and isinstance(parsed.elem, t.Scalar)
        data = self.memory(parsed.space)[address & 0xFFFF if parsed.space is FIXPIPE else address :]
        self.values[name] = Pointer(self.core.memory(parsed.space), address, parsed.elem.dtype)
        self.types[name] = type_text(parsed)
        if values is not None:
            raw = np.ascontiguousarray(values).reshape(-1).view(np.uint8)
            data[: raw.size] = raw
        return data

    def go(self, body: str) -> None:
        self.run(with_constants(body))


FIXPIPE = Space.FIXPIPE


def with_constants(body: str) -> str:
    """The body with its numbers as constants before it."""
    body = re.sub(r"i64\*(\d+)", lambda m: ", ".join(["i64"] * int(m[1])), body)
    lines = [
        f"%k{n.replace('-', 'm')} = arith.constant {n} : i64"
        for n in sorted(set(re.findall(r"#(-?\d+)", body)))
    ]
    lines += [f"%{b} = arith.constant {b}" for b in ("true", "false") if f"#{b}" in body]
    body = re.sub(r"#(-?\d+)", lambda m: f"%k{m[1].replace('-', 'm')}", body)
    return "\n".join([*lines, re.sub(r"#(true|false)", r"%\1", body)])


def run_kernel(arguments: str, body: str, arrays: list[Any], profile: str = "a5") -> None:
    """A whole kernel with sections; the arrays are changed in place."""
    launch(
        parse(
            f'module attributes {{pto.target_arch = "{profile}"}} {{\n'
            f"func.func @kernel({arguments}) attributes {{pto.aicore}} {{\n"
            f"{with_constants(body)}\nreturn\n}}\n}}"
        ),
        args=arrays,
    )


NAMES = {  # of NumPy types in programs
    np.float16: "f16",
    np.float32: "f32",
    np.int8: "i8",
    np.int32: "i32",
    ml_dtypes.bfloat16: "bf16",
    ml_dtypes.float8_e4m3fn: "f8E4M3FN",
    ml_dtypes.float8_e5m2: "f8E5M2",
}


def up(n: int, step: int) -> int:
    """n, up to a multiple of step."""
    return -(-n // step) * step


def nz(matrix: np.ndarray[Any, Any], rows: int | None = None) -> np.ndarray[Any, Any]:
    """A matrix as strips of 32 bytes of columns, each of all rows, padded with zeros."""
    wide = 32 // matrix.dtype.itemsize
    height, width = matrix.shape
    whole = np.zeros((rows or up(height, 16), up(width, wide)), matrix.dtype)
    whole[:height, :width] = matrix
    starts = range(0, whole.shape[1], wide)
    return np.concatenate([whole[:, c : c + wide].reshape(-1) for c in starts])


def places(m: int, n: int, pitch: int) -> np.ndarray[Any, Any]:
    """The index in L0C of each element: blocks of 16 columns, all rows of one before the next."""
    rows, cols = np.arange(m)[:, None], np.arange(n)[None, :]
    return (cols // 16 * pitch + rows) * 16 + cols % 16


def accumulated(raw: np.ndarray[Any, Any], m: int, n: int, kind: Any = np.float32) -> Any:
    """The matrix in L0C."""
    return raw.view(kind)[places(m, n, up(m, 16))]
