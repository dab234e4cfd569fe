"""Small programs about tiles: every byte of their buffers goes in and comes out as an array."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from pto.core import dtypes, layout
from pto.core.tile import Role, TileType

_LAYOUTS = {
    "ND": "blayout=row_major, slayout=none_box",
    "DN": "blayout=col_major, slayout=none_box",
    "NZ": "blayout=col_major, slayout=row_major",
    "ZN": "blayout=row_major, slayout=col_major",
    "ZZ": "blayout=row_major, slayout=row_major",
    "NN": "blayout=col_major, slayout=col_major",
}


@dataclass(frozen=True)
class Tile:
    """A tile at an address of its buffer."""

    name: str
    rows: int
    cols: int
    kind: str = "f32"
    layout: str = "ND"
    valid: tuple[int, int] | None = None
    role: str = "vec"
    address: int = 0
    fractal: int = 512
    pad: int = 0
    dynamic: bool = False  # the valid region is given when the program runs

    @property
    def type(self) -> str:
        shown = "?x?" if self.dynamic else "x".join(map(str, self.valid or (self.rows, self.cols)))
        return (
            f"!pto.tile_buf<{self.role}, {self.rows}x{self.cols}x{self.kind}, valid={shown}, "
            f"{_LAYOUTS[self.layout]}, fractal={self.fractal}, pad={self.pad}>"
        )

    @property
    def alloc(self) -> str:
        extents = ""
        if self.dynamic:
            rows, cols = self.valid or (self.rows, self.cols)
            extents = f" valid_row = %n{rows} valid_col = %n{cols}"
        return f"%{self.name} = pto.alloc_tile addr = %at{self.address}{extents} : {self.type}"

    @property
    def nbytes(self) -> int:
        kind = dtypes.dtype(self.kind.replace("ui", "u"))
        type = TileType.of(
            Role(self.role), kind, self.rows, self.cols, layout.layout(self.layout, self.fractal)
        )
        return type.nbytes

    def ref(self) -> str:
        return f"%{self.name} : {self.type}"


def view(
    name: str, pointer: str, kind: str, shape: Sequence[int], strides: Sequence[int], more: str = ""
) -> str:
    """A view of all of an argument."""
    dims = "x".join("?" for _ in shape)
    sizes = ", ".join(f"%n{n}" for n in shape)
    steps = ", ".join(f"%n{n}" for n in strides)
    return (
        f"%{name} = pto.make_tensor_view %{pointer}, shape = [{sizes}], strides = [{steps}]"
        f"{more} : !pto.tensor_view<{dims}x{kind}>\n"
    )


def program(
    pointers: Sequence[tuple[str, str]], tiles: Sequence[Tile], body: str, *, arch: str = "a5"
) -> str:
    """A kernel; each tile's bytes come from %<name>_in and go to %<name>_out afterwards."""
    lines: list[str] = []
    before: list[str] = []
    after: list[str] = []
    args = [f"%{name}: !pto.ptr<{kind}>" for name, kind in pointers]
    for tile in tiles:
        n = tile.nbytes
        raw = (
            f"!pto.tile_buf<{tile.role}, 1x{n}xui8, blayout=row_major, slayout=none_box, "
            "fractal=512, pad=0>"
        )
        before.append(tile.alloc)
        before.append(f"%{tile.name}_raw = pto.alloc_tile addr = %at{tile.address} : {raw}")
        for end, where, op in (("in", before, "tload"), ("out", after, "tstore")):
            args.append(f"%{tile.name}_{end}: !pto.ptr<ui8>")
            made = view(f"{tile.name}_{end}v", f"{tile.name}_{end}", "ui8", (1, n), (n, 1)).strip()
            where.append(made)
            seen = f"%{tile.name}_{end}v : !pto.tensor_view<?x?xui8>"
            mine = f"%{tile.name}_raw : {raw}"
            first, second = (seen, mine) if end == "in" else (mine, seen)
            where.append(f"pto.{op} ins({first}) outs({second})")
    text = "\n".join([*before, body, *after])
    lines += [f"%at{a} = arith.constant {a} : i64" for a in sorted({t.address for t in tiles})]
    lines += [f"%n{n} = arith.constant {n} : index" for n in _numbers(text)]
    inside = "\n    ".join("\n".join([*lines, text]).splitlines())
    return (
        f'module attributes {{pto.target_arch = "{arch}"}} {{\n'
        f"  func.func @k({', '.join(args)}) {{\n    {inside}\n    return\n  }}\n}}\n"
    )


def _numbers(text: str) -> list[int]:
    return sorted({int(n) for n in re.findall(r"%n(\d+)", text)})
