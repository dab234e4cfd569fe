"""Order between the pipes of a core: flags, events, barriers, buffer ids."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from pto.isa.meaning.order import flags as meaning
from pto.isa.meaning.scalar import arrays
from pto.isa.row import types as t
from pto.isa.row.attributes import Int
from pto.isa.row.instr import Attr, Family, Result, read, update
from pto.isa.row.order import Acquire, Barrier, MemoryBarrier, Release, SetFlag, WaitFlag
from pto.isa.row.pipe_of import named_pipe
from pto.isa.rules.rule import Case, attr_at_least, rule, rule_of

_TD = "PTOAS include/PTO/IR/PTOOps.td"
_MANUAL = "PTOAS docs/PTO_IR_manual.md"
_PAGES = "pto-isa docs/isa/scalar/ops/pipeline-sync"
_GYM = "PTO-Gym docs/PTO-micro-Instruction-SPEC.md"

# ---- rules


@rule_of("PTO-X070", "expects pipes that the profile has")
def pipe_exists(case: Case, *names: str) -> str | None:
    for name in names:
        pipe = named_pipe(case, name)
        if pipe is not None and pipe != "ALL" and not case.profile.has_pipe(pipe):
            return f"{name} is {pipe}"
    return None


@rule_of("PTO-D070", "expects the name of one pipe, not of all")
def _one_pipe(case: Case, *names: str) -> str | None:
    wide = [n for n in names if named_pipe(case, n) == "ALL"]
    return f"{wide[0]} is PIPE_ALL" if wide else None


@rule_of("PTO-D071", "expects {src} and {dst} to be different pipes")
def _two_pipes(case: Case, src: str, dst: str) -> str | None:
    pipe = named_pipe(case, src)
    return f"both are {pipe}" if pipe is not None and pipe == named_pipe(case, dst) else None


@rule_of("PTO-D072", "expects {what} that the profile has", id="id-exists")
def id_below(
    case: Case, attr: str, operand: str, limit: Callable[[Case], int], what: str
) -> str | None:
    """An id, written or constant, that exists on the profile."""
    written = case.op.attrs.get(attr)
    number = written.value if isinstance(written, Int) else case.number(operand)
    top = limit(case)  # 0: the profile has none, as the row shows
    return None if number is None or 0 <= number < (top or 1 << 63) else f"{number} of {top}"


@rule_of("PTO-D073", "expects {attr} as a number or as an operand")
def one_id(case: Case, attr: str, operand: str) -> str | None:
    written, has_operand = attr in case.op.attrs, bool(case.op.group(operand))
    if written is not has_operand:
        return None
    return "both are given" if written else "neither is given"


_EVENT = id_below("", "event_id", lambda case: case.profile.sync.event_ids, "an event id")

order_family = partial(Family, section="scalar")

# ---- flags between pipes

_PIPES = (
    Attr("src_pipe", "pipe", required=True, meaning="the pipe that is waited for"),
    Attr("dst_pipe", "pipe", required=True, meaning="the pipe that waits"),
)
_PIPE_RULES = (
    _one_pipe("src_pipe", "dst_pipe"),
    pipe_exists("src_pipe", "dst_pipe"),
    _two_pipes("src_pipe", "dst_pipe"),
)
FLAG = order_family(
    "flags",
    "a flag of (src_pipe, dst_pipe, event_id): one set, one wait",
    attrs=(*_PIPES, Attr("event_id", "event", required=True)),
    text="[ @src_pipe , @dst_pipe , @event_id ] {}",
    rules=_PIPE_RULES,
    cost="flag",
)
DYNAMIC_FLAG = Family(
    "flags",
    "a flag with an event id computed at run time",
    "scalar",
    operands=(read("event_id", "index"),),
    attrs=_PIPES,
    text="[ @src_pipe , @dst_pipe , $event_id ] {}",
    rules=(*_PIPE_RULES, _EVENT),
    cost="flag",
)

_SET = "raise the flag once src_pipe has done all earlier work"
_WAIT = "hold dst_pipe until the flag is raised, then take it down"
_WHERE = {
    "": '["PIPE_MTE2", "PIPE_V", "EVENT_ID0"]',
    "_dyn": "[#pto.pipe<PIPE_MTE2>, #pto.pipe<PIPE_V>, %id]",
}
_CXX = {"": "{} src_pipe dst_pipe event_id", "_dyn": "- C++ numbers are known when they run"}
for _suffix, _family in {"": FLAG, "_dyn": DYNAMIC_FLAG}.items():
    _family.row(
        f"set_flag{_suffix}",
        _SET,
        body=meaning.SET_FLAG,
        order=SetFlag(),
        cxx=_CXX[_suffix].format("set_flag"),
        pipe="@src_pipe",
        example=f"pto.set_flag{_suffix}{_WHERE[_suffix]}",
        cite=(f"{_PAGES}/set-flag.md", _TD),
    )
    _family.row(
        f"wait_flag{_suffix}",
        _WAIT,
        body=meaning.WAIT_FLAG,
        order=WaitFlag(),
        cxx=_CXX[_suffix].format("wait_flag"),
        pipe="@dst_pipe",
        notes="On one page a flag stays for later waiters; hardware and programs consume it.",
        example=f"pto.wait_flag{_suffix}{_WHERE[_suffix]}",
        cite=(f"{_PAGES}/wait-flag.md", _TD),
    )

# ---- the same, named by kinds of operation

_OP_TYPE = "pipe_event_type|sync_op_type"
EVENT = Family(
    "events",
    "a flag between the pipes that run two kinds of operation",
    "support",
    cite=(_MANUAL, _TD),
    attrs=(
        Attr("src_op", _OP_TYPE, required=True),
        Attr("dst_op", _OP_TYPE, required=True),
        Attr("event_id", "event", required=True),
    ),
    text="[ @src_op , @dst_op , @event_id ] {}",
    rules=(_two_pipes("src_op", "dst_op"),),
    cost="flag",
)
_KINDS = "[#pto.sync_op_type<TLOAD>, #pto.sync_op_type<TVEC>, <EVENT_ID0>]"
EVENT.row(
    "record_event",
    _SET.replace("src_pipe", "its pipe"),
    body=meaning.SET_FLAG,
    order=SetFlag("src_op", "dst_op"),
    cxx="- Event<> sets a flag between pipes",
    pipe="@src_op",
    example=f"pto.record_event{_KINDS}",
)
EVENT.row(
    "wait_event",
    _WAIT.replace("dst_pipe", "its pipe"),
    body=meaning.WAIT_FLAG,
    order=WaitFlag("src_op", "dst_op"),
    cxx="- Event<> sets a flag between pipes",
    pipe="@dst_op",
    example=f"pto.wait_event{_KINDS}",
)

# ---- barriers

BARRIER = order_family("barriers", "order within a pipe or a scope", cost="barrier")

PIPE_BARRIER = BARRIER.row(
    "barrier",
    "hold the pipe until all its earlier work is done; PIPE_ALL: every pipe until all work is done",
    body=meaning.IN_ORDER,
    order=Barrier("pipe"),
    attrs=Attr("pipe", "pipe", required=True),
    text="@pipe {}",
    pipe="@pipe",
    rules=pipe_exists("pipe"),
    aliases="pipe_barrier",
    notes="PTOAS drops a barrier of PIPE_V on a5, which orders vector work by itself.",
    cite=(f"{_PAGES}/pipe-barrier.md", _TD),
    cxx="pipe_barrier pipe",
)
BARRIER.row(
    "barrier_sync",
    "a barrier of the pipe that runs this kind of operation",
    body=meaning.IN_ORDER,
    order=Barrier("op_type"),
    attrs=Attr("op_type", "sync_op_type", required=True),
    text="[ @op_type ] {}",
    pipe="@op_type",
    cite=(_MANUAL, _TD),
    cxx="- TSYNC is a barrier of the pipe",
)
BARRIER.row(
    "mem_bar",
    "earlier accesses to UB of the first class are done before later ones of the second begin",
    body=meaning.IN_ORDER,
    order=MemoryBarrier(),
    attrs=Attr("kind", "membar", required=True, meaning="V vector, S scalar, LD, ST, ALL"),
    text="@kind {}",
    pipe="V",
    scope="vecscope",
    cite=(f"{_PAGES}/mem-bar.md", f"{_GYM}:1267"),
    cxx="- inside vector scopes, which C++ kernels write as intrinsics",
)

# ---- buffer ids: pipes use the buffer of an id one after the other, in program order

BUFFER_ID = order_family(
    "buffer ids",
    "pipes take turns with a buffer in program order",
    operands=(read("buf_id_dyn?", "int"), read("mode_dyn?", "int")),
    attrs=(
        Attr("op_type", "pipe|pipe_event_type|sync_op_type", required=True),
        Attr("buf_id", "i32"),
        Attr("mode", "i32", default=0),
    ),
    text="=buffer_id",
    pipe="@op_type",
    rules=(
        one_id("buf_id", "buf_id_dyn"),
        _one_pipe("op_type"),
        pipe_exists("op_type"),
        id_below("buf_id", "buf_id_dyn", lambda case: case.profile.sync.buffer_ids, "a buffer id"),
        attr_at_least("mode", 0),
    ),
    cost="flag",
)
_CONTESTED = (
    "One table of the pto-isa page lists buffer ids for a2a3; td, manual and headers for a5.",
)

BUFFER_ID.row(
    "get_buf",
    "mode 0: hold the pipe until every earlier rls_buf of this id is done; mode 1: do not wait",
    body=meaning.IN_ORDER,
    order=Acquire(),
    profiles="a5",
    notes=_CONTESTED,
    example='pto.get_buf "PIPE_V", 0, 0',
    cite=(f"{_PAGES}/get-buf.md", f"{_GYM}:1222"),
    cxx="get_buf op_type buf_id mode",
)
BUFFER_ID.row(
    "rls_buf",
    "mode 0: done when the pipe's work on this id is; mode 1: when all pipes' work on it is",
    body=meaning.IN_ORDER,
    order=Release(),
    profiles="a5",
    notes=_CONTESTED,
    example='pto.rls_buf "PIPE_V", 0, 0',
    cite=(f"{_PAGES}/rls-buf.md", f"{_GYM}:1233"),
    cxx="rls_buf op_type buf_id mode",
)

DYNAMIC_BUFFER_ID = order_family(
    "buffer ids",
    "a buffer id that is known when it runs",
    operands=(read("buf_id_dyn", "index"),),
    attrs=(BUFFER_ID.attrs[0], BUFFER_ID.attrs[2]),
    text="=buffer_id",
    pipe="@op_type",
    rules=BUFFER_ID.rules[1:],
    scope="outside vecscope",
    cost="flag",
)
for _name, _order in (("get", Acquire()), ("rls", Release())):
    DYNAMIC_BUFFER_ID.row(
        f"{_name}_buf_dyn",
        f"{_name}_buf with the id as an index",
        body=meaning.IN_ORDER,
        order=_order,
        profiles="a5",
        example=f'pto.{_name}_buf_dyn "PIPE_V", %id',
        cite="PTOAS include/PTO/IR/VPTOOps.td (2026-08)",
    )

# ---- event ids chosen at run time

EVENT_IDS = Family(
    "event id arrays",
    "event ids that a program computes",
    "support",
    cite=_TD,
    pipe="S",
    cost="register",
)
_PLACE = (read("array", "event ids"), read("index", "index"))


@rule("PTO-S074", "expects an index inside array")
def _index_exists(array: t.EventIdArray, index: int) -> str | None:
    return None if 0 <= index < array.size else f"index {index} of {array.size}"


EVENT_IDS.row(
    "declare_eventid_array",
    "array = event ids, as many as its type gives, not yet set",
    body=arrays.DECLARE,
    results=Result("array", "event ids"),
    text="{} -> results",
    pipe="none",
)
EVENT_IDS.row(
    "eventid_array_get",
    "result = array[index]",
    body=arrays.GET,
    operands=_PLACE,
    results=Result("result", "index", "index"),
    text="$array [ $index ] {} : types(array)",
    rules=_index_exists,
)
EVENT_IDS.row(
    "eventid_array_set",
    "array[index] = value",
    body=arrays.SET,
    operands=(update("array", "event ids"), read("index", "index"), read("value", "index")),
    text="$array [ $index ] , $value {} : types(array)",
    rules=(
        _index_exists,
        id_below("", "value", lambda case: case.profile.sync.event_ids, "an event id"),
    ),
)
