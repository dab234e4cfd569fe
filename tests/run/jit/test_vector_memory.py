"""Loads and stores of registers in compiled code: every distribution, every edge of the buffer."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pto.core.dtypes import dtype
from pto.isa.meaning.vector.load import DISTS, STRIDES
from pto.isa.meaning.vector.store import MERGED, PACKED
from tests.run.jit.bench import BothEngines, edge_values
from tests.vectors import reg

_UB = 256 * 1024
_SOME = [0, 1, 5, 6, 7, 30, 31, 40, 63]


def bench(elem: str, size: int = 4096) -> BothEngines:
    """A pointer %p to random bytes, an index %i, a register %x and a mask %m."""
    found, kind = BothEngines(), dtype(elem)
    found.pointer("p", f"{elem}, ub", edge_values(kind, size // kind.itemsize, 1))
    found.vreg("x", elem, edge_values(kind, kind.lanes, 2))
    found.vreg("y", elem, edge_values(kind, kind.lanes, 3))
    found.mask("m", min(8 * kind.itemsize, 32), _SOME)
    found.scalar("i", "index", 32)
    return found


def _elem(bits: int) -> str:
    return {8: "ui8", 16: "bf16", 32: "f32", 64: "i64"}[bits]


@pytest.mark.parametrize("dist", ["NORM", *DISTS])
def test_loads(dist: str) -> None:
    elem = _elem(DISTS[dist][0] if dist in DISTS else 32)
    attr = f'{{dist = "{dist}"}}'
    bench(elem).one(f"%r = pto.vlds %p[%i] {attr} : {{p}} -> {reg(elem)}", reg(elem))


@pytest.mark.parametrize("dist", list(DISTS))
def test_loads_touch_no_byte_more_than_they_need(dist: str) -> None:
    """The last place they fit, and the first where they do not."""
    bits, read, _ = DISTS[dist]
    elem, size = _elem(bits), bits // 8
    at = bench(elem)
    at.scalar("i", "index", _UB // size - read)
    body = f'%r = pto.vlds %p[%i] {{dist = "{dist}"}} : {{p}} -> {reg(elem)}'
    at.one(body, reg(elem))
    at.scalar("i", "index", _UB // size - read + 1)
    assert at.fails(body, results=f"%r : {reg(elem)}") == "PTO-M001"


def test_the_base_moves_on() -> None:
    body = """%r, %q = pto.vlds %p[%i] : {p} -> !pto.vreg<64xf32>, {p}
              %s, %t = pto.vlds %q[%i] : {p} -> !pto.vreg<64xf32>, {p}
              %u = pto.vsts %r, %t[%i], %m : !pto.vreg<64xf32>, {p}, {m} -> {p}"""
    bench("f32").run(body, results="%s : !pto.vreg<64xf32>; %u : !pto.ptr<f32, ub>")


V, A, P = "!pto.vreg<64xf32>", "!pto.align", "!pto.ptr<f32, ub>"
MOVES_ON = {
    "pairs": f'%u, %v, %q = pto.vldsx2 %p[%i], "DINTLV_B32" : {P}, index -> {V}, {V}, {P}',
    "blocks": f"%u, %q = pto.vsldb %p, %two, %two, %m : {P}, i16, i16, {{m}} -> {V}, {P}",
    "blocks out": f"%q = pto.vsstb %x, %p, %two, %two, %m : {V}, {P}, i16, i16, {{m}} -> {P}",
    "a stream": f"""%a = pto.vldas %p : {P} -> {A}
      %u, %b, %q = pto.vldus %p, %a, %i : {P}, {A}, index -> {V}, {A}, {P}""",
    "a stream that begins further on": f"""%a = pto.vldas %p[%i] : {P} -> {A}
      %o = pto.addptr %p, %i : {P} -> {P}
      %u, %b, %q = pto.vldus %o, %a, %i : {P}, {A}, index -> {V}, {A}, {P}""",
    "a stream out": f"""%a = pto.init_align : {A}
      %b, %o = pto.vstus %a, %three, %x, %p : {A}, i32, {V}, {P} -> {A}, {P}
      %q = pto.vstas %b, %o, %zero : {A}, {P}, i32 -> {P}""",
}


@pytest.mark.parametrize("name", MOVES_ON)
def test_bases_of_every_access_move_on(name: str) -> None:
    at = bench("f32")
    for word, type, value in (("two", "i16", 2), ("three", "i32", 3), ("zero", "i32", 0)):
        at.scalar(word, type, value)
    body = MOVES_ON[name] + f"\n%w = pto.vlds %q[%i] : {P} -> {V}"
    found = "%u : " + V + "; " if "%u," in body else ""
    at.run(body.replace("%q[%i]", "%p[%i]") if "out" in name else body, results=f"{found}%q : {P}")


@pytest.mark.parametrize("load", ["plds", "pldi"])
def test_bases_of_masks_move_on(load: str) -> None:
    at = bench("ui8")
    at.scalar("one", "index", 1 if load == "pldi" else 32)
    store, ptr, mask = load.replace("pld", "pst"), "!pto.ptr<ui8, ub>", "!pto.mask<b8>"
    at.run(
        f"""%a, %q = pto.{load} %p[%one], "NORM" : {ptr}, index -> {mask}, {ptr}
            %b, %r = pto.{load} %q[%one], "NORM" : {ptr}, index -> {mask}, {ptr}
            %s = pto.{store} %b, %r[%one], "NORM" : {mask}, {ptr}, index -> {ptr}""",
        results=f"%a : {mask}; %b : {mask}; %s : {ptr}",
    )


@pytest.mark.parametrize("dist", ["BDINTLV", "DINTLV_B8", "DINTLV_B16", "DINTLV_B32"])
def test_loads_of_two(dist: str) -> None:
    elem = _elem(int(dist.partition("_B")[2] or 16))
    body = f'%r, %s = pto.vldsx2 %p[%i], "{dist}" : {{p}}, {{i}} -> {reg(elem)}, {reg(elem)}'
    bench(elem).two(body, reg(elem))


@pytest.mark.parametrize("stride", list(STRIDES))
def test_strided(stride: str) -> None:
    elem = _elem(min(STRIDES[stride][0], 32))
    at = bench(elem, 16384)
    at.one(f'%r = pto.vsld %p[%i], "{stride}" : {{p}} -> {reg(elem)}', reg(elem))
    at.run(f'pto.vsst %x, %p[%i], "{stride}" : {{x}}, {{p}}')


_STORES = [*PACKED, *MERGED, "1PT_B8", "1PT_B16", "1PT_B32", "NORM_B8", "NORM_B16", "NORM_B32"]


@pytest.mark.parametrize("dist", _STORES)
def test_stores(dist: str) -> None:
    bits = int(dist.partition("_B")[2])
    elem = _elem(bits)
    body = f'pto.vsts %x, %p[%i], %m {{dist = "{dist}"}} : {{x}}, {{p}}, {{m}}'
    bench(elem).run(body)


@pytest.mark.parametrize("bits", [8, 16, 32])
def test_stores_of_two(bits: int) -> None:
    elem = _elem(bits)
    at = bench(elem)
    at.run(f'pto.vstsx2 %x, %y, %p[%i], "INTLV_B{bits}", %m : {{x}}, {{y}}, {{p}}, {{i}}, {{m}}')


def test_a_store_beside_the_buffer_writes_nothing() -> None:
    at = bench("f32")
    at.scalar("i", "index", _UB // 4 - 63)
    assert at.fails("pto.vsts %x, %p[%i], %m : {x}, {p}, {m}") in ("PTO-M001", "PTO-M140")


# ---- blocks and items by index


@pytest.mark.parametrize("block, repeat", [(1, 0), (3, 2), (0, 1), (-1, 0)])
def test_blocks(block: int, repeat: int) -> None:
    at = bench("f32", 16384)
    at.mask("m", 32, [0, 2, 3, 7] if block >= 0 else [0])
    at.scalar("b", "i16", block)
    at.scalar("k", "i16", repeat)
    at.one("%r = pto.vsldb %p, %b, %k, %m : {p}, {b}, {k}, {m} -> {x}", reg("f32"))
    at.run("pto.vsstb %x, %p, %b, %k, %m : {x}, {p}, {b}, {k}, {m}")
    body = "%r = pto.vsstb %x, %p, %b, %k, %m : {x}, {p}, {b}, {k}, {m} -> {p}"
    at.run(body, results="%r : !pto.ptr<f32, ub>")


def test_a_block_outside_the_buffer_is_named() -> None:
    at = bench("f32")
    at.scalar("b", "i16", 0x7FFF)
    at.scalar("k", "i16", 0)
    at.mask("m", 32, [0, 1])
    body = "%r = pto.vsldb %p, %b, %k, %m : {p}, {b}, {k}, {m} -> {x}"
    assert at.fails(body, results=f"%r : {reg('f32')}").startswith("PTO-M")


def _indices(elem: str, most: int) -> Any:
    return np.random.default_rng(7).integers(0, most, dtype(elem).lanes)


@pytest.mark.parametrize("elem, index", [("f32", "i32"), ("f32", "ui32"), ("f16", "ui16")])
@pytest.mark.parametrize("lanes", [None, _SOME])
def test_items_by_index(elem: str, index: str, lanes: Any) -> None:
    at = bench(elem)
    at.vreg("n", index, _indices(index, 500))
    at.mask("m", 8 * dtype(elem).itemsize, lanes)
    at.one("%r = pto.vgather2 %p, %n, %m : {p}, {n}, {m} -> {x}", reg(elem))
    at.run("pto.vscatter %x, %p, %n, %m : {x}, {p}, {n}, {m}")


def test_where_two_lanes_hit_one_place_the_higher_wins() -> None:
    at = bench("f32")
    at.vreg("n", "i32", [3, 3, 4])
    at.mask("m", 32)
    at.run("pto.vscatter %x, %p, %n, %m : {x}, {p}, {n}, {m}")


def test_only_active_lanes_must_lie_inside() -> None:
    at = bench("f32")
    far = np.zeros(64)
    far[[2, 5]] = [-1, 1 << 29]
    at.vreg("n", "i32", far)
    at.mask("m", 32, [0, 1, 3])
    body = "%r = pto.vgather2 %p, %n, %m : {p}, {n}, {m} -> {x}"
    at.one(body, reg("f32"))
    at.mask("m", 32, [0, 5])
    assert at.fails(body, results=f"%r : {reg('f32')}") == "PTO-M141"


def test_blocks_by_offset() -> None:
    at = bench("f32")
    at.vreg("n", "ui32", np.arange(64)[::-1] * 32)
    at.mask("m", 32, [0, 1, 2, 5, 7, 9])
    at.one("%r = pto.vgatherb %p, %n, %m : {p}, {n}, {m} -> {x}", reg("f32"))


@pytest.mark.parametrize("count", [-3, 0, 5, 64, 900])
def test_items_are_gathered_by_a_number_of_lanes(count: int) -> None:
    at = bench("f32")
    at.vreg("j", "ui32", np.arange(64) * 37 % 1024)
    at.scalar("n", "index", count)
    at.one(f"%r = pto.vgather2 %p, %j, %n : {{p}}, {{j}}, index -> {reg('f32')}", reg("f32"))


def test_bytes_are_gathered_into_lanes_of_16_bits() -> None:
    at = bench("ui8")
    at.vreg("j", "ui16", np.arange(128) * 31 % 4096)
    at.mask("h", 16, _SOME)
    body = f"%r = pto.vgather2 %p, %j, %h : {{p}}, {{j}}, {{h}} -> {reg('ui16')}"
    at.one(body, reg("ui16"))
    at.vreg("j", "ui16", np.arange(128) + (65535 - 127))
    at.pointer("p", "ui8, ub", np.arange(8))
    at.one(body, reg("ui16"))
