"""Vector instructions of a2a3 by pointer, as a compiler writes them below tiles: `pto.ub.vadd`."""

from __future__ import annotations

from pto.isa.meaning.vector import raw as meaning
from pto.isa.row.instr import Operand, read, write
from pto.isa.rules.vector import vector_family

_CITE = "PTOAS include/PTO/IR/VPTOUbOps.td"
RAW = vector_family(
    "raw vector",
    "repeats of eight 32-byte blocks of UB; strides count blocks; lanes by the mask",
    scope="",
    text="$operands {} : types",
    profiles="a2a3 a5",
    cite=_CITE,
    cost="lane",
)
_NOTES = ("on a5 the compiler drops it: it does nothing there",)


_DST, _SRC = write("dst", "ub pointer"), read("src", "ub pointer")


def _strides(*names: str) -> tuple[Operand, ...]:
    blocks = [read(f"{n}BlockStride", "i64") for n in names]
    return (read("repeat", "i64"), *blocks, *(read(f"{n}RepeatStride", "i64") for n in names))


def _add(name: str, words: str, body: object, *operands: Operand) -> None:
    RAW.row(
        f"ub.{name}",
        words,
        body=body,
        operands=operands,
        text=None if operands else "{}",
        subject=None if _DST in operands else "",
        notes=_NOTES,
    )


_BOTH = (read("src0", "ub pointer"), read("src1", "ub pointer"))
_WORDS = {
    "vadd": "dst = src0 + src1",
    "vsub": "dst = src0 - src1",
    "vmul": "dst = src0 * src1",
    "vdiv": "dst = src0 / src1",
    "vmax": "dst = the larger of src0 and src1",
    "vmin": "dst = the smaller of src0 and src1",
    "vand": "dst = src0 & src1",
    "vor": "dst = src0 | src1",
    "vaddrelu": "dst = max(src0 + src1, 0)",
    "vnot": "dst = ~src",
    "vabs": "dst = |src|",
    "vrelu": "dst = max(src, 0)",
    "vexp": "dst = e to the power src",
    "vln": "dst = natural logarithm of src",
    "vsqrt": "dst = square root of src",
    "vrsqrt": "dst = 1 / square root of src",
    "vadds": "dst = src + the element of the low bits of shiftDist",
    "vmuls": "dst = src * the element of the low bits of shiftDist",
    "vmaxs": "dst = the larger of src and the element of the low bits of shiftDist",
    "vmins": "dst = the smaller of src and the element of the low bits of shiftDist",
    "vshl": "dst = src << shiftDist",
    "vshr": "dst = src >> shiftDist",
}
for _name, _body in meaning.BINARY.items():
    _add(_name, _WORDS[_name], _body, _DST, *_BOTH, *_strides("dst", "src0", "src1"))
for _name, _body in meaning.UNARY.items():
    _add(_name, _WORDS[_name], _body, _DST, _SRC, *_strides("dst", "src"))
for _name, _body in meaning.SCALAR.items():
    _shift = read("shiftDist", "i64")
    _add(_name, _WORDS[_name], _body, _DST, _SRC, _shift, *_strides("dst", "src"))
_add(
    "vdup",
    "dst = the element of the low bits of scalar, in every lane",
    meaning.VDUP,
    _DST,
    read("scalar", "i64"),
    *_strides("dst", "src"),
)
_add(
    "set_mask",
    "lanes of a repeat that take part, 128 bits; or how many elements, where the mask counts",
    meaning.SET_MASK,
    read("mask0", "i64"),
    read("mask1", "i64"),
)
_add("set_mask_count", "from here on the mask counts elements", meaning.SET_MASK_COUNT)
_add("set_mask_norm", "from here on the mask has a bit for each lane", meaning.SET_MASK_NORM)
