"""Reordering of feature maps and filters of convolutions.

C++ has one TTRANS and one TLOAD, and ConvTiles with their order and sizes. The text has no such
type: here a tile is plain memory, and attributes give orders and sizes.
"""

from __future__ import annotations

from pto.isa.meaning.tile import convolution
from pto.isa.row.instr import Attr, read, scratch, write
from pto.isa.rules.paths import item_size
from pto.isa.rules.rule import Case, attr_at_least, in_role, rule_of, same_dtype
from pto.isa.rules.tile import NPU, tile_family
from pto.isa.tile.move import LOAD as _LOAD
from pto.isa.tile.rearrange import TRANSPOSE as _TRANSPOSE

_ORDERS = tuple(convolution.ORDERS)
_ATTRS = (
    Attr("src_order", "str", values=_ORDERS, required=True, meaning="order of src"),
    Attr("dst_order", "str", values=_ORDERS, required=True, meaning="order of dst"),
    Attr("n", "int", required=True, meaning="batches of a map, or filters"),
    Attr("c", "int", required=True, meaning="channels"),
    Attr("h", "int", required=True),
    Attr("w", "int", required=True),
    Attr("c0", "int", required=True, meaning="channels of a block, where an order has blocks"),
    Attr("g", "int", default=1, meaning="groups"),
    Attr("d", "int", default=1, meaning="depth"),
    Attr("pitch", "int", meaning="n from group to group of src, where it is not n"),
    Attr("room", "int", meaning="n that dst has places for, where it is not n"),
)
_RULES = tuple(attr_at_least(name, 1) for name in (*"nchwgd", "c0"))
_CPP = "PTOAS has no such operation: operands and attributes are those of C++ ConvTiles"
_COMMON = "i8 u8 i16 u16 i32 u32 f16 bf16 f32"

# Orders that the headers convert: TTrans.hpp, TLoad.hpp.
_BLOCKED = (("NCHW", "NC1HWC0"), ("GNCHW", "GNC1HWC0"))
_FILTERS = (("NC1HWC0", "FRACTAL_Z"), ("GNC1HWC0", "FRACTAL_Z"))
_TURNED = {
    "a5": (*_BLOCKED, *_FILTERS),
    "": (
        *(*_BLOCKED, *_FILTERS, ("NCDHW", "FRACTAL_Z_3D")),
        *(("NC1HWC0", "NCHW"), ("GNC1HWC0", "GNCHW")),
    ),
}
_SAME = (("NDC1HWC0", "NDC1HWC0"), ("FRACTAL_Z_3D", "FRACTAL_Z_3D"))
_LOADED = {
    "a2a3": _SAME,
    "": (
        *(*_SAME, ("NHWC", "NC1HWC0"), ("NCHW", "NC1HWC0"), ("NCHW", "FRACTAL_Z")),
        *(("NCDHW", "NDC1HWC0"), ("NCDHW", "FRACTAL_Z_3D")),
    ),
}


@rule_of("PTO-L061", "expects two orders that the target converts between")
def _orders(case: Case, pairs: dict[str, tuple[tuple[str, str], ...]]) -> str | None:
    orders = (case.word("src_order") or "", case.word("dst_order") or "")
    legal = pairs.get(case.profile.name, pairs[""])
    return None if orders in legal else f"{orders[0]} to {orders[1]} is not among them"


ORDER = tile_family(
    "convolution orders",
    "the elements of a feature map or of filters in another order",
    operands=(read("src"), scratch("tmp?", idle="cpu a5"), write("dst")),
    attrs=_ATTRS,
    rules=(*_RULES, same_dtype("src", "dst"), item_size, in_role("src", "vec").on(NPU)),
    cost=_TRANSPOSE.cost,
)
TURN = ORDER.row(
    "ttrans_conv",
    "dst = the elements of src in another order; zero for n and channels that src lacks",
    body=convolution.TRANSPOSE,
    npu=_COMMON,
    rules=_orders(_TURNED),
    notes=_CPP,
    cite="pto-isa docs/isa/TTRANS.md",
    phases={"a2a3": "V[S]"},
    cxx="- TTRANS, where tiles are ConvTiles",
)
ORDERED_LOAD = tile_family(
    "convolution loads",
    "dst = a map or filters in global memory, in dst's order",
    operands=(read("src", "view"), write("dst")),
    attrs=_ATTRS,
    pipe=_LOAD.pipe,
    rules=(*_RULES, same_dtype("src", "dst"), in_role("dst", "mat").on(NPU)),
    cost=_LOAD.cost,
)
LOAD_IN_ORDER = ORDERED_LOAD.row(
    "tload_conv",
    "dst = the elements of src in another order; zero for n and channels that src lacks",
    body=convolution.LOAD,
    a2a3=_COMMON,
    a5=_COMMON + " f8e4m3 f8e5m2",
    rules=_orders(_LOADED),
    notes=(_CPP, "src is memory in its own order, of five dimensions that may have gaps"),
    cite="pto-isa docs/isa/TLOAD.md",
    cxx="- TLOAD, where dst is a ConvTile of another order",
)
