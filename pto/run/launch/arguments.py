"""Arguments from text: `x=data.npy`, `x=rand:1024xf32`, `x=zeros:16x64xf16`, `n=17`.

Also the size of the array that a kernel needs, where its views state it.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Container, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from pto.core.dtypes import F32, F64, DType, dtype, encode
from pto.core.errors import PtoError, fail, nearest
from pto.ir.graph import Operation, Value
from pto.ir.text.types import type_text
from pto.isa.handle.view import MAKE_TENSOR_VIEW
from pto.isa.row import types as t
from pto.isa.row.attributes import integer
from pto.plan.calls import SUBBLOCK, FunctionNames, names_of, taken
from pto.verify import pipes

MAX_BYTES = 1 << 32
_NONE: Mapping[str, int] = {}
_RECKONED: Mapping[str, Callable[[int, int], int]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "max": max,
    "min": min,
}
_RANK = 32  # dimensions of a NumPy array, of any version
_NPY = b"\x93NUMPY"  # how a .npy file begins
_INTEGER = re.compile(r"[-+]?(0|[1-9]\d*|0[xX][\da-fA-F]+)")
_SPEC = re.compile(r"(rand|zeros|ones|range|full\(([-+.\w]+)\))(?::((?:\d+x)*)([!\w.]+))?")


@dataclass(frozen=True, slots=True)
class LaunchParameter:
    """One parameter of a kernel: name, type and size, as messages show it."""

    name: str
    type: t.Type
    elements: int | None  # elements that its views span; None if the program does not state it

    @property
    def is_array(self) -> bool:
        return isinstance(self.type, t.Ptr | t.MemRef)

    @property
    def dtype(self) -> DType | None:
        elem = getattr(self.type, "elem", self.type)
        return elem.dtype if isinstance(elem, t.Scalar) else None

    def __str__(self) -> str:
        size = f" of at least {self.elements:,} elements" if self.elements else ""
        return f"{self.name}: {type_text(self.type)}{size}"


def parameters(*functions: Operation, numbers: Mapping[str, int] = _NONE) -> list[LaunchParameter]:
    """The parameters of a launch: those of one function, or of all functions that run together.

    `numbers`: integer arguments by name, for views with sizes that depend on them.
    """
    by_name = {name: LaunchParameter(name, type, None) for name, type in taken(functions)}
    for function in functions:
        args = function.regions[0].block.args
        for a, name in zip(args, names_of(args, list(by_name)), strict=True):
            reach = _reach(a, function, FunctionNames(), numbers)
            if reach is not None:
                most = max(reach, by_name[name].elements or 0)
                by_name[name] = LaunchParameter(name, by_name[name].type, most)
    return list(by_name.values())


def integers(texts: Mapping[str, str]) -> dict[str, int]:
    """The numbers among the words of a command line: `n=1024`, `n=0x400`."""
    return {name: int(text, 0) for name, text in texts.items() if _INTEGER.fullmatch(text)}


def _reach(
    arg: Value, function: Operation, names: FunctionNames, numbers: Mapping[str, int]
) -> int | None:
    """The elements that views of known size span; None if no view refers to the argument."""
    if isinstance(arg.type, t.MemRef):
        sizes = [d for d in arg.type.shape if d is not None]
        return int(np.prod(sizes)) if len(sizes) == len(arg.type.shape) else None
    if not isinstance(arg.type, t.Ptr):
        return None
    extents = [_spanned(op, arg, numbers) for op in function.walk()]
    extents += [_slots(op, arg) for op in function.walk()]
    for op in function.walk():
        callee = names.find(op.attrs.get("callee"), function)
        inner = callee.regions[0].block.args if callee is not None else []
        pairs = zip(op.operands, inner, strict=False)
        extents += [
            _reach(callee_arg, callee, names, _NONE)
            for v, callee_arg in pairs
            if callee and v is arg
        ]
    return max((n for n in extents if n is not None), default=None)


def _spanned(op: Operation, arg: Value, numbers: Mapping[str, int]) -> int | None:
    if op.row is not MAKE_TENSOR_VIEW or not op.operands or op.operands[0] is not arg:
        return None
    shape = [_number(v, numbers) for v in op.group("shape")]
    strides = [_number(v, numbers) for v in op.group("strides")]
    pairs = [
        (n, s) for n, s in zip(shape, strides, strict=False) if n is not None and s is not None
    ]
    return 1 + sum((n - 1) * s for n, s in pairs) if len(pairs) == len(shape) else None


def _number(value: Value, numbers: Mapping[str, int]) -> int | None:
    """The value as an integer: a constant, an argument, or computed from these; None if unknown."""
    maker = value.maker
    if maker is None:
        return numbers.get(value.name)
    reckon = _RECKONED.get(maker.traits.operator)
    if maker.traits.same_number:
        return _number(maker.operands[0], numbers)
    if reckon is None or len(maker.operands) != 2:
        return value.number
    a, b = (_number(v, numbers) for v in maker.operands)
    return None if a is None or b is None else reckon(a, b)


def _slots(op: Operation, arg: Value) -> int | None:
    """The elements that the slots of a queue occupy in this argument."""
    if op.row.attr("slot_size") is None:
        return None
    for name in ("gm_slot_buffer", "gm_slot_tensor", "gm_addr"):
        for value in op.group(name):
            maker = value.maker
            source = maker.operands[0] if maker is not None and maker.operands else value
            if source is arg:
                count, size = pipes.slots(op)
                ways = 2 if integer(op.attrs, "dir_mask") == 3 else 1
                elem = arg.type.elem if isinstance(arg.type, t.Ptr) else None
                kind = elem.dtype if isinstance(elem, t.Scalar) else None
                return -(-ways * count * size // (kind.itemsize if kind else 1))
    return None


def build(params: Iterable[LaunchParameter], texts: Mapping[str, str], seed: int) -> list[Any]:
    """A value for each parameter; missing parameters are reported with their types."""
    params = list(params)
    texts = {SUBBLOCK: "0", **texts} if any(p.name == SUBBLOCK for p in params) else texts
    require_names({p.name: str(p) for p in params}, texts)
    if seed < 0:
        raise fail("PTO-U036", f"a seed must be 0 or more, not {seed}")
    rng = np.random.default_rng(seed)
    return [_value(p, texts[p.name], rng) for p in params]


def require_names(
    described: Mapping[str, str], texts: Mapping[str, str], optional: Container[str] = ()
) -> None:
    """Check that every given name is a parameter and that no parameter is missing."""
    for name in texts:
        if name not in described:
            advice = nearest(name, described)
            raise fail("PTO-U034", f"the kernel has no parameter {name}", help=advice)
    missing = [words for n, words in described.items() if n not in texts and n not in optional]
    if missing:
        listed = "; ".join(missing)
        raise fail("PTO-U035", f"missing arguments: {listed}", help="--arg NAME=VALUE for each")


def _value(p: LaunchParameter, text: str, rng: np.random.Generator) -> Any:
    if text.endswith((".npy", ".npz")):  # an archive has its own message
        return _loaded(p, text)
    if not p.is_array:
        return _scalar(p, text)
    match = _SPEC.fullmatch(text)
    if match is None:
        raise fail(
            "PTO-U036",
            f"{p.name}: `{text}` is not an array",
            help="a .npy file, rand:1024xf32, zeros:16x64xf16, ones, range or full(1.5)",
        )
    last = match[4] or ""  # an element type; or one more size, and the parameter has the type
    kind = dtype(last) if last and not last.isdecimal() else p.dtype
    if kind is None:
        raise fail("PTO-U036", f"{p.name}: `{text}` needs an element type, as in rand:1024xf32")
    sizes = (match[3] or "").split("x") + ([last] if last.isdecimal() else [])
    shape = [int(n) for n in sizes if n] or [p.elements or 0]
    count = math.prod(shape)
    if count <= 0:
        raise fail(
            "PTO-U036",
            f"{p.name}: `{text}` needs a size: the program does not state the size of {p.name}",
            help=f"for example {match[1]}:1024x{kind.name}",
        )
    if len(shape) > _RANK:
        raise fail("PTO-U036", f"{p.name}: {len(shape)} dimensions are more than {_RANK}")
    if count * kind.itemsize > MAX_BYTES:
        raise fail("PTO-U036", f"{p.name}: {count:,} elements are more than {MAX_BYTES:,} bytes")
    try:
        return _filled(match[1], match[2], kind, count, rng).reshape(shape)
    except ValueError:
        raise fail("PTO-U036", f"{p.name}: `{match[2]}` is not a number of {kind.name}") from None


def _filled(
    word: str, value: str | None, kind: DType, count: int, rng: np.random.Generator
) -> npt.NDArray[Any]:
    values = count * kind.values_per_item
    if word == "rand":
        numbers = (
            rng.standard_normal(values)
            if kind.is_float
            else rng.integers(-64 * kind.is_signed, 64, values)
        )
    elif word == "range":
        numbers = np.arange(values)
    else:
        numbers = np.full(values, {"zeros": 0.0, "ones": 1.0}.get(word) or _fitting(value, kind))
    wide = np.asarray(numbers, np.float64 if kind.is_float else np.int64)
    if kind in (F32, F64):  # NumPy rounds them itself
        return wide.astype(kind.numpy)
    return encode(kind, wide).view(kind.numpy)


def _fitting(text: str | None, kind: DType) -> float:
    """The number to fill an array with, if its type can hold it."""
    number = float(text or 0)
    if kind.is_float:
        fits = text in ("nan", "inf", "-inf") or abs(number) <= kind.max
    else:
        fits = number.is_integer() and kind.min <= number <= kind.max
    if not fits:
        raise ValueError
    return number


def _scalar(p: LaunchParameter, text: str) -> Any:
    try:
        return float(text) if p.dtype is not None and p.dtype.is_float else int(text, 0)
    except ValueError:
        raise fail("PTO-U036", f"{p.name}: `{text}` is no {type_text(p.type)}") from None


def _loaded(p: LaunchParameter, text: str) -> npt.NDArray[Any]:
    try:
        array = np.load(Path(text), allow_pickle=False)
    except OSError as error:
        reason = error.strerror or error
        raise fail("PTO-U037", f"{p.name}: cannot load {text}: {reason}") from None
    except Exception:  # a wrong file has many ways to fail NumPy, Python's parser, zip
        raise fail("PTO-U037", f"{p.name}: cannot load {text}: {_damage(Path(text))}") from None
    if not isinstance(array, np.ndarray):
        raise fail(
            "PTO-U037",
            f"{p.name}: {text} is an archive of several arrays",
            help="np.save(path, array) writes one",
        )
    if not p.is_array:
        raise fail("PTO-U036", f"{p.name} is a scalar, {text} is an array")
    return np.ascontiguousarray(array)


def _damage(path: Path) -> str:
    """Why NumPy cannot read a file."""
    with path.open("rb") as file:
        if file.read(len(_NPY)) != _NPY:
            return "it is not a .npy file, as np.save writes it"
        if b"'|O'" in file.read(1 << 10):
            return "it holds objects of Python, not numbers"
    return "the file is cut off or damaged"


def parse_args(words: Iterable[str]) -> dict[str, str]:
    """`["x=rand", "n=3"]` as a mapping."""
    out: dict[str, str] = {}
    for word in words:
        name, eq, value = word.partition("=")
        if not eq or not name or not value:
            raise PtoError(*fail("PTO-U038", f"`{word}` is not NAME=VALUE").diagnostics)
        out[name.lstrip("%")] = value
    return out
