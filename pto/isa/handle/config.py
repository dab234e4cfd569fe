"""Tile instructions that move no data: waiting, binding tiles to storage, mode registers."""

from __future__ import annotations

from math import prod

from pto.core.tile import TileType
from pto.isa.meaning.handle import config
from pto.isa.meaning.order import flags as sync
from pto.isa.row import types as t
from pto.isa.row.instr import Attr, Result, read, write
from pto.isa.row.order import Barrier, CoreBarrier
from pto.isa.row.pipe_of import named_pipe
from pto.isa.row.traits import Traits
from pto.isa.rules.paths import same_role, same_type
from pto.isa.rules.rule import Case, dtype_in, in_role, rule
from pto.isa.rules.tile import NPU, tile_family
from pto.isa.rules.windows import window_inside

_CPP_ONLY = "PTOAS has no such operation: operands and attributes are those of C++"

# ---- waiting


@rule("PTO-T064", "expects either events to wait for or the op of the pipe to drain")
def _one_form(case: Case) -> str | None:
    events, op = bool(case.op.group("events")), "op" in case.op.attrs
    if events != op:
        return None
    return "both are given" if op else "neither is given"


@rule("PTO-X060", "expects the pipe of op to be one the profile drains by tsync")
def _tsync_pipe(case: Case) -> str | None:
    pipe = named_pipe(case, "op")
    if pipe is None or pipe in case.profile.sync.tsync_pipes:
        return None
    pipes = " ".join(sorted(case.profile.sync.tsync_pipes))
    return f"{case.word('op')} runs on {pipe}, {case.profile} takes {pipes}"


WAIT = tile_family("wait", "hold this core until others are done", pipe="none", cost="barrier")
WAIT.row(
    "tsync",
    "wait for every event; with op, until the pipe of that kind of operation is idle",
    body=sync.IN_ORDER,
    order=Barrier("op"),
    operands=read("events*", "tile or view"),
    attrs=Attr("op", "sync_op_type", meaning="TSYNC<Op>: the kind of operation to drain"),
    text="<? ins( $events* : types ) > {}",
    subject="events",
    rules=(_one_form, _tsync_pipe),
    notes=(
        "the machine-model page calls TSYNC a wait on a tile buffer; the code is a pipe barrier, or"
        " the wait for a flag",
        "no-op where a compiler inserts synchronisation",
    ),
    cxx="TSYNC",
)


@rule("PTO-T064", "expects a workspace for the counter of mode soft")
def _soft_counter(case: Case) -> str | None:
    soft, has_workspace = case.word("mode") == "soft", case.op.operand("workspace") is not None
    return "mode is soft without a workspace" if soft and not has_workspace else None


_COUNTERS = 16


@rule("PTO-T064", f"expects a workspace of {_COUNTERS} i32 or more, only with mode soft")
def _counter_fits(case: Case) -> str | None:
    if case.word("mode") == "hard":
        return None if case.type("workspace") is None else "mode is hard, which counts in flags"
    type = case.type("workspace")
    if isinstance(type, t.MemRef):
        return "it is a memref"
    shape = type.shape if isinstance(type, t.View) else ()
    count = prod(size or _COUNTERS for size in shape) if shape else _COUNTERS
    return None if count >= _COUNTERS else f"it has {count} elements"


@rule("PTO-T026", "expects mode and core_type together")
def _both_words(case: Case) -> str | None:
    words = [name for name in ("mode", "core_type") if name in case.op.attrs]
    return f"{words[0]} is given" if len(words) == 1 else None


WAIT.row(
    "syncall",
    "no core of core_type continues before all of them have arrived",
    body=config.SYNC_ALL,
    order=CoreBarrier(),
    operands=(read("workspace?", "gm place"), read("used_cores?", "i32")),
    attrs=(
        Attr("core_type", "sync_core_type", default="aiv_only"),
        Attr("mode", "sync_all_mode", default="hard"),
    ),
    text="<1 ( $workspace <? , $used_cores > : types ) | ( ) >"
    " <? mode = @mode > <? , core_type = @core_type > {}",
    subject="workspace",
    rules=(_soft_counter, _both_words.compiled, dtype_in("workspace", "i32"), _counter_fits),
    notes=(
        _CPP_ONLY,
        "does not order data: stores of other cores may not be visible yet",
        "hard uses cross-core flags 11 to 14",
    ),
)

# ---- storage

BIND = tile_family(
    "bind",
    "which bytes a tile stands for; no data moves",
    operands=(read("src"), write("dst")),
    pipe="none",
    cost="free",
)


@rule("PTO-T025", "expects tile to be a tile or a view")
def _a_tile(case: Case) -> str | None:
    return "it is a memref" if isinstance(case.type("tile"), t.MemRef) else None


TASSIGN = BIND.row(
    "tassign",
    "result = the tile at byte address addr of its buffer",
    body=config.ASSIGN,
    traits=Traits(allocates="addr"),
    operands=(read("tile", "tile or view"), read("addr", "i64")),
    results=Result("result", "tile or view"),
    text="$tile , $addr {} : types(tile) -> results",
    subject="tile",
    rules=(same_type("tile", "result"), _a_tile),
    cxx="TASSIGN",
)


@rule("PTO-L064", "expects src and dst to have one block layout")
def _one_block_order(src: TileType, dst: TileType) -> str | None:
    fits = src.layout.blayout == dst.layout.blayout
    return None if fits else f"src is {src.layout.name}, dst is {dst.layout.name}"


BIND.row(
    "tsubview",
    "dst = the storage of src from element (rowIdx, colIdx) on",
    body=config.SUBVIEW,
    operands=(read("src"), read("rowIdx", "int"), read("colIdx", "int"), write("dst")),
    rules=(
        same_role("src", "dst"),
        _one_block_order,
        window_inside("dst", "src", valid=True, at=("rowIdx", "colIdx")),
    ),
    notes=(
        _CPP_ONLY,
        "dst keeps its own row pitch; pto.subview keeps that of src",
        "the offset ignores boxes: right for plain tiles and whole boxes along the major axis",
    ),
    cxx="TSUBVIEW",
)
BIND.row(
    "talias",
    "dst = another name for the storage of src",
    body=config.ALIAS,
    profiles="",
    notes="an older page names it; no header implements it on any profile",
    cite="PTO-ISA pto-isa docs/isa/TALIAS.md",
    cxx="- no header implements it",
)
BIND.row(
    "tget_scale_addr",
    "address of dst = address of src >> 4, where the scales of a left or right tile lie",
    body=config.SCALE_ADDRESS,
    pipe="S",
    needs="mx",
    rules=(in_role("src", "left", "right"), in_role("dst", "scaling", "scale_left", "scale_right")),
    notes=(
        "PTOAS requires dst to have the shape of src; the scales of M x K are M x K/32",
        "PTOAS's text has one role, scaling; C++ has ScaleLeft and ScaleRight",
    ),
    cxx="TGET_SCALE_ADDR",
)

# ---- mode registers

MODE = tile_family("mode register", "set what later operations read", pipe="S", cost="register")
_ROUNDING = (
    Attr("enable", "bool", required=True),
    Attr("mode", "round_mode", default="ROUND", meaning="how f32 factors are rounded"),
)
_OLDER = "the older repository declares it, the newer headers do not; its values are the target's"
for _name, _kind, _body in (
    ("hf32", "HF32", config.HF32_MODE),
    ("tf32", "TF32", config.TF32_MODE),
):
    MODE.row(
        f"set{_name}mode",
        f"products of f32 tiles round their factors to {_kind} first",
        body=_body,
        attrs=_ROUNDING,
        cxx=f"SET{_kind}MODE enable",
        text="{}",
        aliases=f"tset{_name}mode",
        notes=(_CPP_ONLY, _OLDER, *("a no-op on a2a3",) * (_name == "tf32")),
        cite=f"PTO-ISA pto-isa docs/isa/TSET{_kind}MODE.md",
    )


@rule("PTO-T026", "expects id, or out_type of C++")
def _whose(case: Case) -> str | None:
    return None if {"id", "out_type"} & case.op.attrs.keys() else "neither is given"


SET_QUANT_SCALAR = MODE.row(
    "set_quant_scalar",
    "pushes of an accumulator to queue id scale by preQuantScalar; with out_type the next push",
    body=config.QUANT_SCALAR,
    operands=read("preQuantScalar", "float"),
    attrs=(
        Attr("id", "i32", default=0, meaning="the queue; its acc_push_epilogue scales by it"),
        Attr("out_type", "str", values=("i8", "u8", "i16", "f16", "bf16"), meaning="C++ only"),
    ),
    text="<1 ( $preQuantScalar : types ) <? { id = @id } > | ins( $preQuantScalar : types ) > {}",
    subject="preQuantScalar",
    rules=_whose.compiled,
    types="f32",
    notes=(_CPP_ONLY, "i8 sets the sign bit, 46, of the scale word"),
    cxx="SET_QUANT_SCALAR preQuantScalar out_type",
)
SET_QUANT_VECTOR = MODE.row(
    "set_quant_vector",
    "pushes of an accumulator to queue id scale column j by fp[0,j]; without id the next push",
    body=config.QUANT_VECTOR,
    operands=read("fp"),
    attrs=Attr("id", "i32", meaning="the queue; its acc_push_epilogue scales by it"),
    text="<1 ( $fp : types ) <? { id = @id } > | ins( $fp : types ) > {}",
    subject="fp",
    rules=(
        in_role("fp", "scaling").on(NPU),
        dtype_in("fp", "i64 u64").on("a2a3"),
        dtype_in("fp", "f16 bf16 f32").on("a5"),
    ),
    notes=_CPP_ONLY,
)
