"""Programs that reach outside: arrays and buffers lie between pages that nobody may touch.

Where compiled code would read or write there, the process dies; where it reaches into other memory
of the process, the reference engine says otherwise. `python -m tests.guard_pages 2000 [SEED]` runs
many, in processes of their own, and says how many. The exit status is 1 if one of them dies or two
engines disagree.
"""

from __future__ import annotations

import ctypes
import faulthandler
import mmap
import random
import subprocess
import sys
import warnings
from collections import Counter
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from pto.core import memory
from pto.core.errors import PtoError
from pto.ir.graph import Module
from pto.ir.text.parser import parse
from pto.run.launch.host import launch

Array = np.ndarray[Any, Any]
PAGE = mmap.PAGESIZE
ROWS, COLS = 16, 64
_LIBC = ctypes.CDLL(None, use_errno=True)
_kept: list[mmap.mmap] = []


def guarded(nbytes: int, at_end: bool = True) -> Array:
    """Zeros whose last byte (or first) is followed (led) by a page that faults."""
    inner = -(-nbytes // PAGE) * PAGE
    area = mmap.mmap(-1, inner + 2 * PAGE)
    _kept.append(area)
    start = ctypes.addressof(ctypes.c_char.from_buffer(area))
    for page in (start, start + PAGE + inner):
        if _LIBC.mprotect(ctypes.c_void_p(page), ctypes.c_size_t(PAGE), 0):
            raise OSError(ctypes.get_errno(), "mprotect")
    offset = PAGE + (inner - nbytes if at_end else 0)
    return np.frombuffer(area, np.uint8, nbytes, offset)


def _array(rng: random.Random, elem: Any, count: int) -> Array:
    array = guarded(count * np.dtype(elem).itemsize, rng.random() < 0.7).view(elem)
    array[...] = np.arange(count) % 100
    return array


# ---- what a program does with numbers it is given: text of the body, and the names of numbers

_TILE = "!pto.tile_buf<vec, 16x64xf32>"
_WORDS = "!pto.tile_buf<vec, 16x64xi32>"
_VIEW, _PART = "!pto.tensor_view<?x?xf32>", "!pto.partition_tensor_view<16x64xf32>"
_LOAD = f"pto.tload ins(%w : {_PART}) outs(%t : {_TILE})"
_STORE = f"pto.tstore ins(%t : {_TILE}) outs(%w : {_PART})"
_WINDOW = f"""%v = pto.make_tensor_view %p, shape = [%a, %b], strides = [%c, %c1] : {_VIEW}
  %w = pto.partition_view %v, offsets = [%d, %e], sizes = [%c16, %c64] : {_VIEW} -> {_PART}"""
_POINTED = f"""%p = pto.addptr %x, %a : !pto.ptr<f32, gm> -> !pto.ptr<f32, gm>
  %v = pto.make_tensor_view %p, shape = [%c16, %c64], strides = [%b, %c1] : {_VIEW}
  %w = pto.partition_view %v, offsets = [%c0, %c0], sizes = [%c16, %c64] : {_VIEW} -> {_PART}"""
_INDICES = """%vi = pto.make_tensor_view %i, shape = [%c16, %c64], strides = [%c64, %c1]
    : !pto.tensor_view<16x64xi32>
  pto.tload ins(%vi : !pto.tensor_view<16x64xi32>) outs(%k : !pto.tile_buf<vec, 16x64xi32>)
  %v = pto.make_tensor_view %x, shape = [%c16, %c64], strides = [%c64, %c1]
    : !pto.tensor_view<16x64xf32>"""
_TABLE = "!pto.tensor_view<16x64xf32>"
_UB = "%ub = pto.castptr %a : i64 -> !pto.ptr<f32, ub>"
_BURST = "nburst(%b, %c, %d)"
_GM_UB = "!pto.ptr<f32, gm>, !pto.ptr<f32, ub>, i64, i64, i64, i64, i64"
_UB_GM = "!pto.ptr<f32, ub>, !pto.ptr<f32, gm>, i64, i64, i64, i64"
_SCOPE = "pto.vecscope {{ {} }}"
_ALL = '%m = pto.pset_b32 "PAT_ALL" : !pto.mask<b32>'
FORMS: dict[str, tuple[str, str]] = {  # name -> body, type of the numbers
    "load of a window": (f"{_WINDOW}\n{_LOAD}".replace("%p,", "%x,"), "index"),
    "store to a window": (f"{_WINDOW}\n{_STORE}".replace("%p,", "%x,"), "index"),
    "load by pointer": (f"{_POINTED}\n{_LOAD}", "index"),
    "store by pointer": (f"{_POINTED}\n{_STORE}", "index"),
    "scalar read": ("%s = pto.load_scalar %x[%a] : !pto.ptr<f32, gm> -> f32", "index"),
    "scalar write": ("pto.store_scalar %f, %x[%a] : !pto.ptr<f32, gm>, f32", "index"),
    "element read": (f"%s = pto.tgetval ins(%t, %a : {_TILE}, index) outs : f32", "index"),
    "element write": (f"pto.tsetval ins(%a, %f : index, f32) outs(%t : {_TILE})", "index"),
    "gather": (
        f"{_INDICES}\npto.mgather ins(%v, %k : {_TABLE}, {_WORDS}) outs(%t : {_TILE})"
        " {coalesce = #pto<coalesce elem>}",
        "",
    ),
    "scatter": (
        f"{_INDICES}\npto.mscatter ins(%t, %k : {_TILE}, {_WORDS}) outs(%v : {_TABLE})",
        "",
    ),
    "scatter in a tile": (
        f"{_INDICES}\npto.tscatter ins(%z, %k : {_TILE}, {_WORDS}) outs(%t : {_TILE})",
        "",
    ),
    "extract": (
        f"pto.textract ins(%t, %a, %b : {_TILE}, index, index)"
        " outs(%u : !pto.tile_buf<vec, 8x32xf32>)",
        "index",
    ),
    "insert": (
        "pto.tinsert ins(%u, %a, %b : !pto.tile_buf<vec, 8x32xf32>, index, index)"
        f" outs(%t : {_TILE})",
        "index",
    ),
    "region": (f"pto.set_validshape %o, %a, %b : {_TILE.replace('>', ', valid=?x?>')}", "index"),
    "burst in": (f"{_UB}\npto.mte_gm_ub %x, %ub, %c0i, %e {_BURST} : {_GM_UB}", "i64"),
    "burst out": (f"{_UB}\npto.mte_ub_gm %ub, %x, %e {_BURST} : {_UB_GM}", "i64"),
    "vector read": (
        f"{_UB}\n"
        + _SCOPE.format("%r = pto.vlds %ub[%n] : !pto.ptr<f32, ub> -> !pto.vreg<64xf32>"),
        "i64",
    ),
    "vector write": (
        f"{_UB}\n"
        + _SCOPE.format(
            f"{_ALL} %r = pto.vdup %f, %m : f32, !pto.mask<b32> -> !pto.vreg<64xf32>"
            " pto.vsts %r, %ub[%n], %m : !pto.vreg<64xf32>, !pto.ptr<f32, ub>, !pto.mask<b32>"
        ),
        "i64",
    ),
}
_NEAR = (0, 0, 1, 8, 16, 17, 32, 48, 64, 65, 128, 256, 1000, 1024, 4096, 16384)
_FAR = (-1, -8, -64, 1 << 18, 1 << 20, 1 << 31, 1 << 32, (1 << 62) + 3, (1 << 63) - 1, -(1 << 63))


def number(rng: random.Random) -> int:
    return rng.choice(_NEAR) if rng.random() < 0.8 else rng.choice(_FAR)


def text_of(name: str) -> str:
    body, kind = FORMS[name]
    numbers = [f"%{letter}: {kind or 'index'}" for letter in "abcde"]
    tiles = {"%t": _TILE, "%z": _TILE, "%k": _WORDS, "%u": "!pto.tile_buf<vec, 8x32xf32>"}
    made = [f"{tile} = pto.alloc_tile : {type}" for tile, type in tiles.items()]
    constants = [f"%c{n} = arith.constant {n} : index" for n in (0, 1, 16, 64)]
    head = f"func.func @f(%x: !pto.ptr<f32, gm>, %i: !pto.ptr<i32, gm>, {', '.join(numbers)})"
    lines = [*constants, "%c0i = arith.constant 0 : i64", "%f = arith.constant 3.0 : f32", *made]
    if "%o" in body:
        open_tile = _TILE.replace(">", ", valid=?x?>")
        lines += [f"%o = pto.alloc_tile valid_row = %c16 valid_col = %c64 : {open_tile}"]
    if "%n]" in body:
        lines += ["%n = arith.index_cast %b : i64 to index"]
    side = "pto.kernel_kind = #pto.kernel_kind<vector>"
    joined = "\n  ".join([*lines, body])
    return (
        f'module attributes {{pto.target_arch = "a5", {side}}} {{\n{head} {{\n  {joined}\n'
        "  return\n}\n}\n"
    )


@cache
def _module(name: str) -> Module:
    return parse(text_of(name))


def _outcome(module: Module, given: list[Any], engine: str) -> Any:
    own = [(_copied(a) if isinstance(a, np.ndarray) else a) for a in given]
    try:
        launch(module, args=own, engine=engine, check=False)
    except PtoError as error:
        return error.code
    return [a.tobytes() for a in own if isinstance(a, np.ndarray)]


def _copied(array: Array) -> Array:
    own = guarded(array.nbytes, array.ctypes.data % PAGE != 0).view(array.dtype)
    own[...] = array
    return own


def attempt(seed: int) -> tuple[str, str]:
    """One program with numbers: what became of it, and why that is wrong."""
    rng = random.Random(seed)
    name = rng.choice(list(FORMS))
    module = _module(name)
    x, i = _array(rng, np.float32, ROWS * COLS), _array(rng, np.int32, ROWS * COLS)
    if not FORMS[name][1] and rng.random() < 0.7:
        i[rng.randrange(i.size)] = rng.choice((-1, 1024, 1 << 20, -(1 << 31)))
    numbers = [number(rng) for _ in range(5)]
    outcomes = [_outcome(module, [x, i, *numbers], engine) for engine in ("reference", "jit")]
    _kept.clear()
    shown = ["bytes" if isinstance(o, list) else o for o in outcomes]
    if outcomes[0] != outcomes[1]:
        return "disagree", f"{name} {numbers}: {shown}"
    return shown[0], ""


def run(first: int, count: int, say: Callable[[str], None] = print) -> Counter[str]:
    """In this process: its buffers lie between such pages from here on."""
    faulthandler.enable()
    warnings.simplefilter("ignore")
    memory.aligned_bytes = lambda size: guarded(-(-size // 64) * 64)[:size]
    counts: Counter[str] = Counter()
    for seed in range(first, first + count):
        what, why = attempt(seed)
        counts[what] += 1
        if why:
            say(f"seed {seed}: {what}: {why}")
    return counts


def in_a_process(first: int, count: int) -> tuple[int, str]:
    """The exit code of a process that runs these, and what it says."""
    command = [sys.executable, "-m", "tests.guard_pages", str(count), str(first), "here"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


if __name__ == "__main__":
    wanted, start = int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 0
    if wanted < 0:  # to be seen to die
        ctypes.memset(guarded(PAGE).ctypes.data + PAGE, 1, 1)
    if sys.argv[3:] == ["here"]:
        found = run(start, wanted)
        print(dict(found))
        sys.exit(1 if found["disagree"] else 0)
    failed = False
    for at in range(start, start + wanted, 500):
        code, output = in_a_process(at, min(500, start + wanted - at))
        print(at, code, output, flush=True)
        failed |= code != 0
    sys.exit(1 if failed else 0)
