"""Programs whose numbers come from outside: wild ones must end alike on both engines, never crash.

`python -m tests.run.jit.faults SEED COUNT` runs so many random launches of each family; it prints
how many ended with which code.
"""

from __future__ import annotations

import random
import sys
from collections import Counter
from functools import cache
from typing import Any

import numpy as np

from pto.core.errors import PtoError
from pto.ir.graph import Module
from pto.ir.text.parser import parse
from pto.run.launch.host import launch
from tests.run.jit.both import same

TILE = "!pto.tile_buf<vec, 16x64xf32>"
SMALL = "!pto.tile_buf<vec, 8x16xf32>"
OPEN = "!pto.tile_buf<vec, 16x64xf32, valid=?x?>"
_VIEW = "!pto.tensor_view<?x?xf32>"
_UB = "!pto.ptr<f32, ub>"
_GM = "!pto.ptr<f32>"
_REG = "!pto.vreg<64xf32>"
_INDEX = "!pto.vreg<64xi32>"
_SET = '%all = pto.pset_b32 "PAT_ALL" : !pto.mask<b32>\n'
_WHERE = (
    "%small = arith.trunci %a : i64 to i32\n"
    f"%where = pto.vdup %small, %all : i32, !pto.mask<b32> -> {_INDEX}\n"
)
_LOADED = f"%v = pto.vlds %p[%c0] : {_UB} -> {_REG}\n"


def _vector(body: str) -> str:
    return "pto.vecscope {\n" + _SET + _LOADED + body + "}\n"


def _tile(name: str, address: str, type: str, more: str = "") -> str:
    return f"%{name} = pto.alloc_tile addr = %{address}{more} : {type}\n"


def _view(shape: str, strides: str) -> str:
    return f"%view = pto.make_tensor_view %x, shape = [{shape}], strides = [{strides}] : {_VIEW}\n"


_PLAIN_VIEW = _view("%i16, %i64", "%i64, %c1")
_LOAD = f"pto.tload ins(%view : {_VIEW}) outs(%t : {TILE})\n"
_PART = "!pto.partition_tensor_view<?x?xf32>"

FAMILIES: dict[str, str] = {
    "vector load": _vector(f"%w = pto.vlds %p[%ia] : {_UB} -> {_REG}\n"),
    "vector store": _vector(f"pto.vsts %v, %p[%ia], %all : {_REG}, {_UB}, !pto.mask<b32>\n"),
    "one element loaded": _vector(
        f'%w = pto.vlds %p[%ia] {{dist = "BRC_B32"}} : {_UB} -> {_REG}\n'
    ),
    "unpacking load": _vector(f'%w = pto.vlds %p[%ia] {{dist = "UNPK_B32"}} : {_UB} -> {_REG}\n'),
    "gather": _vector(
        f"{_WHERE}%w = pto.vgather2 %p, %where, %all : {_UB}, {_INDEX}, !pto.mask<b32> -> {_REG}\n"
    ),
    "gather of blocks": _vector(
        f"{_WHERE}%w = pto.vgatherb %p, %where, %all : {_UB}, {_INDEX}, !pto.mask<b32> -> {_REG}\n"
    ),
    "scatter": _vector(
        f"{_WHERE}pto.vscatter %v, %p, %where, %all : {_REG}, {_UB}, {_INDEX}, !pto.mask<b32>\n"
    ),
    "pointer sums": _vector(
        f"%q = pto.addptr %p, %ia : {_UB} -> {_UB}\n%r = pto.addptr %q, %ib : {_UB} -> {_UB}\n"
        f"%w = pto.vlds %r[%c0] : {_UB} -> {_REG}\n"
    ),
    "loop of stores": (
        "%many = arith.minui %ib, %i64 : index\n"
        "scf.for %i = %c0 to %many step %c1 {\n"
        "%at = arith.muli %i, %ia : index\n"
        + _vector(f"pto.vsts %v, %p[%at], %all : {_REG}, {_UB}, !pto.mask<b32>\n")
        + "}\n"
    ),
    "scalar in global memory": (
        f"%s = pto.load_scalar %x[%ia] : {_GM} -> f32\npto.store_scalar %s, %y[%ib] : {_GM}, f32\n"
    ),
    "transfer in": (
        f"pto.mte_gm_ub %x, %p, %z, %a nburst(%b, %c, %d) : {_GM}, {_UB}, i64, i64, i64, i64, i64\n"
    ),
    "transfer out": (
        f"pto.mte_ub_gm %p, %y, %a nburst(%b, %c, %d) : {_UB}, {_GM}, i64, i64, i64, i64\n"
    ),
    "transfer in loops": (
        "pto.mte_gm_ub %x, %p, %z, %k32 nburst(%one, %k32, %k32) loop(%a, %b, %c) "
        f": {_GM}, {_UB}, i64, i64, i64, i64, i64, loop i64, i64, i64\n"
    ),
    "tile address": _tile("t", "a", TILE) + _PLAIN_VIEW + _LOAD,
    "tiles that overlap": (
        _tile("t", "z", TILE)
        + _tile("u", "a", TILE)
        + _tile("w", "b", TILE)
        + f"pto.tadd ins(%t, %u : {TILE}, {TILE}) outs(%w : {TILE})\n"
    ),
    "valid region": (
        _tile("t", "z", OPEN, " valid_row = %ia valid_col = %ib")
        + f"pto.texp ins(%t : {OPEN}) outs(%t : {OPEN})\n"
    ),
    "valid region set": (
        _tile("t", "z", OPEN, " valid_row = %i16 valid_col = %i16")
        + f"pto.set_validshape %t, %ia, %ib : {OPEN}\n"
        + f"pto.tadds ins(%t, %f : {OPEN}, f32) outs(%t : {OPEN})\n"
    ),
    "view": _tile("t", "z", TILE) + _view("%ia, %ib", "%ic, %id") + _LOAD,
    "part of a view": (
        _tile("t", "z", TILE)
        + _PLAIN_VIEW
        + f"%part = pto.partition_view %view, offsets = [%ia, %ib], sizes = [%ic, %id] : {_VIEW} "
        + f"-> {_PART}\npto.tload ins(%part : {_PART}) outs(%t : {TILE})\n"
    ),
    "stored part": (
        _tile("t", "z", TILE)
        + _PLAIN_VIEW
        + f"%part = pto.partition_view %view, offsets = [%ia, %ib], sizes = [%i16, %i64] : {_VIEW} "
        + f"-> {_PART}\npto.tstore ins(%t : {TILE}) outs(%part : {_PART})\n"
    ),
    "window cut out": (
        _tile("t", "z", TILE)
        + _tile("u", "k8192", SMALL)
        + f"pto.textract ins(%t, %ia, %ib : {TILE}, index, index) outs(%u : {SMALL})\n"
    ),
    "window pasted in": (
        _tile("t", "z", TILE)
        + _tile("u", "k8192", SMALL)
        + f"pto.tinsert ins(%u, %ia, %ib : {SMALL}, index, index) outs(%t : {TILE})\n"
    ),
    "one element": (
        _tile("t", "z", TILE)
        + f"%e = pto.tgetval ins(%t, %ia : {TILE}, index) outs : f32\n"
        + f"pto.tsetval ins(%ib, %e : index, f32) outs(%t : {TILE})\n"
    ),
}
_HEAD = """\
    %z = arith.constant 0 : i64
    %one = arith.constant 1 : i64
    %k32 = arith.constant 32 : i64
    %k8192 = arith.constant 8192 : i64
    %f = arith.constant 1.5 : f32
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %i16 = arith.constant 16 : index
    %i64 = arith.constant 64 : index
    %p = pto.castptr %z : i64 -> !pto.ptr<f32, ub>
"""
NUMBERS = (
    *(0, 1, 2, 3, 8, 15, 16, 17, 31, 32, 33, 48, 63, 64, 65, 128, 255, 256, 1024, 4096),
    *(1 << 18, (1 << 18) - 256, (1 << 18) - 255, (1 << 16) - 64, (1 << 16) - 63, 1 << 16),
    *(-1, -4, -32, -64, -256, 1 << 31, (1 << 31) - 1, 1 << 32, 1 << 40, -(1 << 40)),
)
# An address is a number of 64 bits: compiled code wraps where the reference still counts on, so
# offsets in elements go no farther in the families that compute with them.
EXTREMES = (1 << 61, 1 << 62, (1 << 63) - 1, -(1 << 63), -(1 << 62))
_COMPUTE = (
    "load",
    "store",
    "gather",
    "scatter",
    "pointer",
    "scalar",
    "unpack",
    "one element loaded",
)


@cache
def program(family: str) -> Module:
    casts = "".join(f"    %i{n} = arith.index_cast %{n} : i64 to index\n" for n in "abcd")
    numbers = ", ".join(f"%{n}: i64" for n in "abcd")
    return parse(
        'module attributes {pto.target_arch = "a5"} {\n'
        f"  func.func @k(%x: {_GM}, %y: {_GM}, {numbers}) {{\n"
        f"{_HEAD}{casts}{FAMILIES[family]}    return\n  }}\n}}\n"
    )


def outcome(engine: str, family: str, numbers: tuple[int, ...]) -> tuple[Any, list[Any]]:
    arrays = [np.arange(1024, dtype=np.float32), np.zeros(1024, np.float32)]
    try:
        launch(program(family), args=[*arrays, *numbers], engine=engine)
    except PtoError as error:
        return [(d.code, d.message, d.loc) for d in error.diagnostics], arrays
    return "fine", arrays


def alike(family: str, numbers: tuple[int, ...]) -> str:
    """Both engines say and leave the same; the code, or `fine`."""
    (said, arrays), (others, theirs) = (outcome(e, family, numbers) for e in ("reference", "jit"))
    assert said == others, f"{family} {numbers}: {said} / {others}"
    for mine, other in zip(arrays, theirs, strict=True):
        same(other, mine)
    return said if said == "fine" else said[0][0]


def _number(chosen: random.Random, wild: tuple[int, ...]) -> int:
    """Small, edges and extremes, or any multiple of a block."""
    kind = chosen.random()
    if kind < 0.45:
        return chosen.randrange(0, 20)
    return chosen.choice(wild) if kind < 0.8 else 64 * chosen.randrange(0, 5_000)


def main() -> None:
    seed, count = int(sys.argv[1]), int(sys.argv[2])
    chosen, found = random.Random(seed), Counter[str]()
    for family in sys.argv[3:] or FAMILIES:
        for _ in range(count):
            wild = NUMBERS if any(word in family for word in _COMPUTE) else NUMBERS + EXTREMES
            numbers = tuple(_number(chosen, wild) for _ in "abcd")
            print(family, numbers, file=sys.stderr)  # the last line tells who crashed
            found[f"{family}: {alike(family, numbers)}"] += 1
    for key, times in sorted(found.items()):
        print(f"{times:5} {key}")


if __name__ == "__main__":
    main()
