"""Setting up the queues between the cube and the vector side, and the buffers they use.

Pushing and popping tiles is in the tile families; that both ends agree, in `verify/pipes.py`.
"""

from __future__ import annotations

from dataclasses import replace

from pto.isa.handle.view import handle_family
from pto.isa.meaning.order import ring as meaning
from pto.isa.row import types as t
from pto.isa.row.attributes import Bool
from pto.isa.row.instr import Attr, Instr, Result, read
from pto.isa.row.order import OpenQueue, QueueSlots
from pto.isa.row.traits import Traits
from pto.isa.rules.global_memory import element_count
from pto.isa.rules.rule import LIBRARY, Case, attr_at_least, attr_in, rule
from pto.target.npu import CROSS_CORE_IDS

_TD = "PTOAS include/PTO/IR/PTOOps.td"
_MANUAL = "PTOAS docs/PTO_IR_manual.md"

_DIRECTION = Attr("dir_mask", "i8", required=True, meaning="1 cube to vector, 2 back, 3 both")
_SLOT_SIZE = Attr("slot_size", "i32", required=True, meaning="bytes of a slot before it is split")
_SLOT_NUM = Attr("slot_num", "i32", required=True, meaning="slots of the queue: 8, or 4 both ways")
_EPILOGUE = Attr(
    "acc_push_epilogue", "any", meaning="what a push does to an accumulator: layout, quant, relu"
)
_LOCAL_SLOTS = Attr("local_slot_num", "i32", meaning="a2a3: slots of the consumer's local buffer")
_FLAG_BASE = Attr("flag_base", "i32", meaning="the first of its 2 hardware flags, 4 both ways")
_NOSPLIT = Attr("nosplit", "bool", meaning="tiles go whole to one sub-block")

# ---- rules


def _both_ways(case: Case) -> bool:
    return case.number("dir_mask") == 3


@rule(
    "PTO-S079",
    "expects a consumer buffer for each direction, or gm_slot_tensor (with"
    " c2v_consumer_buf where dir_mask is 1 and tiles go through it)",
)
def _belong_together(case: Case) -> str | None:
    present = [o.name for o in case.row.operands if case.op.group(o.name)]
    mask, described = case.number("dir_mask") or 0, f"it has {', '.join(present) or 'none'}"
    if "gm_slot_tensor" in present:
        entries = present == ["gm_slot_tensor"]
        tiles = present == ["gm_slot_tensor", "c2v_consumer_buf"] and mask == meaning.TO_VECTOR
        return None if entries or tiles else described
    ways = zip(
        (meaning.TO_VECTOR, meaning.TO_CUBE), ("c2v_consumer_buf", "v2c_consumer_buf"), strict=True
    )
    missing = [name for way, name in ways if mask & way and name not in present]
    return described if missing else None


@rule("PTO-M072", "expects local slots within the queue")
def _local_slots_fit(case: Case, local_slot_num: int) -> str | None:
    """One direction has 8 slots, each of two directions 4."""
    most = case.number("slot_num") or (4 if _both_ways(case) else 8)
    return f"{local_slot_num} of {most}" if local_slot_num > most else None


@rule("PTO-M073", "expects slot_size to be the bytes of gm_slot_tensor, or twice that")
def _slot_holds_tensor(gm_slot_tensor: t.View, slot_size: int) -> str | None:
    """A slot is one entry, or two halves for the two sub-blocks."""
    elem, count = gm_slot_tensor.elem.dtype, element_count(gm_slot_tensor.shape)
    if elem is None or count is None:
        return None
    size = count * elem.itemsize
    fits = slot_size in (size, 2 * size)
    return None if fits else f"the slot has {slot_size} bytes, the tensor {size}"


@rule("PTO-S079", "expects no local_slot_num")
def _no_local_slots(local_slot_num: int) -> str | None:
    return f"it is {local_slot_num}"


@rule("PTO-S079", "expects dir_mask 1 with acc_push_epilogue")
def _one_way_push(case: Case) -> str | None:
    mask = case.number("dir_mask")
    pushes = case.op.attrs.get("acc_push_epilogue") is not None
    return f"it is {mask}" if pushes and mask != 1 else None


@rule("PTO-S079", "expects nosplit = true with acc_push_epilogue")
def _push(case: Case) -> str | None:
    pushes = case.op.attrs.get("acc_push_epilogue") is not None
    return "it is not" if pushes and case.word("nosplit") != "true" else None


@rule("PTO-S079", "expects local_slot_num only with a local buffer")
def _global_has_no_slots(case: Case) -> str | None:
    buffer = "gm_slot_tensor" if case.row.attr("id") else "local_addr"
    is_local = bool(case.op.group(buffer)) is (buffer == "local_addr")
    return None if is_local or case.number("local_slot_num") is None else "it is given"


@rule("PTO-S079", "expects peer_local_addr exactly for both directions")
def _peer_both_ways(case: Case) -> str | None:
    has_peer = bool(case.op.group("peer_local_addr"))
    if "local_addr" in case.row.operand_names and not case.op.group("local_addr"):
        return "peer_local_addr stands without local_addr" if has_peer else None
    if has_peer is _both_ways(case):
        return None
    return f"dir_mask is {case.number('dir_mask')}, it is {'given' if has_peer else 'missing'}"


@rule("PTO-D072", "expects hardware flags that exist")
def _flags_fit(case: Case, flag_base: int) -> str | None:
    last = flag_base + (4 if _both_ways(case) else 2) - 1
    fits = last < CROSS_CORE_IDS
    return None if fits else f"flags {flag_base} to {last} of {CROSS_CORE_IDS}"


@rule("PTO-T075", "expects base if auto is false")
def _placed(case: Case) -> str | None:
    auto = case.op.attrs.get("autoAlloc")
    if isinstance(auto, Bool) and not auto.value and case.number("base") is None:
        return "auto is false and base is missing"
    return None


@rule(LIBRARY, "expects gm_slot_buffer where a queue is in GM", severity="warning")
def _has_slots(case: Case) -> str | None:
    """TPipe of a2a3 takes the slots in global memory, and PTOAS refuses a queue without them."""
    has_slots = any(case.op.group(name) for name in ("gm_slot_buffer", "gm_slot_tensor"))
    return None if has_slots else "there is none"


@rule(
    LIBRARY,
    "expects slot_num to be a multiple of the slots that are freed together",
    severity="warning",
)
def _freed_in_turn(slot_num: int) -> str | None:
    """A push waits for free slots at multiples of the period alone, from tile slot_num on:
    TPush.hpp, shouldWaitFree."""
    period = meaning.period_of(max(slot_num, 1))
    overruns = f"tile {slot_num} takes the slot of tile 0 without waiting, as {period} are freed"
    return f"{overruns} together" if slot_num % period else None


_SHAPE = (attr_in("dir_mask", "1", "2", "3"), attr_at_least("slot_size", 1))
_LOCAL_SHAPE = (
    attr_at_least("local_slot_num", 1),
    _local_slots_fit,
    _global_has_no_slots,
)
_LOWERED_SHAPE = (
    *_SHAPE,
    attr_at_least("slot_num", 1),
    _freed_in_turn,
    attr_at_least("flag_base", 0),
    _flags_fit,
    _peer_both_ways,
)

# ---- as a program writes it, once for each side

SETUP = handle_family(
    "queue set-up",
    "one end of a queue between the cube and the vector side",
    operands=(
        read("gm_slot_buffer?", "pointer"),
        read("gm_slot_tensor?", "tensor view"),
        read("c2v_consumer_buf?", "i32"),
        read("v2c_consumer_buf?", "i32"),
    ),
    attrs=(
        Attr("id", "i32", default=0, meaning="which queue of the function"),
        _DIRECTION,
        _SLOT_SIZE,
        replace(_SLOT_NUM, required=False),
        _LOCAL_SLOTS,
        _NOSPLIT,
        _EPILOGUE,
    ),
    text="{ <|, id = @id | dir_mask = @dir_mask | slot_size = @slot_size | slot_num = @slot_num"
    " | local_slot_num = @local_slot_num | nosplit = @nosplit"
    " | acc_push_epilogue = @acc_push_epilogue > }"
    " ( <|, gm_slot_buffer = $gm_slot_buffer : types"
    " | gm_slot_tensor = $gm_slot_tensor : types"
    " | c2v_consumer_buf = $c2v_consumer_buf : types"
    " | v2c_consumer_buf = $v2c_consumer_buf : types > ) {}",
    rules=(
        *_SHAPE,
        *_LOCAL_SHAPE,
        attr_at_least("slot_num", 1),
        _freed_in_turn,
        attr_at_least("id", 0),
        _has_slots.on("a2a3"),
        _no_local_slots.on("a5"),
        _one_way_push,
        _push,
        _belong_together,
        _slot_holds_tensor,
    ),
)
OPEN_AT = dict[str, Instr]()  # by side
for _core, _side in {"aic": "cube", "aiv": "vector"}.items():
    OPEN_AT[_side] = SETUP.row(
        f"{_core}_initialize_pipe",
        f"the {_side} end of queue id",
        cxx="- C++ holds the queue: TPipe",
        body=meaning.INIT_FRONTEND,
        order=OpenQueue(),
        scope=_side,
        notes=(
            "Queues of one function share 16 hardware flags: 2 for one direction, 4 for both.",
            f"Only in {_side} kernels.",
        ),
        example=f"pto.{_core}_initialize_pipe {{dir_mask = 1, slot_size = 1024}}"
        " (c2v_consumer_buf = %a : i32, v2c_consumer_buf = %b : i32)",
        cite=(_MANUAL, _TD),
    )

# ---- as a compiler lowers it

LOWERED = handle_family(
    "lowered queues",
    "a queue as a value",
    cite=_TD,
    results=(Result("pipe", "pipe"),),
    rules=_LOWERED_SHAPE,
)
GLOBAL_QUEUE = LOWERED.row(
    "initialize_l2g2l_pipe",
    "pipe = a queue with slots in global memory (a2a3)",
    body=meaning.INIT_GLOBAL,
    order=OpenQueue(),
    operands=(read("gm_addr", "any"), read("local_addr?", "any"), read("peer_local_addr?", "any")),
    attrs=(_DIRECTION, _SLOT_SIZE, _SLOT_NUM, _LOCAL_SLOTS, _FLAG_BASE, _NOSPLIT, _EPILOGUE),
    text="{ dir_mask = @dir_mask , slot_size = @slot_size , slot_num = @slot_num"
    " <? , local_slot_num = @local_slot_num > <? , flag_base = @flag_base >"
    " <? , nosplit = @nosplit > }"
    " ( $gm_addr : types <? , $local_addr : types > <? , $peer_local_addr : types > )"
    " {} -> results",
    rules=_LOCAL_SHAPE,
    example="%q = pto.initialize_l2g2l_pipe {dir_mask = 1, slot_size = 1024, slot_num = 8}"
    " (%gm : !pto.ptr<f32, gm>, %buffer : i32) -> !pto.pipe",
    cxx="TPIPE pipe gm_addr local_addr peer_local_addr",
    traits=Traits(generic="flag_base"),
)
LOCAL_QUEUE = LOWERED.row(
    "initialize_l2l_pipe",
    "pipe = a queue with slots in the consumer's local buffer (a5)",
    body=meaning.INIT_LOCAL,
    order=OpenQueue(in_local=True),
    operands=(read("local_addr", "any"), read("peer_local_addr?", "any")),
    attrs=(_DIRECTION, _SLOT_SIZE, _SLOT_NUM, _FLAG_BASE, _NOSPLIT, _EPILOGUE),
    text="{ dir_mask = @dir_mask , slot_size = @slot_size , slot_num = @slot_num"
    " <? , flag_base = @flag_base > <? , nosplit = @nosplit > }"
    " ( $local_addr : types <? , $peer_local_addr : types > ) {} -> results",
    example="%q = pto.initialize_l2l_pipe {dir_mask = 1, slot_size = 1024, slot_num = 8}"
    " (%buffer : i32) -> !pto.pipe",
    cxx="TPIPE pipe local_addr peer_local_addr",
)

# ---- local buffers of queues

BUFFER = handle_family(
    "queue buffers",
    "where a queue lies",
    cite=(_MANUAL, _TD),
    results=(Result("addr", "i32"),),
)
RESERVE_BUFFER = BUFFER.row(
    "reserve_buffer",
    "addr = the base of size bytes kept free for a queue",
    body=meaning.RESERVE,
    order=QueueSlots(),
    attrs=(
        Attr("name", "str", required=True, meaning="unique in the function"),
        Attr("size", "i32", required=True, meaning="bytes"),
        Attr("location", "address_space", required=True),
        Attr("autoAlloc", "bool", required=True, meaning="`auto` in text: the planner places it"),
        Attr("base", "i32", meaning="where it lies when the planner does not place it"),
    ),
    text="{ name = @name , size = @size , location = @location , auto = @autoAlloc"
    " <? , base = @base > } {} -> results",
    rules=(
        attr_at_least("size", 1),
        attr_in("location", "vec", "mat"),
        attr_at_least("base", 0),
        _placed,
    ),
    example='%b = pto.reserve_buffer {name = "fifo", size = 4096,'
    " location = #pto.address_space<vec>, auto = true} -> i32",
)
IMPORT_BUFFER = BUFFER.row(
    "import_reserved_buffer",
    "addr = the base of the buffer that peer_func reserves under this name",
    body=meaning.RESERVE,
    order=QueueSlots(is_imported=True),
    attrs=(Attr("name", "str", required=True), Attr("peer_func", "symbol", required=True)),
    text="{ name = @name , peer_func = @peer_func } {} -> results",
)
