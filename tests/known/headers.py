"""Calls in short notation, and facts about the headers of the chips (pto-isa of August 2026).

A fact is one static assertion, one shift that cuts an address, or one operand that a branch of a
header ignores, in our own words. Facts are written from the headers, without looking at the rules:
`test_headers.py` checks that each one with a code is found, and that a call close by is not.
`headers_*.py` hold the facts, one file a group of instructions.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from math import prod

_LAYOUTS = {
    "ND": "",
    "DN": ", blayout=col_major",
    "NZ": ", blayout=col_major, slayout=row_major",
    "ZN": ", slayout=col_major",
    "ZZ": ", slayout=row_major",
    "ACC": ", blayout=col_major, slayout=row_major, fractal=1024",
    "SCALE_A": ", slayout=row_major, fractal=32",
    "SCALE_B": ", blayout=col_major, slayout=col_major, fractal=32",
}


@dataclass(frozen=True)
class Fact:
    """What a header says, a call that breaks it, and one close by that does not.

    Without a code the fact needs no rule, for the reason `why`.
    """

    where: str  # file:line of the header, more than one with commas
    says: str
    profiles: str = ""
    wrong: str = ""
    right: str = ""
    code: str = ""
    severity: str = "error"
    why: str = ""


def program(call: str) -> str:
    """The text of a function with one call.

    `textract mat:64x64xf16:NZ 16 0 -> left:16x32xf16:NZ {mode = ..}`: sources, an arrow, results
    and attributes. A word of digits is an index, `q:i64` a scalar, `gm:16x32xf16` a view of global
    memory (`:DN` with columns that are contiguous, `:NZ` with boxes, `:pitch=64` with rows so far
    apart), all else a tile: role, shape, layout, then `valid=..`, `compact=..` or `fractal=..`, and
    `@4096` for its address.
    """
    body, _, attributes = call.partition(" {")
    name, *words = body.split()
    arrow = words.index("->")
    lines: list[str] = []
    operands = [_operand(word, n, lines) for n, word in enumerate(words) if word != "->"]
    sources, results = operands[:arrow], operands[arrow:]
    inside, after = ("", "{" + attributes if attributes else "")
    if name == "tcvt":  # its attributes follow the first operand
        inside, after = (" " + after if after else "", "")
    names = [f"%{n}" for n, _ in sources]
    names[0] += inside
    types = ", ".join(type for _, type in sources)
    outs = ", ".join(f"%{n}" for n, _ in results), ", ".join(type for _, type in results)
    lines.append(
        f"pto.{name} ins({', '.join(names)} : {types}) outs({outs[0]} : {outs[1]}) {after}"
    )
    return "func.func @k() {\n" + "\n".join(lines) + "\nreturn\n}"


def _operand(word: str, n: int, lines: list[str]) -> tuple[str, str]:
    """Name and type of an operand; the lines that make it are added to `lines`."""
    name = f"v{n}"
    if word.lstrip("-").isdigit():
        lines.append(f"%{name} = arith.constant {word} : index")
        return name, "index"
    word, _, address = word.partition("@")
    kind, *rest = word.split(":")
    if len(rest) == 1 and "x" not in rest[0]:
        value = "1.0" if rest[0].startswith(("f", "bf")) else "1"
        lines.append(f"%{name} = arith.constant {value} : {rest[0]}")
        return name, rest[0]
    if kind == "gm":
        return name, _view(name, rest, lines)
    layout = next((_LAYOUTS[r] for r in rest if r in _LAYOUTS), "")
    more = "".join(f", {r}" for r in rest[1:] if "=" in r)
    type = f"!pto.tile_buf<{kind}, {rest[0]}{layout}{more}>"
    at = ""
    if address:
        lines.append(f"%at{n} = arith.constant {int(address, 0)} : i64")
        at = f" addr = %at{n}"
    lines.append(f"%{name} = pto.alloc_tile{at} : {type}")
    return name, type


def _view(name: str, rest: list[str], lines: list[str]) -> str:
    """A view without gaps: rows, or columns in DN, follow each other."""
    sizes, elem = re.fullmatch(r"((?:\d+x)+)(.+)", rest[0]).groups()  # type: ignore[union-attr]
    extents = [int(size) for size in sizes[:-1].split("x")]
    strides = [prod(extents[n + 1 :]) for n in range(len(extents))]
    if "DN" in rest:
        strides[-2:] = [1, extents[-2]]
    for pitch in (word.removeprefix("pitch=") for word in rest if word.startswith("pitch=")):
        strides[-2] = int(pitch)
    for n in {0, *extents, *strides}:
        lines.append(f"%{name}c{n} = arith.constant {n} : index")
    lines.append(f"%{name}a = arith.constant 0 : i64")
    lines.append(f"%{name}p = pto.castptr %{name}a : i64 -> !pto.ptr<{elem}>")
    shape, apart = (f"[{', '.join(f'%{name}c{n}' for n in s)}]" for s in (extents, strides))
    layout = next(
        (f" {{layout = #pto.layout<{w.lower()}>}}" for w in rest if w in ("DN", "NZ")), ""
    )
    whole, part = (f"!pto.{k}<{rest[0]}>" for k in ("tensor_view", "partition_tensor_view"))
    lines.append(
        f"%{name}v = pto.make_tensor_view %{name}p, shape = {shape}, strides = {apart}{layout}"
        f" : {whole}"
    )
    offsets = ", ".join([f"%{name}c0"] * len(extents))
    lines.append(
        f"%{name} = pto.partition_view %{name}v, offsets = [{offsets}], sizes = {shape}"
        f" : {whole} -> {part}"
    )
    return part
