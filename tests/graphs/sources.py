"""Orchestrations and kernels for the tests, and the process that runs them."""

from collections.abc import Iterable
from pathlib import Path

import numpy as np

from pto.graphs.process import ArgTensor, GraphSource, KernelSource

RUNTIME = Path(__file__).parent / "runtime"
ROWS, COLS = 16, 64

# Kernel bodies: `rows x 64` floats from each tensor, `k` scalars behind the tensors.
_KERNEL = """
#include <pto/pto-inst.hpp>
#include "tensor.h"
#include "intrinsic.h"
using namespace pto;
using Part = GlobalTensor<float, Shape<1, 1, 1, 16, 64>, Stride<1, 1, 1, 64, 1>>;
using Rows = Tile<TileType::Vec, float, 16, 64>;
static float* at(int64_t word)
{
    ChipTensor* t = (ChipTensor*)word;
    return (float*)t->buffer.addr + t->start_offset;
}
extern "C" __aicore__ void kernel_entry(__gm__ int64_t* args)
{
    Rows a, b;
    TASSIGN(a, 0x0);
    TASSIGN(b, 0x2000);
    %s
}
"""
_LOADED = "set_flag(PIPE_MTE2, PIPE_V, EVENT_ID0); wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);"
_READY = "set_flag(PIPE_V, PIPE_MTE3, EVENT_ID0); wait_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);"
BODIES = {
    0: (
        "add_number",  # args[1] = args[0] + scalar
        f"Part x(at(args[0])), y(at(args[1])); TLOAD(a, x); {_LOADED}"
        f" TADDS(a, a, (float)args[2]); {_READY} TSTORE(y, a);",
    ),
    1: (
        "add",  # args[2] = args[0] + args[1]
        f"Part x(at(args[0])), y(at(args[1])), z(at(args[2])); TLOAD(a, x); TLOAD(b, y); {_LOADED}"
        f" TADD(a, a, b); {_READY} TSTORE(z, a);",
    ),
    2: (
        "accumulate",  # args[1] += args[0], atomically
        f"Part x(at(args[0])), y(at(args[1])); TLOAD(a, x); {_LOADED} TADDS(a, a, 0.0f); {_READY}"
        " TSTORE<Rows, Part, AtomicType::AtomicAdd>(y, a);",
    ),
    3: ("set_first", "at(args[0])[0] = (float)args[1];"),  # scalar code
    4: (
        "number_blocks",  # block b writes -1 - b
        "at(args[0])[get_block_idx(args)] = -1.0f - get_block_idx(args);",
    ),
    5: (
        "number_lanes",  # lane n writes 10 n and the register
        "const int lane = get_sub_block_id(args);"
        " at(args[0])[lane] = 10.0f * lane + get_subblockid();",
    ),
    6: ("waits", "wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);"),  # for ever
    7: (
        "unflagged",  # stores a tile without waiting for its load
        "Part x(at(args[0])), y(at(args[1])); TLOAD(a, x); TSTORE(y, a);",
    ),
    8: (
        "store_columns",  # 64 of 128 columns, from scalar 1 on; 2 and 3: step of a block and a lane
        "using Columns = GlobalTensor<float, Shape<1, 1, 1, 16, 64>, Stride<1, 1, 1, 128, 1>>;"
        " const int64_t moved = args[4] * get_block_idx(args) + args[5] * get_sub_block_id(args);"
        f" Part x(at(args[0])); Columns y(at(args[1]) + args[3] + moved); TLOAD(a, x); {_LOADED}"
        f" TADDS(a, a, 0.0f); {_READY}"
        " if (args[2]) TSTORE<Rows, Columns, AtomicType::AtomicAdd>(y, a); else TSTORE(y, a);",
    ),
    9: (
        "store_at",  # a scalar is the address
        f"Part x(at(args[0])), y((float*)args[1]); TLOAD(a, x); {_LOADED} TADDS(a, a, 0.0f);"
        f" {_READY} TSTORE(y, a);",
    ),
    10: ("clear_first", "at(args[0])[0] = 0.0f;"),  # scalar code
    11: ("crashes", "*(volatile int*)8 = 1;"),
}
# One orchestration has all bodies, chosen by its scalar: a build takes seconds.
_ORCHESTRATION = """
#include "pto_orchestration_api.h"
extern "C" void entry(const ChipTaskArgs& given)
{
    const ChipTensor& x = given.tensor(0).ref();
    const ChipTensor& y = given.tensor(1).ref();
    TensorCreateInfo info{{16, 64}, 2, DataType::FLOAT32, false, 0};
    (void)x, (void)y, (void)info;
    switch (given.scalar(0)) {
%s
    }
}
"""


def kernel(body: str) -> str:
    """The source of a kernel with this body."""
    return _KERNEL % body


def kernels(folder: Path) -> tuple[KernelSource, ...]:
    """The kernels as files of a folder."""
    made: list[KernelSource] = []
    for number, (name, text) in BODIES.items():
        path = folder / f"{name}.cpp"
        path.write_text(kernel(text), encoding="utf-8")
        made.append(KernelSource(number, name, path, "aiv"))
    return tuple(made)


def written(folder: Path, bodies: Iterable[str], own: tuple[KernelSource, ...]) -> GraphSource:
    """The sources of a graph; scalar n chooses the n-th body of its orchestration."""
    path = folder / "orchestration.cpp"
    cases = (f"    case {n}: {{\n{body}\n    break; }}\n" for n, body in enumerate(bodies))
    path.write_text(_ORCHESTRATION % "".join(cases), encoding="utf-8")
    return GraphSource(path, "entry", "a2a3", own, RUNTIME)


def tensors(*uses: str, body: int = 0) -> list[ArgTensor | int]:
    """One 16 x 64 tensor for each use, and the scalar; element i of tensor n is i + 1000 n."""
    made: list[ArgTensor | int] = []
    for n, use in enumerate(uses):
        data = np.arange(ROWS * COLS, dtype=np.float32) + 1000 * n
        made.append(ArgTensor("xyzw"[n], data.view(np.uint8).copy(), (ROWS, COLS), "FLOAT32", use))
    return [*made, body]


def values(tensor: ArgTensor | int) -> np.ndarray:
    assert isinstance(tensor, ArgTensor)
    return tensor.data.view(np.float32).reshape(ROWS, COLS)
