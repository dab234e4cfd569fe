"""What a proof takes as written is written: every instruction on tiles, with random regions.

An instruction runs three times over destinations of different content. A byte that keeps it was not
written.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pto.core.errors import PtoError
from pto.core.memory import Space
from pto.core.tile import Tile
from pto.ir.graph import Module, Operation, Value
from pto.ir.text.parser import parse, parse_file
from pto.ir.text.printer import print_operation
from pto.ir.text.types import type_text
from pto.isa.row import types as t
from pto.isa.row.traits import RegionRule
from pto.isa.rules.rule import Case
from pto.observe.proofs import prove
from pto.prove.filled import Target, filled
from pto.prove.number import ZERO, number
from pto.prove.parts import TilePart
from pto.prove.reads import REBINDS
from pto.run.reference.compile import Compiler
from pto.target.profile import profile as find_profile
from tests.machine import new_core

GOOD = sorted((Path(__file__).parents[1] / "pto" / "good").glob("*.pto"))
PROFILES = ("a5", "a2a3", "cpu")
FILLS = (0x00, 0xFF, 0x5A)
DRAWS = 8  # of valid regions
_ELSEWHERE = (RegionRule.PRODUCT, RegionRule.BITS)  # the part follows from the sources before
Region = tuple[int, int]


def _operations() -> Iterator[Operation]:
    """Instructions on tiles and numbers alone, one for each name and types."""
    seen = set[str]()
    for path in GOOD:
        for op in parse_file(path).walk():
            types = [v.type for v in op.operands]
            plain = all(isinstance(type, t.TileBuf | t.Scalar) for type in types)
            if plain and not op.results and any(isinstance(type, t.TileBuf) for type in types):
                key = f"{op.name} {op.attrs} {types}"
                if op.row.family.section == "tile" and key not in seen:
                    yield op
                seen.add(key)


def _alone(op: Operation) -> Module:
    """A function of one operation on its operands, with regions that a run sets."""
    values = list(dict.fromkeys(op.operands))
    types = [v.type for v in values]
    for v in values:
        if isinstance(v.type, t.TileBuf):
            v.type = replace(v.type, tile=replace(v.type.tile, valid=(None, None)))
    args = ", ".join(f"%{v.name}: {type_text(v.type)}" for v in values)
    text = f"func.func @f({args}) {{\n{print_operation(op)}\nreturn\n}}"
    for v, type in zip(values, types, strict=True):
        v.type = type
    return parse(text)


def _regions(tiles: Sequence[Value], rng: random.Random) -> dict[Value, Region]:
    """Whole tiles, one region for all, or one for each."""
    way, shared = rng.choice(["whole", "shared", "some"]), (rng.randint(1, 40), rng.randint(1, 70))
    found: dict[Value, Region] = {}
    for v in tiles:
        assert isinstance(v.type, t.TileBuf)
        rows, cols = v.type.tile.shape
        found[v] = rows, cols
        if way == "shared":
            found[v] = min(rows, shared[0]), min(cols, shared[1])
        if way == "some" and rng.random() < 0.6:
            found[v] = rng.randint(0, rows), rng.randint(0, cols)
    return found


def _part(v: Value, region: Region) -> TilePart:
    assert isinstance(v.type, t.TileBuf)
    tile = replace(v.type.tile, valid=v.type.tile.shape)
    rows, cols = map(number, region)
    buffer, slot = (tile.space, 1), (tile.space, 0, tile.nbytes)
    return TilePart(buffer, 0, tile, ZERO, ZERO, rows, cols, slot, 1)


def _ran(module: Module, profile: str, regions: dict[Value, Region], fill: int) -> dict[Value, Any]:
    """The bytes of each tile after a run over destinations that hold `fill`."""
    (function,) = module.functions()
    (op, *_) = function.regions[0].block.ops
    core, ends = new_core(profile), dict[Space, int]()
    read = {v for o in op.row.operands if o.role.startswith("in") for v in op.group(o.name)}
    values, memories = list[Any](), dict[Value, Any]()
    rng = np.random.default_rng(0)
    for v in function.regions[0].block.args:
        if not isinstance(v.type, t.TileBuf):
            assert isinstance(v.type, t.Scalar)
            kind = v.type.dtype
            values.append(kind.numpy.type(1.5) if kind is not None and kind.is_float else 1)
            continue
        tile, memory = v.type.tile, core.memory(v.type.tile.space)
        start = ends.get(tile.space, 0)
        ends[tile.space] = start + -(-tile.nbytes // 512) * 512
        memories[v] = memory.view(start, tile.nbytes)
        items = rng.integers(0, 4, tile.nbytes // tile.itemsize).astype(tile.dtype.numpy)
        memories[v][:] = items.view(np.uint8) if v in read else fill
        values.append(Tile(tile, memory, start, regions[v]))
    code = Compiler(module, core.profile, core.side).code("f")
    with np.errstate(all="ignore"):
        code.call(core, values)
    return {v: np.array(bytes) for v, bytes in memories.items()}


def _unwritten(op: Operation, profile: str, rng: random.Random) -> list[str] | None:
    """Destinations of which a byte that is taken as written is not; None where a run is refused."""
    module = _alone(op)
    (function,) = module.functions()
    (op, *_) = function.regions[0].block.ops
    tiles = [v for v in function.regions[0].block.args if isinstance(v.type, t.TileBuf)]
    regions = _regions(tiles, rng)
    try:
        runs = [_ran(module, profile, regions, fill) for fill in FILLS]
    except PtoError:
        return None
    named = [(o, v) for o in op.row.operands for v in op.group(o.name) if v in regions]
    sources = {o.name: _part(v, regions[v]) for o, v in named if o.role == "in"}
    case, wrong = Case(op, find_profile(profile)), list[str]()
    for operand, v in named:
        if operand.role != "out" or op.traits.region in _ELSEWHERE or op.body in REBINDS:
            continue
        part = filled(Target(op, case, operand.name, _part(v, regions[v]), sources, ()))
        if part is None:
            continue
        bits = part.bytes(all=False)
        assert bits is not None
        kept = [n for n in np.flatnonzero(runs[0][v] != runs[1][v]) if bits >> int(n) & 1]
        kept += [n for n in np.flatnonzero(runs[1][v] != runs[2][v]) if bits >> int(n) & 1]
        if kept:
            shown = {w.name: regions[w] for w in tiles}
            wrong.append(f"{print_operation(op)}: {operand.name}, {len(kept)} bytes, {shown}")
    return wrong


@pytest.mark.parametrize("profile", PROFILES)
def test_bytes_that_are_taken_as_written_are_written(profile: str) -> None:
    rng, ran, wrong = random.Random(1), set[str](), list[str]()
    for op in _operations():
        for _ in range(DRAWS):
            found = _unwritten(op, profile, rng)
            if found is not None:
                ran.add(op.name)
                wrong += found
    assert not wrong, wrong[0]
    assert len(ran) >= 60


PREAMBLE = """module attributes {pto.target_arch = "a5"} {
func.func @f() {
  %c8 = arith.constant 8 : index
  %c64 = arith.constant 64 : index
"""


def _reads(*lines: str) -> str:
    text = "\n".join([PREAMBLE, *lines, "return } }"])
    module = parse(text)
    found = prove(module, list(module.functions()))
    return next(a.verdict for _, a in found if a.question == "reads")


@pytest.mark.parametrize(("wide", "verdict"), [(16, "proved"), (32, "not proved")])
def test_a_concatenation_fills_as_many_columns_as_its_sources_have(wide: int, verdict: str) -> None:
    half, whole = "!pto.tile_buf<vec, 8x8xf32>", f"!pto.tile_buf<vec, 8x{wide}xf32>"
    found = _reads(
        f"%a = pto.alloc_tile : {half}",
        "%one = arith.constant 1.0 : f32",
        f"pto.texpands ins(%one : f32) outs(%a : {half})",
        f"%d = pto.alloc_tile : {whole}",
        f"pto.tconcat ins(%a, %a : {half}, {half}) outs(%d : {whole})",
        f"pto.tadds ins(%d, %one : {whole}, f32) outs(%d : {whole})",
    )
    assert (found == "proved") is (verdict == "proved")


@pytest.mark.parametrize(("cols", "verdict"), [(64, "proved"), (8, "not proved")])
def test_a_pattern_fills_what_it_selects(cols: int, verdict: str) -> None:
    data, picked = "!pto.tile_buf<vec, 8x64xf32, valid=?x?>", "!pto.tile_buf<vec, 8x32xf32>"
    mask = "{maskPattern = #pto.mask_pattern<P0101>}"
    found = _reads(
        f"%s = pto.alloc_tile valid_row = %c8 valid_col = %c{cols} : {data}",
        f"%d = pto.alloc_tile : {picked}",
        "%one = arith.constant 1.0 : f32",
        f"pto.texpands ins(%one : f32) outs(%s : {data})",
        f"pto.tgather ins(%s, {mask} : {data}) outs(%d : {picked})",
        f"pto.tadds ins(%d, %one : {picked}, f32) outs(%d : {picked})",
    )
    assert (found == "proved") is (verdict == "proved")
