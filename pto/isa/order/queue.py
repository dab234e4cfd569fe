"""Tile instructions of the queues between the cube and the vector side of a core.

The frontend forms (`..._to_aiv`, `..._from_aic`) name a queue by id; the plain ones hold a handle.
"""

from __future__ import annotations

from pto.core.tile import TileType
from pto.isa.handle.tile import VALID
from pto.isa.meaning.order import queue as meaning
from pto.isa.row import types as t
from pto.isa.row.instr import Attr, Family, Instr, PipeBy, Result, read, write
from pto.isa.row.order import Allocate, Free, Pop, Push
from pto.isa.rules.global_memory import shape_text
from pto.isa.rules.rule import LIBRARY, Case, agree, attr_in, dims, in_role, rule, rule_of
from pto.isa.rules.tile import NPU, tile_family

_SPLIT = Attr("split", "i8", required=True, meaning="0 whole tile, 1 upper/lower, 2 left/right")
_ID = Attr("id", "i32", default=0, meaning="which queue of the function")
_QUEUE = "<? { <|, id = @id | split = @split > } >"
_INITS = ("pto.initialize_l2l_pipe", "pto.initialize_l2g2l_pipe")
_ODD = "split 3 and 4 are halves of odd size, the first of which has one more"


@rule("PTO-M061", f"expects pipe_handle to come from {' or '.join(_INITS)}")
def _pipe_made(case: Case) -> str | None:
    maker = case.maker("pipe_handle")
    if maker is not None and maker.name in _INITS:
        return None
    return "it is an argument" if maker is None else f"it comes from {maker.name}"


@rule_of("PTO-M060", "expects {entry} to have the shape of a slot of the queue")
def _entry_fits(case: Case, entry: str) -> str | None:
    """An entry in global memory is a slot of the queue, or half of one."""
    type, maker = case.type(entry), case.maker("pipe_handle")
    if not isinstance(type, t.View) or maker is None or maker.name not in _INITS:
        return None
    if maker.name != _INITS[1]:
        return f"the queue of {maker.name} has its slots in local memory"
    slot = maker.operands[0].type if maker.operands else None
    if not isinstance(slot, t.View | t.MemRef):
        return None
    if not set(slot.elem.names) & set(type.elem.names):
        return f"{entry} is {type.elem.name}, a slot {slot.elem.name}"
    if len(type.shape) == len(slot.shape) and agree(type.shape, slot.shape):
        return None
    return f"{entry} is {shape_text(type.shape)}, a slot {shape_text(slot.shape)}"


@rule("PTO-S064", "expects even valid rows to split in two, or valid columns in multiples of 32")
def _split_halves(case: Case, tile: TileType) -> str | None:
    """a5 writes each half to its own sub-block: pto-isa TPush.hpp."""
    split = case.word("split")
    if tile.role.value != "acc":
        return None
    rows, cols = tile.valid
    if split == "1" and rows is not None and rows % 2:
        return f"split is 1, tile has {rows} valid rows"
    if split == "2" and cols is not None and cols % 32:
        return f"split is 2, tile has {cols} valid columns"
    extent = rows if split == "3" else cols if split == "4" else None
    if extent is not None and extent % 2 == 0:
        return f"split is {split}, tile has {dims(rows, cols)} valid elements"
    return None


@rule(LIBRARY, "expects tile to be ND where a queue is in GM", severity="warning")
def _plain_slot(tile: TileType) -> str | None:
    """a2a3/TPush.hpp stores the tile to global memory as rows, and TPOP loads rows into boxes."""
    fits = tile.role.value != "vec" or tile.layout.name == "ND"
    return None if fits else f"it is {tile.layout.name}"


@rule("PTO-V060", "expects the valid region of the result to be ?x? when operands give it")
def _dynamic_valid(case: Case) -> str | None:
    tile = case.tile("tile")
    if case.op.operand("valid_row") is None:
        odd = case.word("split") in ("3", "4") and tile is not None and None in tile.valid
        return "halves of odd size have one each, and no operand gives it" if odd else None
    if tile is None:
        return "the result is not a tile"
    return None if tile.valid == (None, None) else f"it is {shape_text(tile.valid)}"


_SUB = read("aiv_subblockid?", "int")


@rule("PTO-M061", f"expects {_SUB.name} to come from pto.get_subblock_idx")
def _own_half(case: Case) -> str | None:
    """The C++ call offsets by it: another number than one's own would race with the other half."""
    if case.op.operand(_SUB.name) is None:
        return None
    if case.word("split") == "0":
        return "split is 0, and nothing is halved"
    maker = case.maker(_SUB.name, "arith.index_cast", "arith.extsi", "arith.trunci")
    if maker is not None and maker.name == "pto.get_subblock_idx":
        return None
    return "it is an argument" if maker is None else f"it comes from {maker.name}"


_SUB_TEXT = f"<? {_SUB.name} ( ${_SUB.name} ) >"
_PUSHED = PipeBy(("tile",), ((("acc",), "FIX"), (("vec",), "MTE3")), "none")
# a2a3 loads a slot from global memory. On a5 the data already is where the tile is bound, and one
# pipe alone waits for it and gives it back: a5/TPush.hpp, `Consumer::wait` and `free`.
_AT_END = {"vector": "V", "cube": "MTE1"}
_POPPED = {
    side: PipeBy(("@profile",), ((("a5",), pipe),), "MTE2") for side, pipe in _AT_END.items()
}
_FREED = {side: PipeBy(("@profile",), ((("a5",), pipe),), "S") for side, pipe in _AT_END.items()}
# The same for a queue that may have its slots in global memory on a5 too (DIR_C2V_GM: TLOAD_IMPL).
_TAKEN = PipeBy(
    ("@profile", "^pipe_handle", "tile"),
    ((("a5", _INITS[1], "*"), "MTE2"), (("a5", "*", "vec"), "V"), (("a5", "*", "mat"), "MTE1")),
    "MTE2",
)
_GIVEN = PipeBy(
    ("@profile", "^pipe_handle", "@side"),
    (
        (("a5", _INITS[1], "vector"), "MTE2"),
        (("a5", "*", "vector"), "V"),
        (("a5", "*", "cube"), "MTE1"),
    ),
    "S",
)

QUEUE = tile_family(
    "queue",
    "hand tiles from one side of the core to the other, in order",
    operands=(read("tile", "tile or view"), read("pipe_handle", "pipe"), _SUB),
    attrs=(_SPLIT,),
    text=f"( $tile , $pipe_handle : types ) <? {{ split = @split }} > {_SUB_TEXT} {{}}",
    scope="cube or vector",
    subject="tile",
    rules=(_pipe_made, attr_in("split", *"01234"), _own_half),
    cost="queue",
)
QUEUE.row(
    "tpush",
    "wait for a free slot, copy the tile (or its half) into it, signal the other side",
    body=meaning.PUSH,
    order=Push(),
    pipe=_PUSHED,
    rules=(
        in_role("tile", "acc", "vec").on(NPU),
        _entry_fits("tile"),
        _split_halves.on("a5"),
        _plain_slot.on("a2a3"),
    ),
    notes=(
        _ODD,
        "an entry in global memory, from talloc, is not copied: tpush only signals it",
        "free slots are signalled half a ring at a time: push 8 of 8 slots waits for four tfrees",
    ),
    cxx="TPUSH<split> pipe_handle tile | TPUSH<split=0> tile pipe_handle",
)
QUEUE.row(
    "tpop",
    "wait for a full slot, bind or load it into the tile",
    body=meaning.POP,
    order=Pop(),
    operands=(write("tile", "tile or view"), read("pipe_handle", "pipe"), _SUB),
    pipe=_TAKEN,
    rules=(in_role("tile", "vec", "mat").on(NPU), _entry_fits("tile")),
    notes=(
        _ODD,
        "split 0: on a5 sub-block 0 alone gets the tile, on a2a3 both do; C++ on the CPU hands the"
        " idle one zeros, our cpu profile follows a2a3",
    ),
    cxx="TPOP<split> pipe_handle tile | TPOP<split=0> tile pipe_handle",
)
QUEUE.row(
    "talloc",
    "wait for a free slot in global memory, let entry be a view of it; no data, no signal",
    body=meaning.ALLOCATE,
    order=Allocate(),
    operands=(write("entry", "view"), read("pipe_handle", "pipe")),
    text="( $entry , $pipe_handle : types ) <? { split = @split } > {}",
    pipe="MTE3",
    subject="entry",
    rules=_entry_fits("entry"),
    notes=_ODD,
    cxx="TALLOC<split> pipe_handle entry",
)
QUEUE.row(
    "tfree",
    "give the slot of the last tpop back to the producer",
    body=meaning.FREE,
    order=Free(),
    operands=(read("entry?", "tile or view"), read("pipe_handle", "pipe")),
    text="( $ins ) <? { split = @split } > {}",
    pipe=_GIVEN,
    subject="entry",
    rules=_entry_fits("entry"),
    notes=(_ODD, "without entry: tpop has released the slot already, where it copied"),
    cxx="TFREE<split=0> pipe_handle entry?",
)

_LOWERED = "frontend form, lowered to {}; the queue is made by aic_ or aiv_initialize_pipe"
_NO_ENTRY = "- C++ holds the queue: TPipe"
_CALL = "= {}<decltype(queue{{id}}), {}{{split}}>(queue{{id}}{})"  # of a TPipe
_OF_TILE = ("decltype({tile}), ", ", {tile}")
_GM_ONLY_A2A3 = "entries in global memory: a2a3 only, by the IR manual"


def _family(subject: str, side: str, way: str, meaning: str) -> Family:
    return tile_family(
        f"{subject}, {side} side",
        meaning,
        attrs=(_ID, _SPLIT),
        scope=side,
        rules=(attr_in("split", *"01234" if way == "C2V" else "012"),),
        cost="queue",
    )


PUSH_FROM = dict[str, Instr]()  # by side
POP_AT = dict[str, Instr]()  # by side
FREE_AT = dict[str, Instr]()  # by side
for _side, _peer, _to in (("cube", "aiv", "C2V"), ("vector", "aic", "V2C")):
    _queue = _family("queue", _side, _to, "hand tiles to the other side of the core, in order")
    _queue.row(
        f"talloc_to_{_peer}",
        f"entry = a view of the next free {_to} slot in global memory",
        body=meaning.ALLOCATE_TO,
        order=Allocate(),
        cxx=_NO_ENTRY,
        results=Result("entry", "view"),
        text=f"{_QUEUE} {{}} -> results",
        profiles=NPU,
        pipe="MTE3",
        subject="entry",
        rules=attr_in("split", *"012"),
        notes=(_LOWERED.format("talloc"), _GM_ONLY_A2A3),
        cite="PTOAS docs/PTO_IR_manual.md, pto.talloc_to_aiv",
    )
    PUSH_FROM[_side] = _queue.row(
        f"tpush_to_{_peer}",
        f"copy the tile into the next free {_to} slot, or pass an entry, and signal",
        body=meaning.PUSH_TO,
        order=Push(),
        cxx=_CALL.format("TPUSH", *_OF_TILE),
        operands=(read("tile", "tile or view"), *((_SUB,) if _side == "vector" else ())),
        text=f"( $tile : types ) {_QUEUE} {_SUB_TEXT if _side == 'vector' else ''} {{}}",
        profiles=NPU,
        pipe=_PUSHED,
        subject="tile",
        rules=(
            in_role("tile", "acc" if _side == "cube" else "vec").on(NPU),
            _split_halves.on("a5"),
            _plain_slot.on("a2a3"),
            *((_own_half,) if _side == "vector" else ()),
        ),
        notes=(_LOWERED.format("tpush"), _GM_ONLY_A2A3),
        cite="PTOAS docs/PTO_IR_manual.md, pto.tpush_to_aiv",
    )
for _side, _peer, _from in (("vector", "aic", "C2V"), ("cube", "aiv", "V2C")):
    _queue = _family("queue end", _side, _from, "take tiles of the other side of the core in order")
    POP_AT[_side] = _queue.row(
        f"tpop_from_{_peer}",
        f"tile = the next full {_from} slot",
        body=meaning.POP_FROM,
        order=Pop(),
        cxx=_CALL.format("TPOP", *_OF_TILE),
        operands=(*VALID, *((_SUB,) if _side == "vector" else ())),
        results=Result("tile", "tile or view"),
        text=f"<? ( $valid_row , $valid_col ) > {_QUEUE}"
        f" {_SUB_TEXT if _side == 'vector' else ''} {{}} -> results",
        profiles=NPU,
        pipe=_POPPED[_side],
        subject="tile",
        rules=(
            in_role("tile", "vec" if _side == "vector" else "mat").on(NPU),
            _dynamic_valid,
            *((_own_half,) if _side == "vector" else ()),
        ),
        notes=(_LOWERED.format("tpop"), _GM_ONLY_A2A3),
        cite="PTOAS docs/PTO_IR_manual.md, pto.tpop_from_aic",
    )
    FREE_AT[_side] = _queue.row(
        f"tfree_from_{_peer}",
        f"give the {_from} slot of the last tpop back to the producer",
        body=meaning.FREE_FROM,
        order=Free(),
        cxx=_CALL.format("TFREE", "", ""),
        operands=read("entry?", "tile or view"),
        text=f"<? ( $entry : types ) > {_QUEUE} {{}}",
        profiles=NPU,
        pipe=_FREED[_side],
        subject="entry",
        notes=_LOWERED.format("tfree"),
        cite="PTOAS docs/PTO_IR_manual.md, pto.tfree_from_aic",
    )
