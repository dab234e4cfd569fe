"""Movement and rearrangement at 64x64 against the NumPy code that moves the same elements."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from bench.measure import Rows, seconds, table
from pto.core.dtypes import F16, F32
from pto.core.global_tensor import GlobalTensor
from pto.core.tile import Tile
from pto.ir.text.parser import parse
from pto.ir.text.types import parse_type, type_text
from pto.isa.row import types as t
from pto.run.machine.core import Cluster, Core
from pto.run.machine.device import Device
from pto.run.reference.compile import Compiler
from pto.target.profile import profile

GOAL = 5.0
_BOXES = "blayout=col_major, slayout=row_major"
TILES = {
    "a": "vec, 64x64xf32",
    "d": "vec, 64x64xf32",
    "e": "vec, 64x64xf32",
    "f": "vec, 64x64xf32",
    "p": "vec, 64x64xf32, valid=60x60",
    "z": "vec, 64x64xf32, pad=1",
    "h": "vec, 32x32xf32",
    "l": "vec, 64x32xf32",
    "r": "vec, 64x32xf32",
    "m": f"mat, 64x64xf32, {_BOXES}",
    "n": f"mat, 64x64xf32, {_BOXES}",
    "c": f"acc, 64x64xf32, {_BOXES}, fractal=1024",
    "q": "left, 64x64xf32, slayout=row_major",
    "k": "vec, 1x64xi32",
}
VIEWS = {"v": ("f32", F32), "w": ("f16", F16)}


def _boxed(array: Any) -> Any:
    """64 x 64 in columns of boxes of 16 x 8."""
    return array.reshape(64, 8, 8).transpose(1, 0, 2)


def _by_rows(stored: Any) -> Any:
    """Columns of boxes as rows of boxes."""
    return stored.reshape(8, 4, 16, 8).transpose(1, 0, 2, 3)


def _pad(x: dict[str, Any]) -> None:
    x["e"][60:] = x["e"][:60, 60:] = 0
    x["e"][:60, :60] = x["a"][:60, :60]


def _scatter(x: dict[str, Any]) -> None:
    x["e"][x["keys"]] = x["a"]


def _weave(x: dict[str, Any]) -> None:
    stream = np.stack([x["a"], x["d"]], axis=-1).reshape(64, 128)
    x["e"][...], x["f"][...] = stream[:, :64], stream[:, 64:]


Plain = Callable[[dict[str, Any]], None]
CASES: dict[str, tuple[str, Plain]] = {
    "tload ND": ("tload ins(v) outs(d)", lambda x: np.copyto(x["e"], x["a"])),
    "tload NZ": ("tload ins(v) outs(m)", lambda x: np.copyto(x["boxes"], _boxed(x["a"]))),
    "tstore ND": ("tstore ins(a) outs(v)", lambda x: np.copyto(x["e"], x["a"])),
    "tstore acc f16": (
        "tstore ins(c) outs(w)",
        lambda x: np.copyto(x["half"], x["boxes"].transpose(1, 0, 2).reshape(64, 64), "unsafe"),
    ),
    "tmov vec": ("tmov ins(a) outs(d)", lambda x: np.copyto(x["e"], x["a"])),
    "tmov NZ to ZZ": ("tmov ins(m) outs(q)", lambda x: np.copyto(x["rows"], _by_rows(x["boxes"]))),
    "textract": (
        "textract ins(a, i, i) outs(h)",
        lambda x: np.copyto(x["small"], x["a"][16:48, 16:48]),
    ),
    "tinsert": (
        "tinsert ins(h, i, i) outs(d)",
        lambda x: np.copyto(x["e"][16:48, 16:48], x["small"]),
    ),
    "tfillpad": ("tfillpad ins(p) outs(z)", _pad),
    "ttrans": ("ttrans ins(a, d) outs(e)", lambda x: np.copyto(x["e"], x["a"].T)),
    "tconcat": (
        "tconcat ins(l, r) outs(d)",
        lambda x: np.concatenate([x["a"][:, :32], x["d"][:, :32]], axis=1, out=x["e"]),
    ),
    "tinterleave": ("tinterleave ins(a, d) outs(e, f)", _weave),
    "mgather rows": ("mgather ins(v, k) outs(d)", lambda x: np.copyto(x["e"], x["a"][x["keys"]])),
    "mscatter rows": ("mscatter ins(a, k) outs(v)", _scatter),
}


class Machine:
    """One agent with the tiles and views of the cases."""

    def __init__(self) -> None:
        chosen = profile("a5")
        device = Device(chosen)
        self.core = Core(Cluster(device, 0, 1), chosen, "both", 0, 1)
        self.types: dict[str, str] = {"i": "index"}
        self.values: dict[str, Any] = {"i": 16}
        room: dict[Any, int] = {}
        for name, text in TILES.items():
            type = parse_type(f"!pto.tile_buf<{text}>")
            assert isinstance(type, t.TileBuf)
            space = type.tile.space
            tile = Tile(type.tile, self.core.memory(space), room.get(space, 0))
            room[space] = tile.address + -(-tile.nbytes // 512) * 512
            numbers = np.random.default_rng(1).random(type.tile.shape) * 64
            tile.write(numbers.astype(type.tile.dtype.numpy))
            self.types[name], self.values[name] = type_text(type), tile
        for name, (elem, kind) in VIEWS.items():
            memory = device.attach(np.zeros(64 * 64, kind.numpy))
            self.types[name] = f"!pto.partition_tensor_view<64x64x{elem}>"
            self.values[name] = GlobalTensor.of(memory, 0, kind, (64, 64))

    def step(self, text: str) -> Callable[[], object]:
        """One instruction, ready to run: `tmov ins(a) outs(d)`."""
        args = ", ".join(f"%{name}: {type}" for name, type in self.types.items())
        for side in ("ins", "outs"):
            head, _, rest = text.partition(f"{side}(")
            inside, _, tail = rest.partition(")")
            names = inside.split(", ")
            typed = ", ".join(self.types[name] for name in names)
            text = f"{head}{side}(%{', %'.join(names)} : {typed}){tail}"
        module = parse(f"func.func @f({args}) {{\n  pto.{text}\n  return\n}}")
        code = Compiler(module, self.core.profile, self.core.side).code("f")
        registers: list[Any] = [None] * code.size
        for slot, value in zip(code.args, self.values.values(), strict=True):
            registers[slot] = value
        run, core = code.body.steps[0], self.core
        return lambda: run(core, registers)


def run() -> Rows:
    machine = Machine()
    arrays: dict[str, Any] = {name: np.random.rand(64, 64).astype(np.float32) for name in "adef"}
    arrays["boxes"] = np.zeros((8, 64, 8), np.float32)
    arrays["rows"] = np.zeros((4, 8, 16, 8), np.float32)
    arrays["half"] = np.zeros((64, 64), np.float16)
    arrays["keys"] = machine.values["k"].read().reshape(-1)
    arrays["small"] = np.zeros((32, 32), np.float32)
    rows: Rows = []
    with np.errstate(all="ignore"):
        for name, (text, plain) in CASES.items():
            took = seconds(
                {"pto": machine.step(text), "numpy": lambda plain=plain: plain(arrays)},
                rounds=15,
                calls=100,
            )
            unit = f"x numpy, {took['numpy'] * 1e6:.1f} us (goal {GOAL:g})"
            rows.append((name, took["pto"] / took["numpy"], unit))
    return rows


if __name__ == "__main__":
    print(table(str(__doc__), run()))
