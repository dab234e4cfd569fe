"""Predicates, selections, moves, folds, carries, conversions and streams on both engines."""

from __future__ import annotations

import numpy as np
import pytest

from pto.core.dtypes import dtype
from pto.isa.table import lookup
from pto.isa.vector.convert import PAIRS
from tests.run.jit.bench import BothEngines, edge_values, spelled
from tests.vectors import reg

_SOME = [0, 1, 5, 6, 7, 30, 31]
_WORDS = ("ui32", "i32")


def types(name: str) -> list[str]:
    row = lookup(f"pto.{name}")
    assert row is not None
    return [spelled(e) for e in sorted(row.types["a5"])]


def cases(*names: str) -> list[tuple[str, str]]:
    return [(name, elem) for name in names for elem in types(name)]


def bench(elem: str) -> BothEngines:
    """Registers %a and %b, a mask %m of some lanes, %all of all and %none."""
    found, kind = BothEngines(), dtype(elem)
    found.vreg("a", elem, edge_values(kind, kind.lanes, 1))
    found.vreg("b", elem, edge_values(kind, kind.lanes, 2))
    bits = min(8 * kind.itemsize, 32)
    found.mask("m", bits, _SOME)
    found.mask("all", bits)
    found.mask("none", bits, [])
    return found


# ---- folds


@pytest.mark.parametrize(
    "name, elem", cases("vcadd", "vcmax", "vcmin", "vcgadd", "vcgmax", "vcgmin", "vcpadd")
)
@pytest.mark.parametrize("mask", ["m", "all", "none"])
def test_folds(name: str, elem: str, mask: str) -> None:
    wider = {"i8": "i16", "ui8": "ui16", "i16": "i32", "ui16": "ui32"}
    out = reg(wider.get(elem, elem) if name == "vcadd" else elem)
    bench(elem).one(f"%r = pto.{name} %a, %{mask} : {{a}}, {{m}} -> {out}", out)


@pytest.mark.parametrize("name", ["vcmax", "vcmin", "vcgmax", "vcgmin"])
def test_extremes_of_zeros_and_of_equals(name: str) -> None:
    at = bench("f32")
    at.vreg("a", "f32", [-0.0, 0.0, -0.0, 0.0, 0.0, -0.0])
    at.one(f"%r = pto.{name} %a, %all : {{a}}, {{all}} -> {{a}}", reg("f32"))
    at.vreg("a", "f32", [1.0, np.nan, 2.0, np.nan])
    at.one(f"%r = pto.{name} %a, %m : {{a}}, {{m}} -> {{a}}", reg("f32"))


# ---- comparisons and selections


@pytest.mark.parametrize("mode", ["eq", "ne", "lt", "le", "gt", "ge"])
@pytest.mark.parametrize("elem", ["f32", "f16", "bf16", "i8", "ui16", "i32", "ui32"])
def test_comparisons(mode: str, elem: str) -> None:
    at, kind = bench(elem), dtype(elem)
    mask = f"!pto.mask<b{8 * kind.itemsize}>"
    at.scalar("k", elem, 1)
    body = f"""%r = pto.vcmp %a, %b, %m, "{mode}" : {{a}}, {{b}}, {{m}} -> {mask}
               %s = pto.vcmps %a, %k, %all, "{mode}" : {{a}}, {{k}}, {{all}} -> {mask}"""
    at.two(body, mask)


@pytest.mark.parametrize("elem", types("vsel"))
def test_selections(elem: str) -> None:
    at = bench(elem)
    at.one("%r = pto.vsel %a, %b, %m : {a}, {b}, {m} -> {a}", reg(elem))


@pytest.mark.parametrize("elem", types("vselr"))
def test_selections_by_index(elem: str) -> None:
    at, kind = bench(elem), dtype(elem)
    index = f"ui{8 * kind.itemsize}"
    at.vreg("n", index, np.random.default_rng(0).integers(0, 1 << 7, kind.lanes))
    at.one("%r = pto.vselr %a, %n : {a}, {n} -> {a}", reg(elem))


# ---- registers from one value


@pytest.mark.parametrize("elem", types("vci"))
def test_values_and_counts(elem: str) -> None:
    at = bench(elem)
    at.scalar("k", elem, 3)
    body = f"""%r = pto.vbr %k : {{k}} -> {reg(elem)}
               %s = pto.vdup %k, %m : {{k}}, {{m}} -> {reg(elem)}"""
    at.two(body, reg(elem))
    body = f"""%r = pto.vci %k {{order = "ASC"}} : {{k}} -> {reg(elem)}
               %s = pto.vci %k {{order = "DESC"}} : {{k}} -> {reg(elem)}"""
    at.two(body, reg(elem))


@pytest.mark.parametrize("position", ["LOWEST", "HIGHEST"])
@pytest.mark.parametrize("mask", ["m", "all"])
def test_one_lane_in_all(position: str, mask: str) -> None:
    at = bench("f16")
    attrs = f'{{position = "{position}"}}'
    at.one(f"%r = pto.vdup %a, %{mask} {attrs} : {{a}}, {{m}} -> {{a}}", reg("f16"))


# ---- rearranged


@pytest.mark.parametrize("name", ["vintlv", "vdintlv"])
@pytest.mark.parametrize("elem", types("vintlv"))
def test_interleaved(name: str, elem: str) -> None:
    bench(elem).two(f"%r, %s = pto.{name} %a, %b : {{a}}, {{b}} -> {{a}}, {{a}}", reg(elem))


@pytest.mark.parametrize("amount", [0, 1, 17, 64])
def test_slides(amount: int) -> None:
    at = bench("f32")
    at.scalar("k", "i16", amount)
    body = """%r = pto.vslide %a, %b, %k : {a}, {b}, {k} -> {a}
              %s = pto.vshift %a, %k : {a}, {k} -> {a}"""
    at.two(body, reg("f32"))


def test_a_slide_too_far_is_refused() -> None:
    at = bench("f32")
    at.scalar("k", "i16", 65)
    body = "%r = pto.vslide %a, %b, %k : {a}, {b}, {k} -> {a}"
    assert at.fails(body, results=f"%r : {reg('f32')}") == "PTO-S140"


@pytest.mark.parametrize("part", [0, 1])
@pytest.mark.parametrize(
    "name, elem, wide", [("vsunpack", "i16", "i32"), ("vzunpack", "ui8", "ui16")]
)
def test_unpacked(name: str, elem: str, wide: str, part: int) -> None:
    at = bench(elem)
    at.scalar("k", "index", part)
    at.one(f"%r = pto.{name} %a, %k : {{a}}, {{k}} -> {reg(wide)}", reg(wide))


@pytest.mark.parametrize("elem", types("vsqz"))
@pytest.mark.parametrize("mask", ["m", "all", "none"])
def test_squeezed(elem: str, mask: str) -> None:
    bench(elem).one(f"%r = pto.vsqz %a, %{mask} : {{a}}, {{m}} -> {{a}}", reg(elem))


# ---- carries


@pytest.mark.parametrize("elem", _WORDS)
def test_carries(elem: str) -> None:
    at, mask = bench(elem), "!pto.mask<b32>"
    for name in ("vaddc", "vsubc"):
        body = f"%r, %s = pto.{name} %a, %b, %m : {{a}}, {{b}}, {{m}} -> {{a}}, {mask}"
        at.two(body, reg(elem), mask)
        body = (
            f"%r, %s = pto.{name}s %a, %b, %m, %all : {{a}}, {{b}}, {{m}}, {{m}} -> {{a}}, {mask}"
        )
        at.two(body, reg(elem), mask)
    at.two("%r, %s = pto.vmull %a, %b, %m : {a}, {b}, {m} -> {a}, {a}", reg(elem))


# ---- conversions


@pytest.mark.parametrize("pair", list(PAIRS))
@pytest.mark.parametrize("mask", ["m", "all"])
def test_conversions(pair: str, mask: str) -> None:
    src, dst = map(spelled, pair.split())
    step = dtype(dst).itemsize / dtype(src).itemsize
    last = {2: "ODD", 0.5: "ODD", 4: "P3", 0.25: "P2"}.get(step, "")
    words = {"rnd": "A", "sat": "SAT", "part": last}
    attrs = ", ".join(f'{name} = "{words[name]}"' for name in PAIRS[pair].split())
    at = bench(src)
    body = f"%r = pto.vcvt %a, %{mask} {{{attrs}}} : {{a}}, {{m}} -> {reg(dst)}"
    packed = "x2" in pair  # two elements a byte: the reference converts those
    at.run(body, results=f"%r : {reg(dst)}", all_native=not packed)


# ---- predicates


@pytest.mark.parametrize("bits", [8, 16, 32])
def test_predicates(bits: int) -> None:
    at, mask = BothEngines(), f"!pto.mask<b{bits}>"
    rng = np.random.default_rng(bits)
    for name in "abc":
        at.mask(name, bits, rng.permutation(2048 // bits)[:20].tolist())
    for name in ("pand", "por", "pxor", "psel"):
        at.one(f"%r = pto.{name} %a, %b, %c : {{a}}, {{b}}, {{c}} -> {mask}", mask)
    at.one(f"%r = pto.pnot %a, %b : {{a}}, {{b}} -> {mask}", mask)
    for name in (f"pintlv_b{bits}", f"pdintlv_b{bits}"):
        at.two(f"%r, %s = pto.{name} %a, %b : {{a}}, {{b}} -> {mask}, {mask}", mask)


@pytest.mark.parametrize("part", ["LOWER", "HIGHER"])
def test_packed_predicates(part: str) -> None:
    at = BothEngines()
    at.mask("a", 16, range(0, 128, 3))
    at.one(f'%r = pto.ppack %a, "{part}" : {{a}} -> !pto.mask<b16>', "!pto.mask<b16>")
    at.one(f'%r = pto.punpack %a, "{part}" : {{a}} -> !pto.mask<b16>', "!pto.mask<b16>")


@pytest.mark.parametrize("dist", ["NORM", "US", "DS"])
def test_predicates_in_memory(dist: str) -> None:
    at = BothEngines()
    at.pointer("p", "ui8, ub", edge_values(dtype("ui8"), 512, 3))
    at.scalar("i", "index", 16)
    at.mask("a", 16, range(0, 128, 3))
    at.one(f'%r = pto.plds %p[%i], "{dist}" : {{p}}, {{i}} -> !pto.mask<b16>', "!pto.mask<b16>")
    store = "NORM" if dist == "US" else "PK"
    at.run(f'pto.psts %a, %p[%i], "{store}" : {{a}}, {{p}}, {{i}}')
    at.scalar("i", "index", 12)
    code = at.fails(f'pto.psts %a, %p[%i], "{store}" : {{a}}, {{p}}, {{i}}')
    assert code == "PTO-M080"


# ---- streams


def test_a_stream_of_stores_in_a_loop() -> None:
    at = BothEngines()
    at.pointer("p", "f32, ub", np.zeros(600))
    at.vreg("a", "f32", np.arange(64))
    at.scalar("n", "i32", 13)
    body = """
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c5 = arith.constant 5 : index
      %z = arith.constant 0 : i32
      %step = arith.constant 13 : index
      %s0 = pto.init_align : !pto.align
      %end, %s = scf.for %i = %c0 to %c5 step %c1 
        iter_args(%q = %p, %t = %s0) -> ({p}, !pto.align) {
        %u = pto.vstus %t, %n, %a, %q : !pto.align, {n}, {a}, {p} -> !pto.align
        %next = pto.addptr %q, %step : {p} -> {p}
        scf.yield %next, %u : {p}, !pto.align
      }
      pto.vstas %s, %end, %z : !pto.align, {p}, i32
    """
    at.run(body)


def test_a_stream_of_loads() -> None:
    at = BothEngines()
    at.pointer("p", "f32, ub", np.arange(600))
    at.scalar("k", "index", 3)
    body = """
      %q = pto.addptr %p, %k : {p} -> {p}
      %s0 = pto.vldas %q : {p} -> !pto.align
      %r, %s1 = pto.vldus %q, %s0 : {p}, !pto.align -> !pto.vreg<64xf32>, !pto.align
      %c = arith.constant 64 : index
      %w = pto.addptr %q, %c : {p} -> {p}
      %s, %s2 = pto.vldus %w, %s1 : {p}, !pto.align -> !pto.vreg<64xf32>, !pto.align
    """
    at.run(body, results="%r : !pto.vreg<64xf32>; %s : !pto.vreg<64xf32>; %s2 : !pto.align")
    assert at.fails(body.replace("%w, %s1", "%w, %s0")) == "PTO-M142"
