"""Tile instructions of the reference engine at 64x64 against the plain NumPy expression."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from bench.measure import Rows, seconds, table
from pto.core.tile import Tile
from pto.ir.text.parser import parse
from pto.ir.text.types import parse_type, type_text
from pto.isa.row import types as t
from pto.run.machine.core import Cluster, Core
from pto.run.machine.device import Device
from pto.run.reference.compile import Compiler
from pto.target.profile import profile

SIZE = 64
GOAL = 5.0
F32, F64 = np.float32, np.float64

TILES = {  # name: type, of which a and b start with numbers
    "a": "64x64xf32",
    "b": "64x64xf32",
    "d": "64x64xf32",
    "h": "64x64xf16",
    "k": "64x64xf16",
    "i": "64x64xi32",
    "j": "64x64xi32",
    "n": "64x64xi32",
    "q": "64x64xi8",
    "m": "64x32xui8",
    "c": "64x1xf32, blayout=col_major",
    "r": "1x64xf32",
    "x": "64x1xi32, blayout=col_major",
}
Arrays = dict[str, Any]
Plain = Callable[[Arrays], object]


def _into(name: str, expression: Plain) -> Plain:
    def run(v: Arrays) -> None:
        v[name][...] = expression(v)

    return run


def _integer(v: Arrays) -> Any:
    whole = np.rint(v["a"].astype(F64))
    return np.clip(np.where(np.isnan(whole), 0, whole), -(2.0**31), 2.0**31 - 1).astype(np.int32)


def _saturated(v: Arrays) -> Any:
    return np.where(np.isnan(v["a"]), F32(0), np.clip(v["a"], F32(-65504), F32(65504)))


def _truncated(v: Arrays) -> Any:
    return np.trunc(v["i"].astype(F64) / v["j"].astype(F64)).astype(np.int32)


def _quantised(v: Arrays) -> Any:
    return np.clip(np.rint(v["a"] * v["c"]), -128, 127).astype(np.int8)


_CMP = "{cmpMode = #pto<cmp lt>}"
_SYM = "{quant_type = #pto<quant_type INT8_SYM>}"

# operation: text with names for operands, where the result goes, the NumPy expression
CASES: dict[str, tuple[str, str, Plain]] = {
    "tadd f32": ("tadd ins(a, b) outs(d)", "d", lambda v: v["a"] + v["b"]),
    "tadd f16": ("tadd ins(h, h) outs(k)", "k", lambda v: v["h"] + v["h"]),
    "tadd i32": ("tadd ins(i, j) outs(n)", "n", lambda v: v["i"] + v["j"]),
    "tdiv f32": ("tdiv ins(a, b) outs(d)", "d", lambda v: v["a"] / v["b"]),
    "tdiv i32": ("tdiv ins(i, j) outs(n)", "n", _truncated),
    "tmax f32": ("tmax ins(a, b) outs(d)", "d", lambda v: np.maximum(v["a"], v["b"])),
    "trem f32": ("trem ins(a, b, d) outs(d)", "d", lambda v: np.remainder(v["a"], v["b"])),
    "tshl i32": ("tshl ins(i, j) outs(n)", "n", lambda v: v["i"] << v["j"]),
    "trelu f32": ("trelu ins(a) outs(d)", "d", lambda v: np.maximum(v["a"], F32(0))),
    "texp f32": ("texp ins(a) outs(d)", "d", lambda v: np.exp(v["a"].astype(F64)).astype(F32)),
    "tlog f32": ("tlog ins(b) outs(d)", "d", lambda v: np.log(v["b"].astype(F64)).astype(F32)),
    "tsqrt f32": ("tsqrt ins(b) outs(d)", "d", lambda v: np.sqrt(v["b"])),
    "trsqrt f32": (
        "trsqrt ins(b) outs(d)",
        "d",
        lambda v: (1 / np.sqrt(v["b"].astype(F64))).astype(F32),
    ),
    "tpow f32": (
        "tpow ins(b, b, d) outs(d)",
        "d",
        lambda v: np.power(v["b"].astype(F64), v["b"].astype(F64)).astype(F32),
    ),
    "tadds f32": ("tadds ins(a, s) outs(d)", "d", lambda v: v["a"] + F32(3)),
    "tlrelu f32": (
        "tlrelu ins(a, s) outs(d)",
        "d",
        lambda v: np.where(v["a"] > 0, v["a"], v["a"] * F32(3)),
    ),
    "taxpy f32": ("taxpy ins(a, s) outs(d)", "d", lambda v: v["b"] + v["a"] * F32(3)),
    "tcmp f32": (
        f"tcmp ins(a, b {_CMP}) outs(m)",
        "",
        lambda v: v["m"][:, :8].__setitem__(
            ..., np.packbits(v["a"] < v["b"], axis=1, bitorder="little")
        ),
    ),
    "tsel f32": (
        "tsel ins(m, a, b, d) outs(d)",
        "d",
        lambda v: np.where(
            np.unpackbits(v["m"][:, :8], axis=1, bitorder="little").view(bool), v["a"], v["b"]
        ),
    ),
    "tcvt f32 to f16": ("tcvt ins(a) outs(k)", "k", lambda v: _saturated(v).astype(np.float16)),
    "tcvt f16 to f32": ("tcvt ins(h) outs(d)", "d", lambda v: v["h"].astype(F32)),
    "tcvt f32 to i32": ("tcvt ins(a) outs(n)", "n", _integer),
    "tcvt i32 to f32": ("tcvt ins(i) outs(d)", "d", lambda v: v["i"].astype(F32)),
    "trowsum f32": ("trowsum ins(a, d) outs(c)", "c", lambda v: v["a"].sum(axis=1, keepdims=True)),
    "tcolsum f32": ("tcolsum ins(a) outs(r)", "r", lambda v: v["a"].sum(axis=0)),
    "trowmax f32": ("trowmax ins(a, d) outs(c)", "c", lambda v: v["a"].max(axis=1, keepdims=True)),
    "tcolmax f32": ("tcolmax ins(a) outs(r)", "r", lambda v: v["a"].max(axis=0)),
    "trowargmax f32": (
        "trowargmax ins(a, d) outs(x)",
        "x",
        lambda v: v["a"].argmax(axis=1, keepdims=True),
    ),
    "trowexpandadd f32": ("trowexpandadd ins(a, c) outs(d)", "d", lambda v: v["a"] + v["c"]),
    "tcolexpandmul f32": ("tcolexpandmul ins(a, r) outs(d)", "d", lambda v: v["a"] * v["r"]),
    "tpartadd f32": ("tpartadd ins(a, b) outs(d)", "d", lambda v: v["a"] + v["b"]),
    "texpands f32": ("texpands ins(s) outs(d)", "d", lambda v: F32(3)),
    "tquant f32": (f"tquant ins(a, c) outs(q) {_SYM}", "q", _quantised),
}


class Machine:
    """Tiles at addresses of their own in one vector buffer."""

    def __init__(self) -> None:
        chosen = profile("a5")
        self.core = Core(Cluster(Device(chosen), 0, 1), chosen, "both", 0, 1)
        self.types: dict[str, str] = {"s": "f32"}
        self.values: dict[str, Any] = {"s": F32(3)}
        address = 0
        rng = np.random.default_rng(1)
        for name, text in TILES.items():
            type = parse_type(f"!pto.tile_buf<vec, {text}>")
            assert isinstance(type, t.TileBuf)
            tile = Tile(type.tile, self.core.memory(type.tile.space), address)
            address += -(-type.tile.nbytes // 512) * 512
            numbers = rng.uniform(0.5, 9, type.tile.shape)
            view = tile.view()
            assert view is not None
            view[...] = numbers.astype(view.dtype) - (name == "a") * 4
            self.types[name], self.values[name] = type_text(type), tile

    def step(self, text: str) -> Callable[[], object]:
        """One instruction, ready to run: `tadd ins(a, b) outs(d)`."""
        args = ", ".join(f"%{name}: {type}" for name, type in self.types.items())
        body = self._typed(text)
        module = parse(f"func.func @f({args}) {{\n  pto.{body}\n  return\n}}")
        code = Compiler(module, self.core.profile, self.core.side).code("f")
        registers: list[Any] = [None] * code.size
        for slot, value in zip(code.args, self.values.values(), strict=True):
            registers[slot] = value
        run, core = code.body.steps[0], self.core
        return lambda: run(core, registers)

    def _typed(self, text: str) -> str:
        """`ins(a, b {..})` as `ins(%a, %b {..} : type, type)`."""
        for side in ("ins", "outs"):
            head, _, rest = text.partition(f"{side}(")
            inside, _, tail = rest.partition(")")
            words, brace, attrs = inside.partition(" {")
            names = [word.strip() for word in words.split(",")]
            typed = ", ".join(self.types[name] for name in names)
            operands = ", ".join(f"%{name}" for name in names)
            text = f"{head}{side}({operands}{brace}{attrs} : {typed}){tail}"
        return text

    def arrays(self) -> Arrays:
        return {n: v.view() for n, v in self.values.items() if isinstance(v, Tile)}


def run() -> Rows:
    machine = Machine()
    arrays = machine.arrays()
    rows: Rows = []
    with np.errstate(all="ignore"):
        for name, (text, out, expression) in CASES.items():
            plain = _into(out, expression) if out else expression
            took = seconds(
                {"pto": machine.step(text), "numpy": lambda plain=plain: plain(arrays)},
                rounds=15,
                calls=40,
            )
            unit = f"x numpy, {took['numpy'] * 1e6:.1f} us (goal {GOAL:g})"
            rows.append((name, took["pto"] / took["numpy"], unit))
    return rows


if __name__ == "__main__":
    print(table(str(__doc__), run()))
