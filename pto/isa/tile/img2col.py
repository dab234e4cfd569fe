"""TIMG2COL and the registers it reads.

C++ keeps the geometry of a convolution in a ConvTile, for which the text has no type: here the
source is a plain mat tile, and attributes give the geometry.
"""

from __future__ import annotations

from pto.isa.meaning.tile import img2col
from pto.isa.row.instr import Attr, read, write
from pto.isa.rules.rule import attr_at_least, in_layout, in_role, same_dtype
from pto.isa.rules.tile import NPU, tile_family

_FMATRIX = Attr(
    "fmatrix",
    "str",
    values=("FMATRIX_A_AUTO", "FMATRIX_B_AUTO", "FMATRIX_A_MANUAL", "FMATRIX_B_MANUAL"),
    default="FMATRIX_A_MANUAL",
    meaning="which register, and whether timg2col sets it itself",
)
_PADS = ("pad_left", "pad_right", "pad_top", "pad_bottom")
_PLANE = (
    Attr("h", "int", required=True, meaning="rows of the feature map"),
    Attr("w", "int", required=True, meaning="columns of the feature map"),
    *(Attr(name, "int", default=0) for name in _PADS),
)
_PLANE_RULES = (
    *(attr_at_least(name, 1) for name in ("h", "w")),
    *(attr_at_least(name, 0) for name in _PADS),
)
_SIZES = ("n", "d", "c1")
_STEPS = ("filter_h", "filter_w", "stride_h", "stride_w", "dilation_h", "dilation_w")

IMG2COL = tile_family(
    "img2col",
    "a feature map as a matrix; its product with the filters is the convolution",
    pipe="MTE1",
    rules=(*_PLANE_RULES, *(attr_at_least(name, 1) for name in (*_SIZES, *_STEPS))),
    cost="img2col",
)
CONVOLUTION_STATE = tile_family(
    "img2col state",
    "load a register that timg2col reads",
    operands=(read("src"),),
    text="ins( $src : types ) {}",
    pipe="S",
    subject="src",
    rules=(in_role("src", "mat").on(NPU),),
    cost="register",
)
_CPP_ONLY = "PTOAS has no such operation: operands and attributes are those of the C++ ConvTile"

IMG2COL.row(
    "timg2col",
    "row m = posM+r is (n,d,oh,ow), column k = posK+c is (c1,kh,kw,c0): dst[r,c] ="
    " src[n,d,c1, oh*stride_h+kh*dilation_h-pad_top, ow*stride_w+kw*dilation_w-pad_left, c0],"
    " pad_value outside",
    body=img2col.IMG2COL,
    operands=(read("src"), read("posM?", "int"), read("posK?", "int"), write("dst")),
    attrs=(
        Attr("format", "str", values=("NC1HWC0", "NDC1HWC0"), default="NC1HWC0"),
        Attr("n", "int", default=1, meaning="batches"),
        Attr("d", "int", default=1, meaning="depth, in NDC1HWC0"),
        Attr("c1", "int", required=True, meaning="groups of c0 channels; c0 is 32 bytes"),
        *_PLANE,
        *(Attr(name, "int", default=1) for name in _STEPS),
        Attr("channels", "int", meaning="channels that count; all c1*c0 when unwritten"),
        Attr("pad_value", "int", default=0, meaning="bits of the element outside the map"),
        _FMATRIX,
    ),
    a2a3="i8 f16 bf16 f32",
    a5="i8 u8 i16 u16 i32 u32 f16 bf16 f32",
    rules=(
        in_role("src", "mat").on(NPU),
        in_role("dst", "left").on(NPU),
        same_dtype("src", "dst"),
        in_layout("dst", "ZZ").on("a2a3").current,
        in_layout("dst", "NZ").on("cpu a5").current,
    ),
    notes=(
        _CPP_ONLY,
        "MANUAL: the registers, where the program has set them, win over the attributes",
        "m and k beyond the map, and channels beyond `channels`, give pad_value",
    ),
)
CONVOLUTION_STATE.row(
    "setfmatrix",
    "FMATRIX register = size and padding of the feature map",
    body=img2col.SET_FMATRIX,
    attrs=(*_PLANE, _FMATRIX),
    aliases="tsetfmatrix",
    rules=_PLANE_RULES,
    notes=_CPP_ONLY,
)
CONVOLUTION_STATE.row(
    "set_img2col_rpt",
    "repeat register = how often and how far apart timg2col repeats",
    body=img2col.SET_REPEAT,
    attrs=(
        Attr("repeat_stride", "int", default=0),
        Attr("repeat_time", "int", default=1),
        Attr("repeat_mode", "int", default=0),
        Attr("dst_stride", "int", default=0),
        _FMATRIX,
    ),
    aliases="tset_img2col_rpt",
    notes=_CPP_ONLY,
)
CONVOLUTION_STATE.row(
    "set_img2col_padding",
    "padding register = bits of the element outside the map",
    body=img2col.SET_PADDING,
    attrs=(Attr("pad_value", "int", default=0), _FMATRIX),
    aliases="tset_img2col_padding",
    notes=_CPP_ONLY,
)
