"""Rules about operands in global memory: their layouts, sizes and shapes against tiles."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from operator import eq, le

from pto.core.layout import FRACTAL_MX, Layout
from pto.isa.row import types as t
from pto.isa.row.attributes import Enum
from pto.isa.rules.rule import LIBRARY, Case, Rule, dims, odd_one, rule, rule_of

# PTO manual, TLOAD; pto-isa pto_tile.hpp. A tile of one row or column is ND and DN at once.
_GM_LAYOUTS = {
    "vec": {"nd": ("ND",), "dn": ("DN",), "nz": ("NZ",)},
    "mat": {"nd": ("ND", "NZ"), "dn": ("DN", "ZN"), "nz": ("NZ",)},
}
_ACC_GM_LAYOUTS = ("nd", "nz")  # pto-isa TStore.hpp: acc -> DN is not supported


def shape_text(sizes: Sequence[int | None]) -> str:
    return "x".join("?" if size is None else str(size) for size in sizes)


def layout_of(case: Case, view: str) -> str | None:
    """The layout of a global operand, if the program states it, else None."""
    written = case.word("layout")
    maker = case.maker(view, "pto.partition_view")
    if written or maker is None or maker.name != "pto.make_tensor_view":
        return written
    layout = maker.attrs.get("layout")
    return layout.value if isinstance(layout, Enum) else None


@rule_of("PTO-L061", "expects {view} and {tile} to have layouts that a transfer joins")
def gm_layout(case: Case, tile: str, view: str) -> str | None:
    local, layout = case.tile(tile), layout_of(case, view)
    if local is None or layout is None:
        return None
    role, name = local.role.value, local.layout.name
    if role == "acc":
        fits = layout in _ACC_GM_LAYOUTS
    else:
        line = 1 in local.shape or 1 in local.valid
        scales = local.layout.is_boxed and local.layout.fractal == FRACTAL_MX
        turned = case.profile.name == "a5" and (role, layout, name) == ("mat", "dn", "NZ")
        joined = name in _GM_LAYOUTS.get(role, {}).get(layout, (name,))
        fits = line or scales or joined or (turned and not local.dtype.is_packed)
    return None if fits else f"{view} is {layout.upper()}, {tile} is {role} {name}"


def line_axis(layout: Layout) -> int:
    """The axis of a view that a transfer to this tile copies in runs: -1 columns, -2 rows."""
    return -2 if layout.name in ("DN", "ZN", "NN") else -1


@rule_of(
    LIBRARY,
    "expects the elements of a line of {tile} to follow each other in {view}",
    severity="warning",
)
def runs_follow(case: Case, tile: str, view: str) -> str | None:
    """TLOAD and TSTORE copy a line of the tile as one burst and read no stride along it."""
    local, view_type = case.tile(tile), case.type(view)
    maker = case.maker(view, "pto.partition_view")
    if local is None or not isinstance(view_type, t.View) or len(view_type.shape) < 2:
        return None
    if maker is None or maker.name != "pto.make_tensor_view" or layout_of(case, view):
        return None
    axis = line_axis(local.layout)
    stride = case.constant(maker.group("strides")[axis])
    if view_type.shape[axis] == 1 or local.valid[axis] == 1 or stride in (None, 1):
        return None
    unit = "rows" if axis == -2 else "columns"
    return f"{view} has a stride of {stride} along its {unit}, {tile} is {local.layout.name}"


@rule_of(
    LIBRARY,
    "expects {view} to have two axes longer than 1 where {tile} has boxes",
    severity="warning",
)
def boxes_of_two_axes(case: Case, tile: str, view: str) -> str | None:
    """pto-isa tload_common.hpp: "GlobalTensor only support 2 dim when ND2NZ", the same of DN2ZN."""
    local, view_type = case.tile(tile), case.type(view)
    if local is None or not isinstance(view_type, t.View) or local.role.value != "mat":
        return None
    outer = view_type.shape[:-2]
    if not local.layout.is_boxed or layout_of(case, view) == "nz":
        return None
    return None if all(n == 1 for n in outer) else f"{view} is {shape_text(view_type.shape)}"


def same_count(tile: str, view: str) -> Rule:
    """The valid region stored must have exactly as many elements as the view: PTOAS's verifier."""
    return _counted(tile, view, eq, "to have as many elements as")


def same_count_scaled(tile: str, view: str) -> Rule:
    """PTOAS's tests store other counts with a table of scales; a run checks the bounds."""
    return _counted(tile, view, eq, "to have as many elements as", scaled=True)


def enough(tile: str, view: str) -> Rule:
    """A load reads the valid region from a view, which may be larger (manual, Movement)."""
    return _counted(tile, view, le, "to have the elements of")


def _counted(
    tile: str, view: str, holds: Callable[[int, int], bool], words: str, *, scaled: bool = False
) -> Rule:
    """A rule on element counts. `scaled`: for transfers with a table of scales, not counted by
    PTOAS."""

    def test(case: Case) -> str | None:
        local, view_type = case.tile(tile), case.type(view)
        if local is None or not isinstance(view_type, t.View):
            return None
        inside, outside = element_count(local.valid), element_count(view_type.shape)
        if not inside or outside is None or holds(inside, outside):  # nothing is moved
            return None
        if bool(case.op.group("fp")) is not scaled:
            return None
        return f"{view} has {outside}, the valid region of {tile} {inside} ({dims(*local.valid)})"

    sentence = f"expects {view} {words} the valid region of {tile}"
    name = f"counted-{holds.__name__}{'-scaled' * scaled}"
    return Rule(name, "PTO-S062", sentence, test, severity="warning" if scaled else "error")


def element_count(shape: Sequence[int | None]) -> int | None:
    """None if an extent is known only when it runs."""
    static = [size for size in shape if size is not None]
    return prod(static) if len(static) == len(shape) else None


@rule_of("PTO-S068", "expects every global operand to be a static flat contiguous logical 1D view")
def flat(case: Case, *names: str) -> str | None:
    """A transfer engine without strides needs one contiguous run of known length."""
    for name in names:
        type = case.type(name)
        if isinstance(type, t.View | t.MemRef) and not _is_flat(type):
            return f"{name} is {shape_text(type.shape)}"
    return None


def _is_flat(type: t.View | t.MemRef) -> bool:
    *outer, inner = type.shape or (None,)
    return inner is not None and all(size == 1 for size in outer)


def static_shape(*names: str, open: bool = False) -> Rule:
    """Extents must be static; `open` also accepts dynamic ones. In C++ an extent may be 0."""

    def test(case: Case) -> str | None:
        least = 0 if case.profile.headers else 1
        for name in names:
            for value in case.op.group(name):
                shape = value.type.shape if isinstance(value.type, t.View | t.MemRef) else ()
                if any(not open if size is None else size < least for size in shape):
                    return f"{name} is {shape_text(shape)}"
        return None

    sentence = f"expects every global operand to have a positive {'' if open else 'static '}shape"
    return Rule("static-shape", "PTO-S069", sentence, test)


@rule_of("PTO-S069", "expects {a} and {b} to have one shape")
def same_view_shape(case: Case, a: str, b: str) -> str | None:
    types = [(n, case.type(n)) for n in (a, b)]
    shapes = [(n, x.shape) for n, x in types if isinstance(x, t.View | t.MemRef)]
    return odd_one(shapes, shape_text)


@rule("PTO-X003", "expects a profile with atomic stores")
def atomic_store(case: Case) -> str | None:
    word = case.word("atomicType")
    if word in (None, "atomic_none") or case.profile.supports("atomic_store"):
        return None
    return f"atomicType is {word} on {case.profile}"


_ADDED = "f16 f32 bf16 i8 i16 i32"


@rule(LIBRARY, f"expects atomicType to be atomic_add, of {_ADDED}", severity="warning")
def added_types(case: Case) -> str | None:
    """SetAtomicAdd of both headers asserts the types; their other kinds of stores do not exist."""
    word, elem = case.word("atomicType"), case.elem("dst")
    if word in (None, "atomic_none") or elem is None or elem.dtype is None:
        return None
    fits = word == "atomic_add" and elem.dtype.name in _ADDED.split()
    return None if fits else f"atomicType is {word}, dst is {elem.name}"


@rule_of(
    "PTO-T025", "expects {name} to be a partition view or a memref", id="part", severity="warning"
)
def part_of_view(case: Case, name: str) -> str | None:
    """PTOAS moves only partitions of views. Here a whole view is accepted with a warning."""
    type = case.type(name)
    return "it is a tensor view" if isinstance(type, t.View) and not type.partition else None
