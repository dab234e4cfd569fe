"""Random programs from the rows: one instruction on tiles of random types, shapes and regions.

A program that the verifier accepts runs on both engines to the same bits, or ends on both with the
same finding. `python -m tests.random_programs 10000 [SEED]` runs many, and says how many.
"""

from __future__ import annotations

import random
import re
import sys
import traceback
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from pto.core.dtypes import dtype
from pto.core.errors import PtoError
from pto.ir.graph import Module
from pto.ir.text.parser import parse
from pto.isa.row.enums import kinds_of
from pto.isa.row.instr import Attr, Instr, Operand
from pto.isa.table import rows
from pto.run.launch.host import launch
from pto.target.profile import profile as find_profile
from pto.verify import verify

PROFILES = ("cpu", "a2a3", "a5")
_INTEGERS = ("i8", "ui8", "i16", "ui16", "i32", "ui32", "i64", "ui64")
_TYPES = (*_INTEGERS, "f16", "bf16", "f32", "f8E4M3FN", "f8E5M2")
_KINDS = ("tile", "scalar", "tile or scalar")
ROWS = [
    row
    for row in rows()
    if row.family.section == "tile"
    and row.body is not None
    and row.operands
    and not row.results
    and all(o.kind in _KINDS and not o.variadic for o in row.operands)
]


@dataclass
class Draft:
    """A program under construction: lines, parameters, and the arrays they get."""

    rng: random.Random
    profile: str
    lines: list[str] = field(default_factory=list[str])
    after: list[str] = field(default_factory=list[str])
    params: list[str] = field(default_factory=list[str])
    arrays: list[np.ndarray[Any, Any]] = field(default_factory=list[Any])

    def tile(self, operand: Operand, elem: str, shape: tuple[int, int]) -> tuple[str, str]:
        """A tile of its own, filled from an array, and stored to it where it is written."""
        n, (height, width) = len(self.params), shape
        valid = shape if self.rng.random() < 0.6 else tuple(self.rng.randint(1, s) for s in shape)
        is_open = self.rng.random() < 0.3
        said = "?x?" if is_open else f"{valid[0]}x{valid[1]}"
        type = f"!pto.tile_buf<vec, {height}x{width}x{elem}, valid={said}>"
        view = f"!pto.tensor_view<{valid[0]}x{valid[1]}x{elem}>"
        where = f"valid_row = %n{valid[0]} valid_col = %n{valid[1]} " if is_open else ""
        self.params.append(f"%p{n}: !pto.ptr<{elem}, gm>")
        self.arrays.append(self._array(elem, valid[0] * valid[1]))
        self.lines += [
            f"%v{n} = pto.make_tensor_view %p{n}, shape = [%n{valid[0]}, %n{valid[1]}],"
            f" strides = [%n{valid[1]}, %n1] : {view}",
            f"%t{n} = pto.alloc_tile {where}: {type}",
            f"pto.tload ins(%v{n} : {view}) outs(%t{n} : {type})",
        ]
        if operand.role in ("out", "inout"):
            self.after.append(f"pto.tstore ins(%t{n} : {type}) outs(%v{n} : {view})")
        return f"%t{n}", type

    def scalar(self, elem: str) -> tuple[str, str]:
        n, kind = len(self.lines), dtype(elem)
        number = self.rng.choice((0, 1, 2, 3, 7)) * (1 if not kind.is_signed else self._sign())
        text = f"{number}.5" if kind.is_float else f"{number}"
        self.lines.append(f"%s{n} = arith.constant {text} : {elem}")
        return f"%s{n}", elem

    def _sign(self) -> int:
        return self.rng.choice((1, -1))

    def _array(self, elem: str, count: int) -> np.ndarray[Any, Any]:
        kind = dtype(elem)
        bits = np.random.default_rng(self.rng.getrandbits(32))
        if self.rng.random() < 0.3:  # any bits: NaN, infinity, the ends of a range
            return bits.integers(0, 1 << kind.bits, count, kind.storage.type).view(kind.numpy)
        return bits.integers(-9 if kind.is_signed else 0, 9, count).astype(kind.numpy)


def text_of(row: Instr, rng: random.Random, profile: str) -> tuple[str, list[Any]]:
    """A program with one instruction, and the arrays to run it on."""
    draft = Draft(rng, profile)
    known = [n for t in row.types.get(profile, ()) for n in _TYPES if dtype(n).name == t]
    elem = rng.choice(known or _TYPES)
    shape = (rng.choice((1, 4, 8, 16)), rng.choice((8, 16, 32, 64, 128)))
    values: list[tuple[str, str]] = []
    for operand in row.operands:
        if operand.optional and rng.random() < 0.5:
            continue
        own = elem if rng.random() < 0.85 else rng.choice(_TYPES)
        size = shape if rng.random() < 0.8 else rng.choice(((1, 64), (shape[0], 32), (16, 1)))
        is_tile = operand.kind == "tile" or (operand.kind != "scalar" and rng.random() < 0.3)
        values.append(draft.tile(operand, own, size) if is_tile else draft.scalar(own))
    names, types = zip(*values, strict=True)
    attrs = ", ".join(a for spec in row.attrs if (a := _attribute(spec, rng)))
    op = f'"{row.name}"({", ".join(names)}) {{{attrs}}} : ({", ".join(types)}) -> ()'
    used = sorted({1, *map(int, re.findall(r"%n(\d+)", " ".join(draft.lines)))})
    numbers = [f"%n{n} = arith.constant {n} : index" for n in used]
    body = "\n    ".join([*numbers, *draft.lines, op, *draft.after])
    text = (
        f'module attributes {{pto.target_arch = "{profile}"}} {{\n'
        f"  func.func @f({', '.join(draft.params)}) {{\n    {body}\n    return\n  }}\n}}\n"
    )
    return text, draft.arrays


def _attribute(spec: Attr, rng: random.Random) -> str:
    kinds = kinds_of(spec.kind)
    if not kinds or not (spec.required or rng.random() < 0.5):
        return ""
    word = rng.choice(spec.values or kinds[0].words)
    kind = next(k for k in kinds if word in k.words)
    return f"{spec.name} = {kind.spell(word)}"


def outcome(module: Module, arrays: list[Any], engine: str) -> tuple[str, Any]:
    """What a run gives: bytes, any NaN as good as another, or the code of its finding."""
    own = [a.copy() for a in arrays]
    try:
        with np.errstate(all="ignore"):
            launch(module, args=own, engine=engine, check=False)
    except PtoError as error:
        return "finding", error.code
    for array in own:
        if (nan := array != array).any():
            array[nan] = np.nan
    return "bytes", [a.tobytes() for a in own]


def attempt(seed: int) -> tuple[str, str]:
    """One program: what became of it, and its text where that is wrong."""
    rng = random.Random(seed)
    row, profile = rng.choice(ROWS), rng.choice(PROFILES)
    text, arrays = text_of(row, rng, profile)
    try:
        module = parse(text)
        if any(d.severity == "error" for d in verify(module, find_profile(profile))):
            return "refused", ""
        first, second = (outcome(module, arrays, e) for e in ("reference", "jit"))
    except PtoError:
        return "refused", ""
    except Exception:
        return "crash", f"{text}\n{traceback.format_exc(limit=-4)}"
    if first != second:
        shown = [o if o[0] == "finding" else "bytes" for o in (first, second)]
        return "disagree", f"{text}\n{shown}"
    return ("agree" if first[0] == "bytes" else f"both {first[1]}"), ""


if __name__ == "__main__":
    import warnings

    warnings.simplefilter("ignore")
    counts: Counter[str] = Counter()
    accepted, seed = int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 0
    while sum(counts.values()) - counts["refused"] < accepted:
        what, why = attempt(seed)
        counts[what] += 1
        if why:
            print(f"seed {seed}: {what}\n{why}", flush=True)
        seed += 1
    print(dict(counts), f"seeds up to {seed}")
