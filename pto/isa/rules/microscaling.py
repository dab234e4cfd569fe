"""Shapes of `tquant.mx`: the tiles of exponents, maxima and scales, by the axis of the groups.

Each group of 32 elements has one exponent, one maximum and one scale. The library code walks the
tiles in an order that depends on the axis, so each tile needs its own pitch and size.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from pto.core.constants import MX_BLOCK_SIZE, MX_ROW_LEN
from pto.core.tile import TileType
from pto.isa.rules.rule import Case, dims, rule

_LANES_16 = 128  # of 16 bits in a register
_LONG = 1024  # the flat form uses two registers per iteration above this many elements


def _aligned(n: int, to: int) -> int:
    return -(-n // to) * to


@dataclass(frozen=True, slots=True)
class _Shapes:
    src: TileType
    tiles: dict[str, TileType]
    m: int  # valid rows and columns of src
    n: int
    kind: str
    algorithm: str
    interleaved: bool

    @property
    def groups(self) -> int:
        return self.m * self.n // MX_BLOCK_SIZE

    @property
    def packed(self) -> int:
        """Elements of src per element of dst."""
        return 2 if self.kind == "MXFP4_E2M1" else 1

    @property
    def is_f32(self) -> bool:
        return self.src.dtype.itemsize == 4

    def region(self, name: str, *wanted: tuple[int, int]) -> Iterator[str]:
        tile = self.tiles[name]
        if tile.valid not in wanted:
            listed = " or ".join(dims(*size) for size in wanted)
            yield f"the valid region of {name} is {dims(*tile.valid)}, it takes {listed}"

    def pitch(self, name: str, cols: int) -> Iterator[str]:
        columns = self.tiles[name].cols
        if columns != cols:
            yield f"{name} has {columns} columns, src {self.src.cols}: it takes {cols}"

    def room(self, name: str, elements: int) -> Iterator[str]:
        tile = self.tiles[name]
        if tile.rows * tile.cols < elements:
            yield f"{name} has {tile.rows * tile.cols} elements, {elements} are needed"

    def all(self) -> Iterator[str]:
        m = self.m
        n = self.n
        src = self.src
        yield from self.region("dst", (m, n // self.packed))
        if self.packed == 2 and src.cols % 2:
            yield f"src has {src.cols} columns, and two share a byte"
        padded = n < src.cols and _LANES_16 % src.cols == 0
        if not self.is_f32 and padded and m * src.cols % _LANES_16:
            yield f"rows of {src.cols} columns, {n} of them valid, end inside a register"

    def down(self) -> Iterator[str]:
        """Groups along columns."""
        m = self.m
        n = self.n
        cols = self.src.cols
        for name in ("max", "scaling", *("exp",) * (not self.interleaved)):
            yield from self.region(name, (m // MX_BLOCK_SIZE, n))
            yield from self.pitch(name, cols)
            yield from self.room(name, m // MX_BLOCK_SIZE * cols)
        if self.packed == 2:
            yield from self.pitch("dst", cols // 2)
            if self.src.dtype.name == "f16" and cols // 2 % MX_BLOCK_SIZE:
                yield f"rows of {cols // 2} bytes of f16 into four bits have no code"
        if self.interleaved:
            yield from self.region("exp", (m // (2 * MX_BLOCK_SIZE), 2 * n))
            yield from self.pitch("exp", _aligned(2 * cols, MX_BLOCK_SIZE))
            if self.tiles["exp"].rows != self.src.rows // (2 * MX_BLOCK_SIZE):
                yield f"exp has {self.tiles['exp'].rows} rows, src {self.src.rows}"
            if self.src.rows % (2 * MX_BLOCK_SIZE):
                yield f"src has {self.src.rows} rows, and exponents go in pairs"
            if self.is_f32:
                yield "exponents of f32 are not interleaved"

    def along(self) -> Iterator[str]:
        """Groups along rows: exponents row by row, or all in one."""
        m = self.m
        n = self.n
        exp = self.tiles["exp"]
        shapes = ((m, n // MX_BLOCK_SIZE), (1, self.groups))
        yield from self.pitch("dst", self.src.cols // self.packed)
        for name in ("max", "scaling"):
            tile = self.tiles[name]
            yield from self.region(name, *shapes)
            if tile.valid[0] != 1 and tile.cols != tile.valid[1]:
                yield f"{name} has {tile.cols} columns for {tile.valid[1]} valid ones"
            yield from self.room(name, self.groups)
        yield from self.region("exp", *shapes)
        if exp.rows > 1:
            if exp.valid[0] == 1:
                yield f"exp has {exp.rows} rows, and all of its values in one"
            if not self.is_f32:
                yield "exponents of 16-bit elements lie in one row"
            return
        yield from self.in_one_row()

    def in_one_row(self) -> Iterator[str]:
        src, scaling = self.src, self.tiles["scaling"]
        yield from self.region("exp", (1, self.groups))
        if src.cols != self.n:
            yield f"src has {src.cols} columns, {self.n} of them valid, beside exponents in one row"
        if not self.is_f32 and self.algorithm != "ocp":
            yield "16-bit elements beside exponents in one row are scaled by ocp alone"
        size, valid = src.rows * src.cols, self.m * src.cols
        unrolled = size > _LONG and size % 256 == 0 and valid % 256 == 0
        count = self.groups * (2 if unrolled and self.is_f32 else 1)
        need = _aligned(count, 64 if self.is_f32 else _LANES_16) * src.dtype.itemsize
        if scaling.nbytes < need:
            yield f"scaling has {scaling.nbytes} bytes, {need} are needed"


@rule("PTO-S044", "expects tiles that hold a value for each group")
def mx_shapes(case: Case) -> str | None:
    src = case.tile("src")
    tiles = dict(case.tiles(("dst", "exp", "max", "scaling")))
    if src is None or len(tiles) < 4:
        return None
    for name, tile in {"src": src, **tiles}.items():
        if None in tile.valid:
            return f"the valid region of {name} is known when it runs"
    axis0, interleaved = case.word("grpAxis") == "axis0", case.word("interleave") == "true"
    m, n = src.valid[0] or 0, src.valid[1] or 0
    if (m if axis0 else n) % MX_BLOCK_SIZE or (
        interleaved and (not axis0 or m % (2 * MX_BLOCK_SIZE))
    ):
        return None  # another rule reports it
    if axis0 and case.op.operand("exp_zz") is not None:
        return "exp_zz goes with groups along rows"
    kind, algorithm = case.word("quant_type") or "", case.word("quantScaleAlg") or "ocp"
    shapes = _Shapes(src, tiles, m, n, kind, algorithm, interleaved)
    yielded = (*shapes.all(), *(shapes.down() if axis0 else shapes.along()))
    return yielded[0] if yielded else None


@rule("PTO-S044", "expects tiles large enough for exponents in boxes of 16x2", id="mx-boxes")
def regrouped(case: Case, src: TileType, dst: TileType, fp: TileType) -> str | None:
    """The reason why a move of MX exponents to layout ZZ is illegal; None if it is legal."""
    if {case.role("src"), case.role("dst")} != {"vec"}:
        return None
    if case.profile.scaling.sources == "any" and dst.layout.name != "ZZ":
        return None  # fp scales
    if case.role("fp") != "vec":
        return f"fp is in {case.role('fp')}"
    if None in (*src.valid, *dst.valid):
        return "a valid region is known when it runs"
    kinds = {tile.dtype.name for tile in (src, dst, fp)}
    if len(kinds) > 1 or not kinds <= {"u8", "hifloat8", "e8m0"}:
        return f"the tiles hold {', '.join(sorted(kinds))}"
    if src.layout.name != "ND" or dst.layout.name != "ZZ":
        return f"src is {src.layout.name}, dst is {dst.layout.name}"
    (high, wide), (rows, groups) = src.valid, dst.valid
    high = high or 0
    wide = wide or 0
    rows = rows or 0
    groups = groups or 0
    if high * wide != rows * groups:
        return f"src has {high * wide} exponents, dst {rows * groups}"
    if case.word("grpAxis") == "axis0":
        if high < 2 or high % 2 or wide % MX_ROW_LEN or src.cols != wide:
            return f"src is {high}x{wide} of {src.rows}x{src.cols}, not pairs of rows of 16s"
        return None
    if groups % 2:
        return f"dst has {groups} groups"
    if high != 1 and src.cols != wide:
        return f"src has {wide} of {src.cols} columns valid, and is read in one piece"
    bands = -(-rows // MX_ROW_LEN)
    needed = bands * MX_ROW_LEN * groups, 64 + bands * groups
    for name, tile, bytes in (
        ("src", src, needed[0]),
        ("dst", dst, needed[0]),
        ("fp", fp, needed[1]),
    ):
        if tile.rows * tile.cols < bytes:
            return f"{name} has {tile.rows * tile.cols} bytes, {bytes} are needed"
    return None
