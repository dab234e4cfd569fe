"""Tile instructions on the fast engine: the bits of the reference, for every type and tail."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pto.core.dtypes import dtype
from pto.ir.text.parser import parse
from pto.run.launch.host import launch
from tests.run.jit.both import agree, same
from tests.run.jit.tiles import Tile
from tests.run.jit.tiles import program as tile_program

RNG = np.random.default_rng(20)
EDGES = [
    0.0,
    -0.0,
    1.0,
    -1.0,
    np.inf,
    -np.inf,
    np.nan,
    1e-40,
    -1e-40,
    65504.0,
    3.4e38,
    0.5,
    88.7,
    -104.0,
]


def values(name: str, rows: int, cols: int) -> Any:
    kind = dtype(name)
    if kind.is_integer:
        return RNG.integers(int(kind.min), int(kind.max), (rows, cols), endpoint=True).astype(
            kind.numpy
        )
    found = (RNG.standard_normal((rows, cols)) * 3).astype(np.float32)
    found.ravel()[: len(EDGES)] = RNG.permutation(EDGES)[: found.size]
    with np.errstate(over="ignore"):
        return found.astype(kind.numpy)


def tile(kind: str, rows: int, cols: int, valid: tuple[int, int]) -> str:
    return (
        f"!pto.tile_buf<loc=vec, dtype={kind}, rows={rows}, cols={cols}, v_row={valid[0]},"
        f" v_col={valid[1]}, blayout=row_major, slayout=none_box, fractal=512, pad=0>"
    )


class Program:
    """Tiles that are loaded, one instruction, one tile that is stored."""

    def __init__(self, arch: str = "a5") -> None:
        self.arch = arch
        self.arrays: list[Any] = []
        self.lines: list[str] = []
        self.types: list[str] = []

    def load(self, name: str, array: Any, kind: str, width: int) -> str:
        rows, cols = array.shape
        return self._tile(name, array, kind, rows, width, (rows, cols))

    def _tile(
        self, name: str, array: Any, kind: str, rows: int, width: int, valid: tuple[int, int]
    ) -> str:
        n, type = len(self.arrays), tile(kind, rows, width, valid)
        view = f"!pto.partition_tensor_view<{valid[0]}x{valid[1]}x{kind}>"
        self.arrays.append(array)
        self.types.append(kind)
        self.lines += [
            f"%{name} = pto.alloc_tile : {type}",
            f"%r{n} = arith.constant {valid[0]} : index",
            f"%c{n} = arith.constant {valid[1]} : index",
            f"%v{n} = pto.make_tensor_view %a{n}, shape = [%r{n}, %c{n}], strides = [%c{n}, %one]"
            f" : !pto.tensor_view<?x?x{kind}>",
            f"%w{n} = pto.partition_view %v{n}, offsets = [%zero, %zero], sizes = [%r{n}, %c{n}]"
            f" : !pto.tensor_view<?x?x{kind}> -> {view}",
            f"pto.tload ins(%w{n} : {view}) outs(%{name} : {type})",
        ]
        self.last = n, view, type, name
        return type

    def store(self, name: str) -> None:
        n, view, type, _ = self.last
        self.lines.append(f"pto.tstore ins(%{name} : {type}) outs(%w{n} : {view})")

    @property
    def text(self) -> str:
        params = ", ".join(f"%a{n}: !pto.ptr<{k}>" for n, k in enumerate(self.types))
        body = "\n    ".join(self.lines)
        return f"""
module attributes {{pto.target_arch = "{self.arch}"}} {{
  func.func @f({params}) {{
    %zero = arith.constant 0 : index
    %one = arith.constant 1 : index
    {body}
    return
  }}
}}
"""

    def agree(self, op: str) -> Any:
        """The stored array, the same on both engines; `op` must have been compiled."""
        module = parse(self.text)
        found: dict[str, list[Any]] = {}
        left: Any = {}
        for engine in ("reference", "jit"):
            found[engine] = [a.copy() for a in self.arrays]
            left = launch(module, args=found[engine], engine=engine).left_out
        assert not [why for (name, why) in left if name == f"pto.{op}"], dict(left)
        for ours, theirs in zip(found["jit"], found["reference"], strict=True):
            same(ours, theirs)
        return found["jit"][-1]


SHAPES = [(1, 1), (3, 5), (16, 64), (7, 100), (64, 64)]
FLOATS = ["f32", "f16", "bf16"]
INTEGERS = ["i32", "i16", "i8", "ui32", "ui16", "ui8"]


def width_of(cols: int, kind: str) -> int:
    block = 32 // dtype(kind).itemsize
    return -(-cols // block) * block


def binary(op: str, kind: str, rows: int, cols: int, arch: str = "a5") -> Any:
    program, width = Program(arch), width_of(cols, kind)
    a = program.load("a", values(kind, rows, cols), kind, width)
    b = program.load("b", values(kind, rows, cols), kind, width)
    d = program.load("d", np.zeros((rows, cols), dtype(kind).numpy), kind, width)
    program.lines.append(f"pto.{op} ins(%a, %b : {a}, {b}) outs(%d : {d})")
    program.store("d")
    return program.agree(op)


@pytest.mark.parametrize("kind", FLOATS + INTEGERS)
@pytest.mark.parametrize("shape", SHAPES)
def test_sums(kind: str, shape: tuple[int, int]) -> None:
    binary("tadd", kind, *shape)


@pytest.mark.parametrize("kind", [*FLOATS, "i32", "i16", "ui32", "ui16"])
@pytest.mark.parametrize("op", ["tsub", "tmul", "tmax", "tmin"])
def test_other_binary_instructions(op: str, kind: str) -> None:
    binary(op, kind, 9, 40)


@pytest.mark.parametrize("kind", ["f32", "f16"])
@pytest.mark.parametrize(
    "op", ["texp", "tlog", "tsqrt", "trsqrt", "tabs", "tneg", "trecip", "trelu"]
)
def test_unary_instructions(op: str, kind: str) -> None:
    program, cols = Program(), 40
    x = np.abs(values(kind, 9, cols)) if op == "tlog" else values(kind, 9, cols)
    a = program.load("a", x, kind, width_of(cols, kind))
    d = program.load("d", np.zeros_like(x), kind, width_of(cols, kind))
    program.lines.append(f"pto.{op} ins(%a : {a}) outs(%d : {d})")
    program.store("d")
    program.agree(op)


@pytest.mark.parametrize("kind", ["f32", "f16"])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("op", ["trowsum", "trowmax", "trowmin"])
def test_folds_of_rows(op: str, kind: str, shape: tuple[int, int]) -> None:
    program, (rows, cols), width = Program(), shape, width_of(shape[1], kind)
    a = program.load("a", values(kind, rows, cols), kind, width)
    t = program.load("t", values(kind, rows, cols), kind, width)
    d = program.load("d", np.zeros((rows, 1), dtype(kind).numpy), kind, width_of(1, kind))
    program.lines.append(f"pto.{op} ins(%a, %t : {a}, {t}) outs(%d : {d})")
    program.store("d")
    program.agree(op)


@pytest.mark.parametrize("kind", ["f32", "f16", "i32"])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("op", ["tcolsum", "tcolmax", "tcolmin"])
def test_folds_of_columns(op: str, kind: str, shape: tuple[int, int]) -> None:
    program, (rows, cols), width = Program(), shape, width_of(shape[1], kind)
    a = program.load("a", values(kind, rows, cols), kind, width)
    d = program.load("d", np.zeros((1, cols), dtype(kind).numpy), kind, width)
    program.lines.append(f"pto.{op} ins(%a : {a}) outs(%d : {d})")
    program.store("d")
    program.agree(op)


@pytest.mark.parametrize("op", ["trowexpandsub", "trowexpandmul", "trowexpanddiv"])
@pytest.mark.parametrize("arch", ["a5", "a3"])  # on a3 all 8 columns count, again and again
def test_one_value_for_each_row(op: str, arch: str) -> None:
    program = Program(arch)
    a = program.load("a", values("f32", 9, 40), "f32", 40)
    b = program.load("b", values("f32", 9, 8), "f32", 8)
    d = program.load("d", np.zeros((9, 40), np.float32), "f32", 40)
    program.lines.append(f"pto.{op} ins(%a, %b : {a}, {b}) outs(%d : {d})")
    program.store("d")
    program.agree(op)


@pytest.mark.parametrize("kind", ["f32", "i32", "f16"])
def test_a_scalar_beside_a_tile(kind: str) -> None:
    program = Program()
    a = program.load("a", values(kind, 9, 40), kind, 48)
    d = program.load("d", np.zeros((9, 40), dtype(kind).numpy), kind, 48)
    number = "3" if kind == "i32" else "2.5"
    program.lines += [
        f"%s = arith.constant {number} : {kind}",
        f"pto.tadds ins(%a, %s : {a}, {kind}) outs(%d : {d})",
    ]
    program.store("d")
    program.agree("tadds")


@pytest.mark.parametrize(
    ("source", "target"),
    [
        ("f32", "f16"),
        ("f32", "bf16"),
        ("f16", "f32"),
        ("bf16", "f32"),
        ("f32", "i32"),
        ("f32", "i16"),
        ("i32", "f32"),
        ("f16", "ui8"),
        ("i16", "f32"),
        ("f32", "f32"),
        ("f32", "f8E4M3FN"),
    ],
)
@pytest.mark.parametrize("mode", ["RINT", "FLOOR", "TRUNC", "ROUND"])
def test_conversions(source: str, target: str, mode: str) -> None:
    program = Program()
    a = program.load("a", values(source, 9, 40), source, 64)
    d = program.load("d", np.zeros((9, 40), dtype(target).numpy), target, 64)
    program.lines.append(
        f"pto.tcvt ins(%a {{rmode = #pto<round_mode {mode}>}} : {a}) outs(%d : {d})"
    )
    program.store("d")
    program.agree("tcvt")


@pytest.mark.parametrize("kind", ["f32", "f16", "i32"])
@pytest.mark.parametrize(("mode", "cols"), [("eq", 1), ("ne", 40), ("lt", 64), ("ge", 100)])
def test_comparisons_and_selection(kind: str, mode: str, cols: int) -> None:
    program, width = Program(), width_of(cols, kind)
    a = program.load("a", values(kind, 9, cols), kind, width)
    b = program.load("b", values(kind, 9, cols), kind, width)
    m = program.load("m", values("ui8", 9, 16), "ui8", 32)
    t = program.load("t", values("ui8", 9, 16), "ui8", 32)
    d = program.load("d", np.zeros((9, cols), dtype(kind).numpy), kind, width)
    program.lines += [
        f"pto.tcmp ins(%a, %b {{cmpMode = #pto<cmp {mode}>}} : {a}, {b}) outs(%m : {m})",
        f"pto.tsel ins(%m, %a, %b, %t : {m}, {a}, {b}, {t}) outs(%d : {d})",
    ]
    program.store("d")
    program.agree("tcmp")
    program.agree("tsel")


@pytest.mark.parametrize(("rows", "cols"), [(1, 8), (2, 40), (29, 24), (48, 64), (64, 100)])
@pytest.mark.parametrize("kind", ["f32", "f16", "i16"])
def test_column_sums_in_pairs(kind: str, rows: int, cols: int) -> None:
    program, width = Program(), width_of(cols, kind)
    a = program.load("a", values(kind, rows, cols), kind, width)
    t = program.load("t", values(kind, rows, cols), kind, width)
    d = program.load("d", values(kind, 1, cols), kind, width)
    program.lines.append(f"pto.tcolsum ins(%a, %t {{isBinary = true}} : {a}, {t}) outs(%d : {d})")
    program.store("d")
    program.agree("tcolsum")


@pytest.mark.parametrize("kind", ["f32", "f16", "bf16", "i16", "ui32"])
@pytest.mark.parametrize(("rows", "cols"), [(1, 1), (5, 20), (16, 64), (33, 100)])
@pytest.mark.parametrize("op", ["trowargmax", "trowargmin"])
def test_the_first_best_of_a_row(op: str, kind: str, rows: int, cols: int) -> None:
    """Also of equal ones, of zeros of both signs, and with a NaN first or later."""
    given = values(kind, rows, cols)
    given[:, cols // 2 :] = given[:, : cols - cols // 2]
    if kind in ("f32", "f16", "bf16"):
        given[rows // 2, 0], given[-1, :] = np.nan, -0.0
        given[-1, cols // 2] = 0.0
    program, width = Program(), width_of(cols, kind)
    a = program.load("a", given, kind, width)
    t = program.load("t", values(kind, rows, cols), kind, width)
    d = program.load("d", np.zeros((rows, 1), np.uint32), "ui32", 8)
    program.lines.append(f"pto.{op} ins(%a, %t : {a}, {t}) outs(%d : {d})")
    program.store("d")
    program.agree(op)


_SHARED = {
    "tcvt": ("f32", "bf16", "ins(%a {{rmode = #pto<round_mode RINT>}} : {a}) outs(%d : {d})"),
    "trowexpandmul": ("f32", "f32", "ins(%a, %b : {a}, {b}) outs(%d : {d})"),
    "tadd": ("f32", "f32", "ins(%a, %b : {a}, {b}) outs(%d : {d})"),
    "tcolsum": ("f32", "f32", "ins(%a : {a}) outs(%d : {d})"),
    "tcmp": ("f32", "ui8", "ins(%a, %b {{cmpMode = #pto<cmp lt>}} : {a}, {b}) outs(%d : {d})"),
}


@pytest.mark.parametrize("op", list(_SHARED))
@pytest.mark.parametrize("address", [0, 32, 64 * 4])
def test_a_destination_that_shares_bytes_with_its_sources(op: str, address: int) -> None:
    """All of the sources is read before anything is written, wherever the destination lies."""
    source, target, form = _SHARED[op]
    rows = 1 if op == "tcolsum" else 16
    a = Tile("a", 16, 64, source)
    b = Tile("b", 16, 8 if "expand" in op else 64, source, address=128)
    d = Tile("d", rows, 64, target, address=address)
    tiles = [a] if op in ("tcvt", "tcolsum") else [a, b]
    bytes_of = {t.name: RNG.integers(0, 255, t.nbytes).astype(np.uint8) for t in (*tiles, d)}
    for t in tiles:
        bytes_of[t.name] = values(source, t.rows, t.cols).view(np.uint8).reshape(-1)
    line = f"pto.{op} " + form.format(a=a.type, b=b.type, d=d.type)
    args = [bytes_of[t.name] for t in (d, *tiles) for _ in range(2)]
    agree(tile_program([], [d, *tiles], line), args, check=False)  # PTO-M040 refuses some of them


@pytest.mark.parametrize("kind", ["f32", "f16", "i32"])
@pytest.mark.parametrize("cols", [8, 13, 64, 75])
@pytest.mark.parametrize("word", ["max", "min"])
def test_the_best_of_rows_of_any_length(kind: str, cols: int, word: str) -> None:
    src = Tile("a", 16, 80, kind, valid=(16, cols))
    tmp, dst = (
        Tile("t", 16, 80, kind, address=8192),
        Tile("d", 16, 8, "i32", valid=(16, 1), address=16384),
    )
    body = f"pto.trowarg{word} ins(%a, %t : {src.type}, {tmp.type}) outs({dst.ref()})"
    args: list[Any] = []
    for tile in (src, tmp, dst):
        raw = np.random.default_rng(cols).integers(0, 256, tile.nbytes, np.uint8)
        args += [raw, np.zeros(tile.nbytes, np.uint8)]
    agree(tile_program([], [src, tmp, dst], body), args, check=False)


def test_instructions_on_no_element_at_all() -> None:
    a, b = Tile("a", 8, 64, valid=(8, 0)), Tile("b", 8, 64, valid=(8, 0), address=8192)
    both = f"%a, %b : {a.type}, {b.type}"
    body = f"pto.tadd ins({both}) outs({b.ref()})\npto.tmul ins({both}) outs({b.ref()})"
    args: list[Any] = []
    for tile in (a, b):
        raw = np.arange(tile.nbytes, dtype=np.uint8)
        args += [raw, np.zeros(tile.nbytes, np.uint8)]
    agree(tile_program([], [a, b], body), args, check=False)
