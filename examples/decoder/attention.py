"""Flash attention of a layer: groups of query heads share keys and values, which lie in pages.

Rows of a tile are queries: the heads of a group, token by token, so one token of a group of four
has four rows, and a prompt has many. The cube multiplies, the vector sub-blocks keep a running
softmax, half of the rows each; tiles go between them through queues (examples/flash_attention.py
has the same without pages, groups and mask). On a2a3 the queues go through global memory.
"""

from typing import Any, Literal

import pto
from pto import isa

ROWS, PAGE = 32, 64  # queries of a tile; keys of a page
HALF = ROWS // 2
SLOTS = 4  # of a queue, each way
BOTH_WAYS, UPPER_LOWER = 3, 1

Queries = pto.Global[
    pto.bf16, None, Literal["queries"], None
]  # key head, query of its group, element
# token, key head, query head of its group, element
Outputs = pto.Global[pto.bf16, Literal["t"], None, None, None]
Pages = pto.Global[pto.bf16, Literal["pages"], None, None, None]
Table = pto.Global[pto.i32, Literal["used"]]
Positions = pto.Global[pto.f32, Literal["rows"]]
Room = pto.Global[pto.f32, Literal["words"]]
Number = pto.Scalar[pto.i32]


def slot(depth: int) -> int:
    """Bytes of the largest tile in a queue."""
    return ROWS * max(PAGE, depth) * 4


def scores_and_values(
    q: Queries,
    key_pages: Pages,
    value_pages: Pages,
    table: Table,
    positions: Positions,
    start: Number,
    last: Number,
    o: Outputs,
    room: Room,
    through_gm: bool,
) -> None:
    """The cube: scores = q k', then weights x v, page by page."""
    depth, head, group = q.shape[2], pto.block_idx(1), o.shape[2]
    to_cube = isa.reserve_buffer("to_cube", SLOTS * slot(depth), "mat", True)
    to_vector = isa.import_reserved_buffer("to_vector", "running_softmax")
    isa.aic_initialize_pipe(
        BOTH_WAYS,
        slot(depth),
        gm_slot_buffer=room_of_block(room, depth) if through_gm else None,
        c2v_consumer_buf=to_vector,
        v2c_consumer_buf=to_cube,
    )
    first = pto.block_idx(0) * ROWS
    queries = pto.tile(ROWS, depth, pto.bf16, role="mat")
    isa.tload(queries, q[head, first : first + ROWS, :])
    for page in pto.range(pages_seen(start, last, group)):
        place = isa.load_scalar(table, page)
        keys = pto.load(key_pages[place, head, :, :], depth, PAGE, role="mat")
        values = pto.load(value_pages[place, head, :, :], PAGE, depth, role="mat")
        isa.tpush_to_aiv(pto.dot(queries, keys), UPPER_LOWER)
        weights = isa.tpop_from_aiv(UPPER_LOWER, to=pto.tile_type(ROWS, PAGE, pto.bf16, role="mat"))
        part = pto.dot(weights, values)
        isa.tfree_from_aiv(UPPER_LOWER)
        isa.tpush_to_aiv(part, UPPER_LOWER)


def pages_seen(start: Number, last: Number, group: int) -> Any:
    """Pages up to the last key that a query of the block may look at."""
    behind = start + (pto.block_idx(0) + 1) * (ROWS // group)
    return pto.min(last, behind - 1) // PAGE + 1


def room_of_block(room: Room, depth: int) -> pto.Pointer:
    """Where the queues of this block lie in global memory."""
    number = pto.block_idx(0) * pto.block_num(1) + pto.block_idx(1)
    return isa.addptr(room, number * (2 * SLOTS * slot(depth) // 4))


def running_softmax(
    q: Queries,
    key_pages: Pages,
    value_pages: Pages,
    table: Table,
    positions: Positions,
    start: Number,
    last: Number,
    o: Outputs,
    room: Room,
    through_gm: bool,
) -> None:
    """The vector side: weights = exp(scores - maximum) of keys that may be seen, and the output
    so far, rescaled."""
    depth, head, group = q.shape[2], pto.block_idx(1), o.shape[2]
    to_vector = isa.reserve_buffer("to_vector", SLOTS * slot(depth), "vec", True)
    to_cube = isa.import_reserved_buffer("to_cube", "attention")
    isa.aiv_initialize_pipe(
        BOTH_WAYS,
        slot(depth),
        gm_slot_buffer=room_of_block(room, depth) if through_gm else None,
        c2v_consumer_buf=to_vector,
        v2c_consumer_buf=to_cube,
    )
    own = (pto.block_idx(0) * 2 + pto.subblock_idx()) * HALF
    seen, seen_row = column()  # the last key that each row may look at
    isa.tload(seen_row, positions[own : own + HALF])
    (highest, highest_row), (total, total_row) = column(), column()
    (now, now_row), (shrink, shrink_row) = column(), column()
    out = pto.tile(HALF, depth, pto.f32)
    isa.texpands(highest_row, float("-inf"))
    isa.texpands(total_row, 0.0)
    isa.texpands(out, 0.0)
    for page in pto.range(pages_seen(start, last, group)):
        scores = isa.tpop_from_aic(UPPER_LOWER, to=pto.tile_type(HALF, PAGE, pto.f32))
        weights = scores * depth**-0.5
        isa.tfree_from_aic(UPPER_LOWER)
        key = pto.arange(page * PAGE, page * PAGE + PAGE, dtype=pto.f32)
        weights = pto.where(seen - key < 0.0, float("-inf"), weights)
        isa.trowmax(now, weights)
        isa.tmax(now_row, now_row, highest_row)
        isa.tsub(shrink_row, highest_row, now_row)
        isa.texp(shrink_row, shrink_row)
        isa.tmov(highest_row, now_row)
        weights = pto.exp(weights - highest)
        isa.trowsum(now, weights)
        isa.tmul(total_row, total_row, shrink_row)
        isa.tadd(total_row, total_row, now_row)
        send(weights, through_gm)
        part = isa.tpop_from_aic(UPPER_LOWER, to=pto.tile_type(HALF, depth, pto.f32))
        isa.trowexpandmul(out, out, shrink)
        isa.tadd(out, out, part)
        isa.tfree_from_aic(UPPER_LOWER)
    tokens = own // group
    isa.tstore(o[tokens : tokens + HALF // group, head, :, :], (out / total).to(pto.bf16))


def column() -> tuple[pto.Tile, pto.Tile]:
    """A number for each row, as a column and, over the same bytes, as a row to calculate with."""
    tall = pto.tile(HALF, 1, pto.f32, layout="DN")
    return tall, isa.treshape(tall, to=pto.tile_type(1, HALF, pto.f32))


def send(weights: pto.Tile, through_gm: bool) -> None:
    """Round to bf16 and push; a queue in L1 holds boxes as the cube reads them."""
    rounded = weights.to(pto.bf16)
    if through_gm:
        isa.tpush_to_aic(rounded, UPPER_LOWER)
    else:
        boxed = pto.tile(HALF, PAGE, pto.bf16, layout="NZ")
        isa.tmov(boxed, rounded)
        isa.tpush_to_aic(boxed, UPPER_LOWER)


attention = pto.pair(scores_and_values, running_softmax, profile="a5", name="attention")
