"""Communication between ranks: transfers, signals and collectives on global memory."""

from __future__ import annotations

from functools import partial
from math import prod

from pto.isa.meaning.memory import collective as meaning
from pto.isa.row import types as t
from pto.isa.row.instr import Attr, Family, Operand, Result, read, scratch, update, write
from pto.isa.row.order import Gather, Notify, TestSignal, WaitUntil
from pto.isa.rules.global_memory import (
    atomic_store,
    flat,
    same_view_shape,
    shape_text,
    static_shape,
)
from pto.isa.rules.paths import same_type
from pto.isa.rules.rule import (
    Case,
    attr_at_least,
    attr_in,
    dtype_in,
    in_role,
    rule,
    rule_of,
    same_dtype,
)
from pto.target.npu import EVENT_IDS

_PAGES = "pto-isa docs/isa/comm"
_TD = "PTOAS include/PTO/IR/PTOOps.td"


_family = partial(Family, section="comm", needs="collectives")

# ---- point to point


@rule_of("PTO-S069", "expects {name} with open extents to be a partition_tensor_view")
def _open_window(case: Case, name: str) -> str | None:
    """Dynamic extents need a window: a whole view must have static extents in its type."""
    type = case.type(name)
    if not isinstance(type, t.View) or type.partition or None not in type.shape:
        return None
    return f"it is a tensor_view of {shape_text(type.shape)}"


POINT_TO_POINT = _family(
    "point to point",
    "copy between the global memories of two ranks through a staging tile",
    operands=(write("dst", "view"), read("src", "view"), scratch("ping"), scratch("pong?")),
    text="( $dst , $src , buf( $ping <? , $pong > ) : types ) {}",
    pipe="MTE3",
    rules=(
        static_shape("dst", "src", open=True),
        same_view_shape("dst", "src"),
        _open_window("dst"),
        _open_window("src"),
        same_dtype("ping", "src", "dst"),
        in_role("ping", "vec"),
        same_type("ping", "pong"),
    ),
    cost="remote",
)
_STAGED = (
    "loads on MTE2 and stores on MTE3, tile by tile: rows and columns beyond the staging tile are"
    " cut, outer dimensions looped"
)
_REMOTE = (
    "a remote view is made like any other: of a peer's array passed as an argument, or of an"
    " address out of a table; the symmetric heap has the same offset on every rank"
)
# pto-isa comm/a2a3/TPut.hpp, TGet.hpp, which a5 shares: a staging tile is loaded, then stored; with
# two of them the next load overlaps the store.
_COPY = """
    +pong: MTE2(src->ping,pong) MTE2>MTE3:0,1 MTE3(ping,pong->dst) MTE3>MTE2:0,1
    MTE2(src->ping) MTE2>MTE3 MTE3(ping->dst) MTE3>MTE2
"""
POINT_TO_POINT.row(
    "comm.tput",
    "remote dst = local src, or dst += src with atomic_add",
    body=meaning.TRANSFER,
    attrs=Attr(
        "atomicType", "atomic_type", default="atomic_none", values=("atomic_none", "atomic_add")
    ),
    aliases="tput",
    rules=atomic_store,
    phases={"a2a3": _COPY, "a5": _COPY},
    notes=(_STAGED, _REMOTE),
    cite=f"{_PAGES}/TPUT.md",
)
POINT_TO_POINT.row(
    "comm.tget",
    "local dst = remote src",
    body=meaning.TRANSFER,
    aliases="tget",
    phases={"a2a3": _COPY, "a5": _COPY},
    notes=(_STAGED, _REMOTE),
    cite=f"{_PAGES}/TGET.md",
)


@rule("PTO-T065", "expects all members of group to have one type")
def _group_alike(case: Case) -> str | None:
    members = case.op.group("group")
    odd = [n for n, value in enumerate(members) if value.type != members[0].type]
    return f"member {odd[0]} differs from member 0" if odd else None


@rule("PTO-D061", "expects root to be a member of group")
def _root_in_group(case: Case, root: str) -> str | None:
    size = len(case.op.group("group"))
    return None if 0 <= int(root) < size else f"root is {root}, group has {size}"


@rule_of("PTO-S066", "expects {whole} to have the rows of all members")
def _rows_hold(case: Case, whole: str) -> str | None:
    """Members are stacked along the last dimension but one."""
    members, type = case.op.group("group"), case.type(whole)
    first = members[0].type if members else None
    if not isinstance(type, t.View | t.MemRef) or not isinstance(first, t.View | t.MemRef):
        return None
    rows, member_rows = (x.shape[-2] if len(x.shape) > 1 else None for x in (type, first))
    if rows is None or member_rows is None or rows >= member_rows * len(members):
        return None
    return f"{whole} has {rows}, {len(members)} members have {member_rows} each"


@rule("PTO-T064", "expects a peer with engine RDMA")
def _rdma_peer(case: Case) -> str | None:
    has_peer = case.op.operand("peer") is not None
    return "engine is RDMA" if case.word("engine") == "RDMA" and not has_peer else None


# ---- asynchronous transfers


@rule("PTO-M062", "expects scratch to have at least 8 bytes")
def _scratch_bytes(case: Case) -> str | None:
    type = case.type("scratch")
    if isinstance(type, t.TileBuf):
        nbytes = type.tile.nbytes
    elif isinstance(type, t.MemRef) and None not in type.shape and type.elem.dtype:
        nbytes = prod(d or 0 for d in type.shape) * type.elem.dtype.itemsize
    else:
        return None
    return None if nbytes >= 8 else f"it has {nbytes}"


_SESSION = "the session stays alive until the event is complete"
ASYNC = _family(
    "asynchronous transfer",
    "transfers that run while the core works",
    cite=_TD,
    cost="remote",
)
ASYNC.row(
    "comm.build_async_session",
    "session = a transfer engine with its scratch tile and its workspace in global memory",
    body=meaning.BUILD_SESSION,
    operands=(scratch("scratch"), read("workspace", "pointer or gm memref")),
    results=Result("session", "async session"),
    attrs=(
        Attr("sync_id", "i32", meaning="event id the engine may use"),
        Attr("block_bytes", "int"),
        Attr("comm_block_offset", "int"),
        Attr("queue_num", "i32"),
        Attr("channel_group_idx", "int"),
    ),
    text="( $scratch , $workspace : types ) {} -> results",
    subject="scratch",
    aliases="build_async_session",
    cxx="- a session works in a workspace that the host gets from the driver of the engine",
    rules=(
        in_role("scratch", "vec"),
        _scratch_bytes,
        dtype_in("workspace", "i8 u8"),
        attr_in("sync_id", *map(str, range(EVENT_IDS))),
        attr_at_least("block_bytes", 1),
        attr_at_least("comm_block_offset", 0),
        attr_at_least("queue_num", 1),
        attr_at_least("channel_group_idx", 0),
    ),
)
for _name, _meaning, _body in (
    ("tput", "remote dst = local src", meaning.PUT_ASYNC),
    ("tget", "local dst = remote src", meaning.GET_ASYNC),
):
    ASYNC.row(
        f"comm.{_name}_async",
        f"start {_meaning}; event signals completion",
        body=_body,
        operands=(
            write("dst", "view"),
            read("src", "view"),
            read("session", "async session"),
            read("peer?", "int"),
        ),
        results=Result("event", "async event"),
        attrs=Attr("engine", "str", values=("SDMA", "URMA", "RDMA"), default="SDMA"),
        text="( $dst , $src , $session <? , $peer > : types ) {} -> results",
        aliases=f"{_name}_async",
        rules=(
            same_dtype("src", "dst"),
            flat("dst", "src"),
            same_view_shape("dst", "src"),
            attr_in("engine", "SDMA").on("a2a3"),
            _rdma_peer,
        ),
        notes=(
            _SESSION,
            "engine and peer are C++'s; PTOAS has SDMA only",
            "with a peer, an address of the own heap means the same place on that rank",
        ),
        cite=f"{_PAGES}/{_name.upper()}_ASYNC.md",
    )
for _name, _meaning in {
    "wait": "wait until the transfer of event is done; true",
    "test": "is the transfer of event done?",
}.items():
    ASYNC.row(
        f"comm.{_name}_async_event",
        _meaning,
        body=meaning.EVENT_DONE,
        operands=(read("event", "async event"), read("session", "async session")),
        results=Result("completed", "i1"),
        text="( $event , $session : types ) {} -> results",
        subject="event",
        pipe="S",
        aliases=f"{_name}_async_event",
        notes="earlier transfers of the session are done too",
    )

# ---- signals

_CMP = Attr("cmp", "wait_cmp", required=True, meaning="numbered apart from the cmp of tcmp")
SIGNAL = _family(
    "signal",
    "signal words in global memory, shared by ranks",
    attrs=(_CMP,),
    operands=(read("signal", "view"), read("cmpValue", "i32")),
    pipe="S",
    subject="signal",
    rules=(static_shape("signal"),),
    cost="semaphore",
)
SIGNAL.row(
    "comm.tnotify",
    "remote signal[0] = value, or += value with atomic_add",
    body=meaning.NOTIFY,
    order=Notify(),
    operands=(update("signal", "view"), read("value", "i32")),
    attrs=Attr("notifyOp", "notify_op", required=True),
    text="( $signal , $value : types ) {}",
    types="i32",
    aliases="tnotify",
    cite=f"{_PAGES}/TNOTIFY.md",
)
SIGNAL.row(
    "comm.twait",
    "wait until signal[i] cmp cmpValue holds for every element",
    body=meaning.WAIT,
    order=WaitUntil(),
    text="( $signal , $cmpValue : types ) {}",
    types="i32",
    aliases="twait",
    cite=f"{_PAGES}/TWAIT.md",
)
SIGNAL.row(
    "comm.ttest",
    "does signal[i] cmp cmpValue hold for every element now?",
    body=meaning.TEST,
    order=TestSignal(),
    results=Result("result", "i1"),
    text="( $signal , $cmpValue : types ) {} -> results",
    types="i32",
    aliases="ttest",
    cite=f"{_PAGES}/TTEST.md",
)

# ---- collectives

_ROOT = Attr("root", "i32", required=True, meaning="the rank in the group that calls")
_ENGINE = Attr(
    "engine", "str", values=("AIV", "CCU"), default="AIV", meaning="tile copies, or a5's own unit"
)
_BY_ROOT = "AIV: only the root calls it; CCU: every rank does"
_TAIL = "recv( $ping <? , $pong > ) , group( $group* ) : types ) {}"


def _collective(whole: Operand, members: Operand, meaning: str) -> Family:
    return _family(
        f"collective on {whole.name}",
        meaning,
        operands=(whole, scratch("ping"), scratch("pong?"), members),
        attrs=(_ROOT, _ENGINE),
        text=f"( ${whole.name} , {_TAIL}",
        pipe="MTE3",
        subject=whole.name,
        rules=(
            static_shape(whole.name, "group"),
            _group_alike,
            _root_in_group,
            same_dtype(whole.name, "group"),
            attr_in("engine", "AIV").on("a2a3"),
        ),
        cost="remote",
    )


def _tile_by_tile(source: str, target: str) -> dict[str, str]:
    """pto-isa comm/a2a3/TBroadCast.hpp, TGather.hpp, TScatter.hpp; CCU has no pipe of the core."""
    lines = _COPY.replace("src", source).replace("dst", target)
    return {"a2a3": lines, "a5": f"engine=CCU:\n{lines}"}


# pto-isa comm/a2a3/TReduce.hpp.
_IDS = ":0,1,2"
_FOLD = f"""
    +recvPong: MTE2(group->acc,recvPing,recvPong) MTE2>V{_IDS} V(acc,recvPing,recvPong->acc)\
 V>MTE2 V>MTE3 MTE3(acc->dst) MTE3>MTE2
    MTE2(group->acc,recvPing) MTE2>V:0,1 V(acc,recvPing->acc) V>MTE2 V>MTE3 MTE3(acc->dst) MTE3>MTE2
"""
_STAGING = (same_type("ping", "pong"), in_role("ping", "vec"))
FROM_ROOT = _collective(
    read("src", "view"), write("group*", "view"), "the root's data for all members"
)
TO_ROOT = _collective(
    write("dst", "view"), read("group*", "view"), "all members' data for the root"
)

FROM_ROOT.row(
    "comm.tbroadcast",
    "group[r] = src for every rank r",
    body=meaning.BROADCAST,
    order=Gather(),
    aliases="tbroadcast",
    phases=_tile_by_tile("src", "group"),
    rules=(*_STAGING, same_dtype("ping", "src"), same_view_shape("src", "group")),
    notes=(_STAGED, _BY_ROOT),
    cxx="comm::TBROADCAST src ping pong? root group*",
    cite=f"{_PAGES}/TBROADCAST.md",
)
TO_ROOT.row(
    "comm.tgather",
    "dst[..., r*H+i, j] = group[r][..., i, j], H rows a member",
    body=meaning.GATHER,
    order=Gather(),
    rules=(*_STAGING, same_dtype("ping", "dst"), _rows_hold("dst")),
    phases=_tile_by_tile("group", "dst"),
    notes=(_STAGED, _BY_ROOT, "rows of dst beyond the last member stay"),
    cxx="comm::TGATHER dst ping pong? root group*",
    cite=f"{_PAGES}/TGATHER.md",
)
FROM_ROOT.row(
    "comm.tscatter",
    "group[r][..., i, j] = src[..., r*H+i, j], H rows a member",
    body=meaning.SCATTER,
    order=Gather(),
    rules=(*_STAGING, same_dtype("ping", "src"), _rows_hold("src")),
    phases=_tile_by_tile("src", "group"),
    notes=(_STAGED, _BY_ROOT, "rows of src beyond the last member are ignored"),
    cxx="comm::TSCATTER src ping pong? root group*",
    cite=f"{_PAGES}/TSCATTER.md",
)
TO_ROOT.row(
    "comm.treduce",
    "dst = group[root], then reduced with each other rank in ascending order, in the tile's type",
    body=meaning.REDUCE,
    order=Gather(),
    operands=(
        write("dst", "view"),
        *map(scratch, ("acc", "recvPing", "recvPong?")),
        read("group*", "view"),
    ),
    attrs=(Attr("reduceOp", "reduce_op", required=True), _ROOT, _ENGINE),
    text="( $dst , $acc , recv( $recvPing <? , $recvPong > ) , group( $group* ) : types ) {}",
    aliases="treduce",
    phases={"a2a3": _FOLD, "a5": f"engine=CCU:\n{_FOLD}"},
    rules=(
        in_role("acc", "vec"),
        same_type("acc", "recvPing", "recvPong"),
        same_dtype("acc", "dst"),
        same_view_shape("dst", "group"),
    ),
    notes=(_STAGED, _BY_ROOT, "the order decides the bits of a float sum"),
    cxx="comm::TREDUCE dst acc recvPing recvPong? root group*",
    cite=f"{_PAGES}/TREDUCE.md",
)
