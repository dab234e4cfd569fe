"""Order between cores: semaphores between the cube and its vector sub-blocks, and across blocks."""

from __future__ import annotations

from dataclasses import replace

from pto.isa.meaning.order import flags as meaning
from pto.isa.order.flags import id_below, one_id, order_family, pipe_exists
from pto.isa.row.instr import Attr, Family, read
from pto.isa.row.order import SendSignal, WaitSignal
from pto.isa.rules.rule import Case, attr_in, dtype_in

_TD = "PTOAS include/PTO/IR/PTOOps.td"
_AUGUST = "PTOAS include/PTO/IR/PTOOps.td (2026-08)"
_MANUAL = "PTOAS docs/PTO_IR_manual.md"
_PAGES = "pto-isa docs/isa/scalar/ops/pipeline-sync"
_GYM = "PTO-Gym docs/PTO-micro-Instruction-SPEC.md"


def _cross_core_ids(case: Case) -> int:
    """The second vector sub-block has ids of its own where it is addressed by them."""
    sync = case.profile.sync
    return sync.cross_core_ids + sync.second_vector_id_offset


# PTOAS: the other pipes have no such instruction on a5.
_A5_PIPES = replace(
    attr_in("pipe", "PIPE_FIX", "PIPE_MTE1", "PIPE_MTE2", "PIPE_MTE3", "PIPE_V"),
    id="cross-core-pipe",
    code="PTO-X071",
)
_LOCAL_PIPE = Attr("pipe", "pipe", required=True, meaning="the pipe of this core")
_EVENT_ID = Attr("event_id", "i32", meaning="on a5 the cube reaches sub-block 1 with id + 16")
_FFTS_MODE = Attr("ffts_mode", "i32", meaning="a2a3: 0 all cores, 1 the vector pair, 2 the core")
SEMAPHORE = order_family(
    "semaphores",
    "counters that the cube and the vector sub-blocks of a core share",
    cite=(_MANUAL, _TD),
    operands=(read("event_id_dyn?", "index"),),
    attrs=(_LOCAL_PIPE, _EVENT_ID),
    text="@pipe , <1 @event_id | $event_id_dyn > {}",
    pipe="@pipe",
    rules=(
        one_id("event_id", "event_id_dyn"),
        id_below("event_id", "event_id_dyn", _cross_core_ids, "a cross-core id"),
        pipe_exists("pipe"),
    ),
    cost="semaphore",
)

SEMAPHORE.row(
    "sync.set",
    "count up on the other side once pipe has done all earlier work",
    body=meaning.SEND,
    order=SendSignal(),
    attrs=(_LOCAL_PIPE, _EVENT_ID, _FFTS_MODE),
    rules=(attr_in("ffts_mode", "0", "1", "2"), _A5_PIPES.on("a5")),
    notes=(
        "a5 signals one sub-block: id for the first, id + 16 for the second. Programs and the"
        " headers add 16; the prose of the Gym manual has 15."
    ),
    example="pto.sync.set #pto.pipe<PIPE_FIX>, 1",
    cxx="ffts_cross_core_sync pipe event_id ffts_mode",
)
SEMAPHORE.row(
    "sync.wait",
    "hold pipe (on a2a3 the whole core) until the count is above 0, then count down",
    body=meaning.HEAR,
    order=WaitSignal(),
    attrs=(_LOCAL_PIPE, _EVENT_ID, _FFTS_MODE),
    rules=(attr_in("ffts_mode", "0", "1", "2"), _A5_PIPES.on("a5")),
    notes="On a5 the cube waits for each sub-block by its own id.",
    example="pto.sync.wait #pto.pipe<PIPE_V>, 1",
    cxx="- C++ writes wait_intra_block and wait_flag_dev",
)

# The same semaphores under the names of the micro-instruction manual, ids as operands.
BY_OPERAND = order_family(
    "semaphores by operand",
    "semaphores with the id as an operand",
    profiles="a2a3",
    text="$ins {}",
    pipe="S",
    rules=(id_below("", "event_id", _cross_core_ids, "a cross-core id"),),
    cost="semaphore",
)
SIGNAL_MEMORY = Family(
    "signal memory",
    "memory that carries cross-core signals",
    "scalar",
    text="$operands {} : types",
    pipe="S",
    cost="register",
)

BY_OPERAND.row(
    "set_cross_core",
    "count up; the cube reaches both sub-blocks, and theirs are combined for the cube",
    body=meaning.SEND,
    order=SendSignal(),
    operands=(read("core_id", "i64"), read("event_id", "i64")),
    cite=(f"{_PAGES}/set-cross-core.md", f"{_GYM}:1693"),
    cxx="- C++ writes sync.set",
)
BY_OPERAND.row(
    "wait_flag_dev",
    "hold the whole core until the count is above 0 (on the cube: of both sub-blocks)",
    body=meaning.HEAR,
    order=WaitSignal(),
    operands=(read("core_id?", "i64"), read("event_id", "i64")),
    notes="The Gym manual writes core_id first, the page of pto-isa leaves it out.",
    cite=(f"{_PAGES}/wait-flag-dev.md", f"{_GYM}:1698"),
    cxx="wait_flag_dev event_id",
)
INTRA_BLOCK = order_family(
    "semaphores of a block",
    "semaphores between the cube and one vector sub-block; older text has both ids as operands",
    profiles="a2a3 a5",
    operands=(read("pipe_dyn?", "i64"), read("event_dyn?", "i64"), read("event_id_dyn?", "index")),
    attrs=(replace(_LOCAL_PIPE, required=False), _EVENT_ID),
    text="<1 @pipe , <1 @event_id | $event_id_dyn > | $pipe_dyn , $event_dyn : types > {}",
    pipe="@pipe",
    rules=(
        id_below("event_id", "event_id_dyn", _cross_core_ids, "a cross-core id"),
        id_below("", "event_dyn", _cross_core_ids, "a cross-core id"),
        pipe_exists("pipe"),
        _A5_PIPES.on("a2a3 a5"),
    ),
    cost="semaphore",
)
INTRA_BLOCK.row(
    "set_intra_block",
    "count up on one sub-block once pipe has done all earlier work",
    body=meaning.SEND,
    order=SendSignal(),
    aliases="set_intra_core",
    example="pto.set_intra_block #pto.pipe<PIPE_MTE3>, 1",
    cite=(_AUGUST, f"{_PAGES}/set-intra-block.md", f"{_GYM}:1729"),
    cxx="set_intra_block pipe event_id",
)
INTRA_BLOCK.row(
    "wait_intra_block",
    "hold pipe until the count is above 0, then count down",
    body=meaning.HEAR,
    order=WaitSignal(),
    aliases="wait_intra_core",
    example="pto.wait_intra_block #pto.pipe<PIPE_V>, 1",
    cite=(_AUGUST, f"{_PAGES}/wait-intra-core.md", f"{_GYM}:1734"),
    cxx="wait_intra_block pipe event_id",
)
for _name, _meaning, _body, _order in (
    (
        "set_cross_block",
        "signal to all cores of this kind that pipe has arrived here",
        meaning.SEND,
        SendSignal(),
    ),
    (
        "wait_cross_block",
        "hold pipe until all cores of this kind have come",
        meaning.HEAR,
        WaitSignal(),
    ),
):
    SEMAPHORE.row(
        _name,
        _meaning,
        body=_body,
        order=_order,
        attrs=(_LOCAL_PIPE, _EVENT_ID, replace(_FFTS_MODE, default=0)),
        rules=_A5_PIPES.on("a5"),
        profiles="a2a3 a5",
        notes="sync.set and sync.wait with ffts_mode 0",
        example=f"pto.{_name} #pto.pipe<PIPE_MTE3>, 1",
        cite=_AUGUST,
    )

SET_FFTS = SIGNAL_MEMORY.row(
    "set_ffts",
    "from here on cores signal each other through the memory at ffts",
    body=meaning.IN_ORDER,
    operands=read("ffts", "pointer or memref"),
    profiles="a2a3",
    rules=dtype_in("ffts", "i64 u64 i8 u8"),
    example="pto.set_ffts %ffts : !pto.ptr<i64>",
    cite=_TD,
    cxx="- the machine needs no memory for signals",
)
