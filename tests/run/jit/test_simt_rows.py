"""Work items on both engines: row by row, under masks, around loops, and what mistakes are told."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from pto.isa.rules.simt import MAX_ITEMS
from tests.run.jit.both import agree, fails_alike

OUTER = """
module attributes {{pto.target_arch = "a5", pto.kernel_kind = #pto.kernel_kind<vector>}} {{
  func.func @kernel(%in: !pto.ptr<{src}, gm>, %out: !pto.ptr<{dst}, gm>, %x: i32, %y: i32)
      attributes {{pto.aicore}} {{
    %one = arith.constant 1 : i32
    pto.simt_launch @body<<<%x, %y, %one>>>(%in, %out)
      : (!pto.ptr<{src}, gm>, !pto.ptr<{dst}, gm>) -> ()
    return
  }}
  func.func @body(%in: !pto.ptr<{src}, gm>, %out: !pto.ptr<{dst}, gm>)
      attributes {{pto.simt_entry}} {{
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %k1 = arith.constant 1 : i32
    %k3 = arith.constant 3 : i32
    %k7 = arith.constant 7 : i32
    %tx = pto.get_tid_x : i32
    %ty = pto.get_tid_y : i32
    %dx = pto.get_block_dim_x : i32
    %row = arith.muli %ty, %dx : i32
    %n = arith.addi %row, %tx : i32
    %i = arith.index_castui %n : i32 to index
    %lane = pto.get_laneid : i32
    %odd = arith.andi %n, %k1 : i32
    %is_odd = arith.cmpi eq, %odd, %k1 : i32
    %v = pto.load %in[%i] : !pto.ptr<{src}, gm> -> {src}
{body}
    return
  }}
{more}
}}
"""
SIZES = ((64, 1), (40, 1), (33, 3))
KINDS = {
    "i8": np.int8,
    "i16": np.int16,
    "i32": np.int32,
    "i64": np.int64,
    "f16": np.float16,
    "bf16": np.uint16,
    "f32": np.float32,
}
PACKED = {"vector<2xf16>": np.float16, "vector<2xbf16>": np.uint16}


def program(body: str, src: str = "i32", dst: str = "", more: str = "") -> str:
    return OUTER.format(body=body, src=src, dst=dst or src, more=more)


def values(src: str, count: int = MAX_ITEMS) -> np.ndarray:
    rng = np.random.default_rng(3)
    if src in PACKED:
        return _floats(rng, PACKED[src], 2 * count)
    kind = KINDS[src]
    if src in ("f16", "bf16", "f32"):
        return _floats(rng, kind, count)
    return rng.integers(-(1 << 40), 1 << 40, count).astype(kind)


def _floats(rng: np.random.Generator, kind: type, count: int) -> np.ndarray:
    found = (rng.normal(size=count) * 40).astype(np.float32)
    found[::17] = 0
    return (
        (found.view(np.uint32) >> 16).astype(np.uint16) if kind is np.uint16 else found.astype(kind)
    )


def both(body: str, src: str = "i32", dst: str = "", sizes: object = SIZES, more: str = "") -> None:
    room = values(dst or src)
    for x, y in sizes:  # type: ignore[attr-defined]
        agree(program(body, src, dst, more), [values(src), np.zeros_like(room), x, y])


def store(name: str, type: str) -> str:
    return f"    pto.store {name}, %out[%i] : !pto.ptr<{type}, gm>, {type}"


UNARY = {"absf": "f16 f32 P B", "sqrt": "f16 f32 P", "exp": "f16 f32 P", "log": "f16 f32 P"}
UNARY |= dict.fromkeys(("ceil", "floor", "rint", "round"), "f16 bf16 f32")
UNARY |= {"sin": "f32", "cos": "f32"}
BINARY = {"fmin": "f16 f32 bf16 P B", "fmax": "f16 f32 bf16 P B", "pow": "f16 f32"}
SHORT = {"P": "vector<2xf16>", "B": "vector<2xbf16>"}
MATH = [(n, SHORT.get(ty, ty)) for n, types in (UNARY | BINARY).items() for ty in types.split()]


@pytest.mark.parametrize(("name", "ty"), MATH)
def test_arithmetic(name: str, ty: str) -> None:
    args, types = ("%v, %w", f"{ty}, {ty}") if name in BINARY else ("%v", ty)
    body = f"""
    %w = pto.load %in[%c1] : !pto.ptr<{ty}, gm> -> {ty}
    %r = pto.{name} {args} : {types} -> {ty}"""
    both(body + "\n" + store("%r", ty), ty, sizes=SIZES[1:2])


@pytest.mark.parametrize("ty", ["f16", "bf16", "f32", *PACKED])
def test_products_and_sums(ty: str) -> None:
    both(f"    %r = pto.fma %v, %v, %v : {ty}, {ty}, {ty} -> {ty}\n" + store("%r", ty), ty)


CONVERSIONS = [("f32", "i32"), ("i32", "f16"), ("f32", "bf16"), ("f16", "f32"), ("i64", "f32")]


@pytest.mark.parametrize(("src", "dst"), CONVERSIONS)
def test_conversions(src: str, dst: str) -> None:
    sign = " signed" if "i" in (src[0], dst[0]) else ""
    body = f"    %r = pto.convert %v round(r) sat{sign} : {src} -> {dst}\n"
    both(body + store("%r", dst), src, dst)


QUERIES = (
    "tid_x tid_y tid_z block_dim_x block_dim_y grid_dim_x block_idx_z veccoreid laneid clock32"
)
QUERIES += " lanemask_eq lanemask_lt lanemask_le lanemask_gt lanemask_ge"


@pytest.mark.parametrize("name", QUERIES.split())
def test_queries(name: str) -> None:
    both(f"    %r = pto.get_{name} : i32\n" + store("%r", "i32"))


def masked(inner: str, result: str, ty: str) -> str:
    """An instruction where all items are active, and where a third of them is."""
    return f"""
{inner}
{store(result, ty)}
    %m = arith.remui %n, %k3 : i32
    %some = arith.cmpi eq, %m, %k1 : i32
    scf.if %some {{
{inner.replace(result, result + "b")}
{store(result + "b", ty)}
    }}"""


@pytest.mark.parametrize("name", ["vote_all", "vote_any", "vote_uni"])
def test_votes(name: str) -> None:
    inner = f"    %p = pto.{name} %is_odd : i1 -> i1\n    %r = arith.extui %p : i1 to i32"
    both(masked(inner.replace("%p", "%r_"), "%r", "i32"))


def test_ballots() -> None:
    both(masked("    %r = pto.vote_ballot %is_odd : i1 -> i32", "%r", "i32"))


@pytest.mark.parametrize(
    ("name", "ty", "width"),
    [*product(("idx", "up", "down", "bfly"), ("i32", "f16", "vector<2xf16>"), (16, 32))],
)
def test_shuffles(name: str, ty: str, width: int) -> None:
    inner = f"    %r = pto.shuffle_{name} %v, %k7 {{width = {width} : i32}} : {ty}, i32 -> {ty}"
    both(masked(inner, "%r", ty), ty)


@pytest.mark.parametrize(
    ("name", "ty", "sign"),
    [
        *product(("add", "max", "min"), ("i32",), ("signed", "unsigned")),
        *product(("add", "max", "min"), ("f16", "f32"), ("",)),
    ],
)
def test_reductions(name: str, ty: str, sign: str) -> None:
    both(masked(f"    %r = pto.redux_{name} %v {sign} : {ty} -> {ty}", "%r", ty), ty)


@pytest.mark.parametrize("ty", [*KINDS, *PACKED])
def test_elements_of_all_widths(ty: str) -> None:
    body = f"""
    %from = arith.muli %n, %k7 : i32
    %at = arith.index_castui %from : i32 to index
    %w = pto.ldg %in[%at] : !pto.ptr<{ty}, gm> -> {ty}
    pto.stg %w, %out[%at] : !pto.ptr<{ty}, gm>, {ty}"""
    both(body if ty not in PACKED else body.replace("ldg", "load").replace("stg", "store"), ty)


ATOMIC = [*product(("add", "sub", "min", "max", "exch"), ("i32", "f32", "f16"))]
ATOMIC += [*product(("and", "or", "xor"), ("i32", "i64"))]


@pytest.mark.parametrize(("name", "ty"), ATOMIC)
def test_atomic_updates_in_the_order_of_items(name: str, ty: str) -> None:
    for sign in ("signed", "unsigned") if ty[0] == "i" else ("",):
        inner = f"""
    %r = pto.atomic_{name} %cell, %v {sign} : !pto.ptr<{ty}, gm>, {ty} -> {ty}"""
        body = f"""
    %few = arith.andi %n, %k3 : i32
    %j = arith.index_castui %few : i32 to index
    %cell = pto.addptr %in, %j : !pto.ptr<{ty}, gm> -> !pto.ptr<{ty}, gm>"""
        both(body + masked(inner, "%r", ty), ty)


def test_exchange_where_it_compares() -> None:
    both(
        """
    %few = arith.andi %n, %k3 : i32
    %j = arith.index_castui %few : i32 to index
    %cell = pto.addptr %in, %j : !pto.ptr<i32, gm> -> !pto.ptr<i32, gm>
    %r = pto.atomic_cas %cell, %v, %n : !pto.ptr<i32, gm>, i32 -> i32
"""
        + store("%r", "i32")
    )


# ---- ways that part

DIVERGENT = """
    %m = arith.remui %n, %k7 : i32
    %trips = arith.index_castui %m : i32 to index
    %sum = scf.for %j = %c0 to %trips step %c1 iter_args(%acc = %v) -> (i32) {
      %jj = arith.index_cast %j : index to i32
      %more = scf.if %is_odd -> (i32) {
        %a = arith.addi %acc, %jj : i32
        scf.yield %a : i32
      } else {
        %b = arith.muli %acc, %k3 : i32
        %c = pto.redux_add %b signed : i32 -> i32
        scf.yield %c : i32
      }
      scf.yield %more : i32
    }
"""
WHILE = """
    %r, %steps = scf.while (%a = %n, %s = %k1) : (i32, i32) -> (i32, i32) {
      %go = arith.cmpi ugt, %a, %k3 : i32
      scf.condition(%go) %a, %s : i32, i32
    } do {
    ^bb0(%a: i32, %s: i32):
      %half = arith.shrui %a, %k1 : i32
      %next = arith.addi %s, %half : i32
      scf.yield %half, %next : i32, i32
    }
    %sum = arith.addi %r, %steps : i32
"""
SWAP = """
    %k5 = arith.constant 5 : index
    %a, %b = scf.for %j = %c0 to %k5 step %c1 iter_args(%p = %v, %q = %n) -> (i32, i32) {
      scf.yield %q, %p : i32, i32
    }
    %sum = func.call @twice(%a) : (i32) -> i32
"""
TWICE = """
  func.func @twice(%a: i32) -> i32 {
    %b = arith.addi %a, %a : i32
    %t = pto.get_clock32 : i32
    %c = arith.xori %b, %t : i32
    return %c : i32
  }
"""
CHOICE = """
    %q = arith.select %is_odd, %in, %far : !pto.ptr<i32, gm>
    %p = scf.if %is_odd -> (!pto.ptr<i32, gm>) {
      scf.yield %in : !pto.ptr<i32, gm>
    } else {
      %far2 = pto.addptr %far, %i : !pto.ptr<i32, gm> -> !pto.ptr<i32, gm>
      scf.yield %far2 : !pto.ptr<i32, gm>
    }
    %a = pto.load %p[%c1] : !pto.ptr<i32, gm> -> i32
    %b = pto.load %q[%i] : !pto.ptr<i32, gm> -> i32
    %sum = arith.xori %a, %b : i32
"""
FAR = "    %far = pto.addptr %in, %c1 : !pto.ptr<i32, gm> -> !pto.ptr<i32, gm>\n"


@pytest.mark.parametrize("body", [DIVERGENT, WHILE, SWAP, FAR + CHOICE])
def test_ways_part_and_meet(body: str) -> None:
    both(body + store("%sum", "i32"), more=TWICE if body is SWAP else "")


def test_a_store_is_seen_by_every_later_load() -> None:
    """Of items of other warps too: all have stored before one loads."""
    both("""
    pto.store %n, %out[%i] : !pto.ptr<i32, gm>, i32
    pto.syncthreads
    %dy = pto.get_block_dim_y : i32
    %all = arith.muli %dx, %dy : i32
    %last = arith.subi %all, %n : i32
    %back = arith.subi %last, %k1 : i32
    %j = arith.index_castui %back : i32 to index
    %r = pto.load %out[%j] : !pto.ptr<i32, gm> -> i32
    %s = arith.addi %r, %r : i32
    pto.store %s, %out[%i] : !pto.ptr<i32, gm>, i32""")


# ---- mistakes

FAULTS = {
    "outside": "    %r = pto.load %in[%far] : !pto.ptr<i32, gm> -> i32\n" + store("%r", "i32"),
    "outside, of some": """
    scf.if %is_odd {
      pto.store %n, %out[%far] : !pto.ptr<i32, gm>, i32
    }""",
    "a barrier that some miss": "    scf.if %is_odd {\n      pto.syncthreads\n    }",
    "nothing was kept": "    %r = pto.resume {slot = 3 : i64} : i32\n" + store("%r", "i32"),
    "a division by zero": "    %r = arith.divsi %n, %odd : i32\n" + store("%r", "i32"),
    "a division by zero in the last iteration": """
    %zero = arith.constant 0 : index
    %one = arith.constant 1 : index
    %own = arith.index_castui %odd : i32 to index
    %end = arith.addi %own, %one : index
    scf.for %t = %zero to %end step %one {
      %r = arith.divsi %n, %odd : i32
      pto.store %r, %out[%i] : !pto.ptr<i32, gm>, i32
    }""",
}


@pytest.mark.parametrize("name", FAULTS)
def test_mistakes_are_told_by_the_same_words(name: str) -> None:
    far = f"    %big = arith.constant {MAX_ITEMS - 20} : index\n"
    far += "    %far = arith.addi %i, %big : index\n"
    for x, y in SIZES:
        args = [values("i32"), np.zeros(MAX_ITEMS, np.int32), x, y]
        assert fails_alike(program(far + FAULTS[name]), args)


def test_sizes_are_judged() -> None:
    args = [values("i32"), np.zeros(MAX_ITEMS, np.int32)]
    for x, y in ((0, 1), (MAX_ITEMS + 1, 1), (64, 64), (1 << 30, 1 << 30)):
        assert fails_alike(program(""), [*args, x, y]) == "PTO-S095"


ALONE = """
module attributes {pto.target_arch = "a5", pto.kernel_kind = #pto.kernel_kind<vector>} {
  func.func @kernel(%x: !pto.ptr<f32, gm>) attributes {pto.aicore} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c3 = arith.constant 3 : index
    %v = arith.constant 15.0 : f32
    %cell = pto.addptr %x, %c1 : !pto.ptr<f32, gm> -> !pto.ptr<f32, gm>
    %old = pto.atomic_max %cell, %v : !pto.ptr<f32, gm>, f32 -> f32
    %a = pto.load %x[%c0] : !pto.ptr<f32, gm> -> f32
    %s = arith.addf %a, %old : f32
    pto.store %s, %x[%c2] : !pto.ptr<f32, gm>, f32
    %tid = pto.get_tid_x : i32
    %t = arith.sitofp %tid : i32 to f32
    pto.store %t, %x[%c3] : !pto.ptr<f32, gm>, f32
    return
  }
}
"""


def test_the_scalar_unit_is_a_work_item_of_its_own() -> None:
    (x,) = agree(ALONE, [np.array([3, 10, 0, 7], np.float32)])
    assert x.tolist() == [3, 15, 13, 0]
