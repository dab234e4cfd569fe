"""Pointers, views of global memory, and the bridges a compiler builds between tiles and memrefs.

None of these moves data. Tile handles and windows on tiles are in `tile.py`.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from pto.core.memory import Space
from pto.isa.meaning.handle import memref
from pto.isa.meaning.handle import view as meaning
from pto.isa.row import types as t
from pto.isa.row.instr import Attr, Family, Result, read
from pto.isa.row.traits import Traits
from pto.isa.rules.rule import (
    Case,
    odd_one,
    rule,
    rule_of,
    same_dtype,
)

_TD = "PTOAS include/PTO/IR/PTOOps.td"
_MANUAL = "PTOAS docs/PTO_IR_manual.md"
_VIEWS = "pto-isa docs/isa/tile/ops/view-and-tile-buf"

# ---- rules


def space_of(type: t.Type | None) -> Space | None:
    """The memory space a value points into; None for what points nowhere."""
    if isinstance(type, t.Ptr | t.MemRef):
        return type.space
    if isinstance(type, t.TileBuf):
        return type.tile.space
    return Space.GM if isinstance(type, t.View) else None


def counts_dimensions(type: t.Type | None, dimensions: int) -> bool:
    """True for the older form with a rank in place of the shape: `!pto.tensor_view<2xf32>`."""
    return isinstance(type, t.View) and type.shape == (dimensions,) and dimensions > 1


@rule_of("PTO-S070", "expects {groups} to have one value for each dimension of {of}")
def one_per_dimension(case: Case, of: str, *groups: str) -> str | None:
    """The lists must have one number for each dimension of a view, memref or local array."""
    shape = getattr(case.type(of), "shape", None)
    if shape is None:
        return None
    for name in groups:
        count = len(case.op.group(name))
        if count != len(shape) and not counts_dimensions(case.type(of), count):
            return f"{of} has {len(shape)} dimensions, {name} has {count} values"
    return None


@rule_of("PTO-M070", "expects {b} to stay in the memory space of {a}")
def same_space(case: Case, a: str, b: str) -> str | None:
    spaces = [(n, s) for n in (a, b) if (s := space_of(case.type(n))) is not None]
    return odd_one(spaces, lambda space: f"in {space.value}")


@rule_of("PTO-M071", "expects {name} to point into global memory")
def _in_gm(case: Case, name: str) -> str | None:
    space = space_of(case.type(name))
    return None if space in (None, Space.GM) else f"it is in {space.value}"


@rule("PTO-S070", "expects a memref as dst to have the dimensions of src")
def memref_of_rank(case: Case, dst: t.MemRef) -> str | None:
    src, count = case.type("src"), len(dst.shape)
    rank = 2 if isinstance(src, t.TileBuf) else len(getattr(src, "shape", ()))
    return None if count == rank else f"src has {rank} dimensions, dst has {count}"


@rule("PTO-T071", "expects result to have the type of ptr")
def _same_type(case: Case) -> str | None:
    first, second = case.type("ptr"), case.type("result")
    return None if first == second else "they differ"


@rule("PTO-T072", "expects a pointer on one side of the cast")
def _has_pointer(case: Case) -> str | None:
    source, result = case.type("input"), case.type("result")
    if isinstance(result, t.Ptr) or isinstance(source, t.Ptr):
        return None
    return f"it casts {'a memref' if isinstance(source, t.MemRef) else 'an integer'} to an integer"


def _shape(type: t.Type | None, dimensions: int) -> tuple[t.Dim, ...]:
    """The shape a view type states; nothing where it states a rank only."""
    if not isinstance(type, t.View) or counts_dimensions(type, dimensions):
        return ()
    return type.shape


@rule("PTO-S072", "expects constant sizes to be those of the type")
def _static_sizes(case: Case) -> str | None:
    """Constant sizes contradict the type; a dynamic size never does."""
    return _unlike_type(case, "shape", _shape(case.type("result"), len(case.op.group("shape"))))


def _unlike_type(case: Case, group: str, shape: tuple[t.Dim, ...]) -> str | None:
    for dim, (value, size) in enumerate(zip(case.op.group(group), shape, strict=False)):
        actual = case.constant(value)
        if actual is not None and size is not None and actual != size:
            return f"dimension {dim} is {actual} in {group}, {size} in the type"
    return None


@rule("PTO-S073", "expects a window inside source")
def _window_inside(case: Case) -> str | None:
    shape = _shape(case.type("source"), len(case.op.group("sizes")))
    groups = (case.op.group("offsets"), case.op.group("sizes"), shape)
    for dim, (low, count, size) in enumerate(zip(*groups, strict=False)):
        offset, length = case.constant(low), case.constant(count)
        if offset is not None and offset < 0:
            return f"offset {offset} of dimension {dim} is negative"
        if length is not None and length <= 0:
            return f"size {length} of dimension {dim} is not positive"
        end = (offset or 0) + (length or 0)
        if size is not None and length is not None and end > size:
            return f"dimension {dim} ends at {end}, the source at {size}"
    return None


@rule("PTO-S072", "expects constant sizes to be those of the type")
def _window_typed(case: Case, source: t.View, result: t.View) -> str | None:
    if len(source.shape) != len(result.shape):
        return None  # the type may drop dimensions
    return _unlike_type(case, "sizes", result.shape)


@rule("PTO-S074", "expects dim_index to be a dimension of tensor_view")
def _dimension_exists(case: Case, dim_index: int) -> str | None:
    rank = len(getattr(case.type("tensor_view"), "shape", ()))
    return None if 0 <= dim_index < rank else f"dimension {dim_index} of {rank}"


# ---- pointers

handle_family = partial(  # of values that name storage
    Family, section="support", cost="free", traits=Traits(names_only=True)
)
POINTER = handle_family(
    "pointers",
    "addresses of elements in one memory space",
    text="$operands {} : types -> results",
    subject="ptr",
)

ADDPTR = POINTER.row(
    "addptr",
    "result = ptr + offset, counted in elements",
    body=meaning.ADD_POINTER,
    traits=Traits(pure=True, operator="+"),
    operands=(read("ptr", "pointer"), read("offset", "index")),
    results=Result("result", "pointer"),
    text="$ptr , $offset {} : types(ptr) -> results",
    rules=_same_type,
    cite=(_TD, "PTO-Gym docs/PTO-micro-Instruction-SPEC.md:771"),
    cxx="= {ptr} + {offset}",
)
CASTPTR = POINTER.row(
    "castptr",
    "the same byte address as an integer, or as a pointer to other elements of the same space",
    body=meaning.CAST_POINTER,
    operands=read("input", "pointer, memref or integer"),
    results=Result("result", "pointer or integer"),
    rules=(_has_pointer, same_space("input", "result")),
    example="%p = pto.castptr %addr : i64 -> !pto.ptr<f32, ub>",
    notes="A memref gives its base address; the older td takes integers and pointers only.",
    cite=(_TD, "PTO-Gym docs/PTO-micro-Instruction-SPEC.md:760"),
    cxx="= ({T}){input}",
)


@rule("PTO-T072", "expects a pointer that single elements are loaded and stored by")
def _scalar_only(case: Case) -> str | None:
    here: Any = case.op
    case.asked_makers = True  # it is not its types alone that count
    for op in here.parent_op.walk() if here.parent else ():
        single = op.row.family.name == "scalar memory"
        if any(v is here.results[0] for v in op.operands) and not single:
            return f"'{op.name}' op takes it"
    return None


for _name, _from, _to in (
    ("ptrtoint", "gm pointer", "i64"),
    ("inttoptr", "i64", "gm pointer"),
):
    POINTER.row(
        _name,
        "the byte address of a global pointer as a number, or the pointer to one",
        body=meaning.CAST_POINTER,
        operands=read("input", _from),
        results=Result("result", _to),
        rules=(_scalar_only,) if _name == "inttoptr" else (),
        notes="castptr is the same on any space",
        cxx="= ({T}){input}",
        cite="PTOAS include/PTO/IR/PTOOps.td (2026-08)",
    )

# ---- views of global memory

VIEW = handle_family(
    "views",
    "where a tensor lies in global memory",
    text="$operands {} : types(tensor_view) -> results",
    subject="result",
)
_DIM = (read("tensor_view", "view"), read("dim_index", "index"))

MAKE_TENSOR_VIEW = VIEW.row(
    "make_tensor_view",
    "element (i, j, ..) of result is ptr[i * strides[0] + j * strides[1] + ..]",
    body=meaning.TENSOR_VIEW,
    traits=Traits(pure=True, by_hand=True),
    operands=(read("ptr", "pointer"), read("shape*", "index"), read("strides*", "index")),
    results=Result("result", "tensor view"),
    attrs=Attr("layout", "layout", meaning="how tiles of this tensor lie: nd, dn or nz"),
    # March 2026 wrote no comma before the strides.
    text="$ptr , shape = [ $shape* ] <1 , strides = [ $strides* ] | strides = [ $strides* ] > {}"
    " : results",
    rules=(
        _in_gm("ptr"),
        same_dtype("ptr", "result"),
        one_per_dimension("result", "shape", "strides"),
        _static_sizes,
    ),
    notes=(
        "The manual wants a given layout to agree with the one that static sizes and strides imply;"
        " PTOAS computes that layout and does not compare. Neither do we."
    ),
    example="%v = pto.make_tensor_view %p, shape = [%m, %n], strides = [%n, %c1]"
    " : !pto.tensor_view<?x?xf32>",
    cite=(_MANUAL, f"{_VIEWS}/make-tensor-view.md"),
)
PARTITION_VIEW = VIEW.row(
    "partition_view",
    "element (i, j, ..) of result is source(offsets[0] + i, offsets[1] + j, ..)",
    body=meaning.PARTITION,
    traits=Traits(pure=True, by_hand=True),
    operands=(read("source", "tensor view"), read("offsets*", "index"), read("sizes*", "index")),
    results=Result("result", "partition view", "partition"),
    text="$source , offsets = [ $offsets* ] , sizes = [ $sizes* ] {}"
    " : types(source) <? -> results >",
    rules=(
        same_dtype("source", "result"),
        one_per_dimension("source", "offsets", "sizes"),
        _window_inside,
        _window_typed,
    ),
    notes="Without a result type, constant sizes are static in it and the others are `?`.",
    example="%w = pto.partition_view %v, offsets = [%i, %j], sizes = [%c16, %c64]"
    " : !pto.tensor_view<?x?xf32> -> !pto.partition_tensor_view<16x64xf32>",
    cite=(_MANUAL, f"{_VIEWS}/partition-view.md"),
)
for _name, _what, _body in (
    ("get_tensor_view_dim", "size of dimension dim_index", meaning.DIMENSION),
    ("get_tensor_view_stride", "stride of dimension dim_index, in elements", meaning.STRIDE),
):
    VIEW.row(
        _name,
        f"result = the {_what}",
        body=_body,
        operands=_DIM,
        results=Result("result", "index"),
        rules=_dimension_exists,
        cite=(_MANUAL, f"{_VIEWS}/{_name.replace('_', '-')}.md"),
    )
VIEW.row(
    "tensor_view_addr",
    "dst = the address of element (0, 0, ..) of src",
    body=meaning.VIEW_ADDRESS,
    operands=read("src", "view"),
    results=Result("dst", "pointer or memref"),
    text="$src {} : types -> results",
    rules=(same_dtype("src", "dst"), _in_gm("dst"), memref_of_rank),
    example="%p = pto.tensor_view_addr %v : !pto.tensor_view<?x?xf32> -> !pto.ptr<f32, gm>",
    cite=("PTOAS include/PTO/IR/VPTOOps.td", f"{_VIEWS}/tensor-view-addr.md"),
)
VIEW.row(
    "declare_global",
    "entry = a view; a queue sets its address later",
    body=memref.DECLARE,
    results=Result("entry", "tensor view"),
    text="{} -> results",
    cite=_TD,
)
