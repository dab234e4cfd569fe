"""Tile instructions that read and write tables in global memory by index."""

from __future__ import annotations

from pto.isa.meaning.handle.memref import is_global
from pto.isa.meaning.tile import gather_memory as meaning
from pto.isa.row.instr import Attr, index, read, scratch, write
from pto.isa.row.traits import RegionRule, Traits
from pto.isa.rules.global_memory import part_of_view
from pto.isa.rules.rule import (
    Case,
    agree,
    all_in,
    attr_in,
    dims,
    dtype_in,
    in_role,
    rule,
    rule_of,
    same_dtype,
)
from pto.isa.rules.tile import NPU, not_empty, tile_family

_PLAIN = "i8 u8 i16 u16 i32 u32 f16 bf16 f32"
_INDEX = "i32 u32"
_COALESCE = Attr(
    "coalesce",
    "coalesce",
    meaning="row: idx names rows of mem, elem: elements; unwritten, the shape of idx decides",
)


_WORDS = ("scatterAtomicOp", "scatterOob", "scatterConflict")


@rule_of("PTO-T026", "expects coalesce{when}")
def _mode_said(case: Case, when: str, *others: str) -> str | None:
    is_needed = not others or any(name in case.op.attrs for name in others)
    if not is_needed or "coalesce" in case.op.attrs:
        return None
    return 'it is not there; coalesce="row" takes an index for each row, "elem" for each element'


@rule_of("PTO-S058", "expects an idx for each row of {data} ([1,R] or [R,1]) or for each element")
def _index_shape(case: Case, data: str) -> str | None:
    """[1,R] or [R,1] picks rows, [R,C] elements."""
    tile, idx = case.tile(data), case.tile("idx")
    if tile is None or idx is None:
        return None
    rows, cols = tile.valid
    shapes = {"row": ((1, rows), (rows, 1)), "elem": ((rows, cols),)}
    mode = case.word("coalesce")
    for shape in shapes[mode] if mode else (*shapes["elem"], *shapes["row"]):
        if agree(idx.valid, shape):
            return None
    return f"idx is {dims(*idx.valid)}, {data} is {dims(rows, cols)}"


_MODE_NOTE = (
    "C++ names the mode (row by default on NPUs; the CPU simulator always takes elements); the IR "
    "has no attribute for it, so the shape of idx decides, elements first; coalesce sets it "
    "explicitly"
)
_FLAT_NOTE = (
    "flat(mem) counts the elements of the view row by row; C++ adds the index to the pointer, which"
    " is the same where rows follow each other without gaps"
)
_WILD_NOTE = "an index beyond mem that no policy covers is an error here, undefined in the ISA"
_A5_NOTE = "PTOAS has it on a5 only; the headers on all targets"
_LAYOUT_NOTE = "a2a3 also takes NZ tables with NZ tiles, a5 tiles of either major order (C++)"


@rule("PTO-S058", "expects idx in global memory for mat")
def _list_in_memory(case: Case) -> str | None:
    """Indices must be in UB: the vector unit cannot read them from L1."""
    dst, listed = case.role("dst"), is_global(case.type("idx"))
    if dst not in ("vec", "mat") or listed is (dst == "mat"):
        return None
    return f"dst is in {dst}, idx {'in global memory' if listed else 'a tile'}"


@rule("PTO-S058", "expects scratch for elements into mat")
def _spare_room(case: Case, coalesce: str) -> str | None:
    """Elements that go to L1 are collected in global memory first; rows go at once."""
    scratch = case.op.operand("scratch")
    fits = case.role("dst") != "mat" or (coalesce == "elem") is (scratch is not None)
    return (
        None if fits else f"coalesce is {coalesce}, and {'no ' * (scratch is None)}scratch is given"
    )


# pto-isa MGather.hpp. The way of rows into UB waits for V and MTE3 and not for MTE2, which may
# still load the indices (docs/isa/MGATHER.md relies on a flag from MTE2 to V).
_INTO_L1 = """
    dst@mat coalesce=elem: S(idx,mem->scratch) S>MTE2 MTE2(scratch->dst)
    dst@mat: S(idx) MTE2(mem->dst) S>MTE2
"""
_ROWS_IN = "MTE2(mem->dst) S>MTE2 MTE2>V MTE2>MTE3 S>V S>MTE3"
_GATHER_A2A3 = f"""
    coalesce=row gatherOob=zero: V>S MTE3>S S(idx->dst) {_ROWS_IN}
    coalesce=row: V>S MTE3>S S(idx) {_ROWS_IN}
    V>S MTE3>S MTE2>S S(idx,mem->dst) S>V S>MTE2 S>MTE3
"""
# pto-isa MScatter.hpp. With the atomic the scalar unit waits before it resets the mode.
_ELEMENTS_OUT = "V>S MTE2>S MTE3>S S(src,idx->mem) S>V S>MTE2 S>MTE3"
_SCATTER_A2A3 = f"""
    coalesce=elem: {_ELEMENTS_OUT}
    -coalesce idx~src: {_ELEMENTS_OUT}
    V>S MTE2>S S>MTE3 S(idx) MTE3(src->mem) MTE3>S S>V S>MTE2 MTE3>V MTE3>MTE2
"""

tile_family(
    "memory gather",
    "rows or elements of global memory by index",
    operands=(
        read("mem", "view"),
        index("idx", "tile or view"),
        scratch("scratch?", "view"),
        write("dst"),
    ),
    text="ins( $mem , $idx <? , $scratch > : types ) outs( $outs ) {}",
    pipe="MTE2",
    rules=(
        in_role("idx", "vec").on(NPU),
        in_role("dst", "vec", "mat").on(NPU),
        dtype_in("idx", _INDEX),
        _list_in_memory,
        _spare_room,
    ),
    cost="move",
    traits=Traits(region=RegionRule.INDEXED, partial="*"),
).row(
    "mgather",
    "row: dst[r,:] = mem[idx[r],:]; elem: dst[r,c] = flat(mem)[idx[r,c]]",
    body=meaning.MEMORY_GATHER,
    generic="mem idx dst scratch?",
    phases={"a2a3": f"{_INTO_L1}{_GATHER_A2A3}", "a5": f"{_INTO_L1}V(mem,idx->dst)"},
    attrs=(
        _COALESCE,
        Attr(
            "gatherOob",
            "gather_oob",
            default="undefined",
            meaning="an index beyond mem: clamp to the last, wrap, or give zero",
        ),
    ),
    a2a3=_PLAIN,
    a5=f"{_PLAIN} hifloat8 f8e4m3 f8e5m2",
    rules=(
        _mode_said(": row or elem").on(NPU),
        same_dtype("mem", "dst"),
        part_of_view("mem"),
        not_empty("dst").on(NPU),
        _index_shape("dst"),
    ),
    example="pto.mgather ins(%mem, %idx : !pto.partition_tensor_view<1024x64xf32>,"
    " !pto.tile_buf<vec, 1x16xi32>) outs(%dst : !pto.tile_buf<vec, 16x64xf32>)",
    cite=("pto-isa docs/isa/MGATHER.md", "pto-isa include/pto/npu/a2a3/MGather.hpp"),
    notes=(
        _MODE_NOTE,
        _A5_NOTE,
        _LAYOUT_NOTE,
        _FLAT_NOTE,
        _WILD_NOTE,
        "PTOAS gives it MTE2, event.hpp the vector pipe for vec tiles; phases are the headers'",
        "scratch, in global memory, is working space of the way into L1; nothing is put there here",
    ),
)

_ATOMIC_TYPES = {
    ("add", "a2a3"): "i8 i16 i32 f16 bf16 f32",
    ("add", "a5"): "i32 u32 f16 bf16 f32",
    ("max", "a5"): "i32 u32 f32",
    ("min", "a5"): "i32 u32 f32",
}


@rule("PTO-T052", "expects an element type that the atomic supports")
def _atomic_type(case: Case) -> str | None:
    elem, op = case.elem("src"), case.word("scatterAtomicOp") or "none"
    words = _ATOMIC_TYPES.get((op, case.profile.name))
    if elem is None or words is None or set(elem.names) & set(words.split()):
        return None
    return f"src is {elem.name}, {op} takes {words}"


@rule("PTO-X003", "expects atomic stores")
def _atomic_feature(case: Case) -> str | None:
    if case.word("scatterAtomicOp") == "none" or case.profile.supports("atomic_store"):
        return None
    return f"{case.profile} has none"


tile_family(
    "memory scatter",
    "rows or elements of global memory by index",
    operands=(read("src"), index("idx"), write("mem", "view")),
    pipe="MTE3",
    subject="src",
    rules=(all_in("vec").on(NPU), dtype_in("idx", _INDEX)),
    cost="move",
).row(
    "mscatter",
    "row: mem[idx[r],:] op= src[r,:]; elem: flat(mem)[idx[r,c]] op= src[r,c]; the last writer wins",
    body=meaning.MEMORY_SCATTER,
    phases={"a2a3": _SCATTER_A2A3, "a5": "V(src,idx->mem)"},
    attrs=(
        _COALESCE,
        Attr("scatterAtomicOp", "scatter_atomic_op", default="none", meaning="none replaces"),
        Attr(
            "scatterOob",
            "scatter_oob",
            default="undefined",
            meaning="an index beyond mem: skip it, clamp to the last, or wrap",
        ),
        Attr("scatterConflict", "any", meaning="who wins of two indices alike: here the last"),
    ),
    a2a3=_PLAIN,
    a5=f"{_PLAIN} hifloat8 f8e4m3 f8e5m2",
    rules=(
        _mode_said(" with another of its words", *_WORDS).on(NPU),
        same_dtype("src", "mem"),
        part_of_view("mem"),
        attr_in("scatterAtomicOp", "none", "add").on("a2a3"),
        _atomic_type,
        _atomic_feature,
        _index_shape("src"),
    ),
    example="pto.mscatter ins(%src, %idx : !pto.tile_buf<vec, 16x64xf32>,"
    " !pto.tile_buf<vec, 1x16xi32>) outs(%mem : !pto.partition_tensor_view<1024x64xf32>)",
    cite=("pto-isa docs/isa/MSCATTER.md", "pto-isa include/pto/npu/a2a3/MScatter.hpp"),
    notes=(
        _MODE_NOTE,
        _A5_NOTE,
        _LAYOUT_NOTE,
        _FLAT_NOTE,
        _WILD_NOTE,
        "PTOAS gives it MTE3 on a2a3 and V on a5, event.hpp V; phases are the headers'",
        "PTOAS takes atomics and scatterOob on a5 only; the a2a3 header has add",
        "the CPU simulator ignores the atomic and replaces",
    ),
)
