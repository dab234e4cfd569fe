"""Every tile row and type that compiles, beside the time the machine needs to move its bytes.

A case is the example of a row with other element types and more rows, repeated inside a compiled
loop. Its limit, taken in the same rounds, is a loop that reads and writes as many bytes and does
nothing else. Both are processor time. Worst first; `rows.png` shows all of them.
"""

from __future__ import annotations

import ctypes
import re
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np

from bench.measure import Rows
from pto.core.dtypes import DType
from pto.core.errors import PtoError
from pto.ir.text.example import example
from pto.ir.text.parser import parse
from pto.ir.text.types import parse_type, type_text
from pto.isa.row import types as t
from pto.isa.row.instr import Instr
from pto.isa.table import rows
from pto.plan.calls import entry_functions
from pto.run.jit.emit.instructions import compiled_as
from pto.run.jit.llvm import native
from pto.run.launch.call import Launch
from pto.run.launch.host import launch
from pto.run.launch.prepared import PreparedKernel
from pto.run.machine.device import Device
from pto.target.profile import choose

ROUNDS, LONG = 15, 8e-4  # and seconds of the long run of a round, at least
SIZE = 64  # rows of a tile whose example has 16
# Rows of floats that computing bounds, not bytes: the same bits everywhere take so many steps.
_EXACT = "an exact function: f64 inside, or f32 that was tried on all inputs"
EXPLAINED = dict.fromkeys(("tlog", "tpow", "tpows"), _EXACT)
_RNG = np.random.default_rng(3)
_TYPES = ("f32", "f16", "bf16", "i32", "u32", "i16", "u16", "i8", "u8", "i64", "u64")
_TYPED = re.compile(r"%(\w+)((?:, %\w+)*)(?: \{[^}]*\})? : ((?:[^()<>]|<[^<>]*>)*)\)")


@dataclass(frozen=True)
class Case:
    """One instruction on tiles of its own."""

    row: Instr
    kinds: str
    line: str
    operands: dict[str, t.Type]

    @property
    def name(self) -> str:
        return f"{self.row.mnemonic} {self.kinds}"

    def moved(self, *roles: str) -> int:
        """Bytes of the tiles of these roles."""
        named = {o.name for o in self.row.operands if o.role in roles}
        return sum(v.tile.nbytes for k, v in _tiles(self.operands) if k in named)

    def program(self) -> tuple[str, list[Any]]:
        """The text, and the arrays that go in: how often, then bytes of each tile, or scalars."""
        heads, before, args = ["%turns: index"], list[str](), list[Any]()
        address = 0
        for name, type in self.operands.items():
            if not isinstance(type, t.TileBuf):
                heads.append(f"%{name}: {type_text(type)}")
                args.append(3)
                continue
            size = type.tile.nbytes
            heads.append(f"%{name}_in: !pto.ptr<ui8>")
            args.append(_numbers(type.tile.dtype, size))
            before += _loaded(name, type_text(type), address, size)
            address += -(-size // 512) * 512
        body = "\n    ".join([*before, *_REPEATED, f"  {self.line}", "}"])
        head = (
            f'module attributes {{pto.target_arch = "a5"}} {{\n  func.func @f({", ".join(heads)})'
        )
        return f"{head} {{\n    {body}\n    return\n  }}\n}}\n", args


_REPEATED = (
    "%zero = arith.constant 0 : index",
    "%step = arith.constant 1 : index",
    "scf.for %i = %zero to %turns step %step {",
)


def _loaded(name: str, type: str, address: int, size: int) -> list[str]:
    raw, view = f"!pto.tile_buf<vec, 1x{size}xui8>", f"!pto.partition_tensor_view<1x{size}xui8>"
    seen = "!pto.tensor_view<?x?xui8>"
    return [
        f"%{name}_at = arith.constant {address} : i64",
        f"%{name}_n = arith.constant {size} : index",
        f"%{name}_1 = arith.constant 1 : index",
        f"%{name}_0 = arith.constant 0 : index",
        f"%{name} = pto.alloc_tile addr = %{name}_at : {type}",
        f"%{name}_raw = pto.alloc_tile addr = %{name}_at : {raw}",
        f"%{name}_v = pto.make_tensor_view %{name}_in, shape = [%{name}_1, %{name}_n],"
        f" strides = [%{name}_n, %{name}_1] : {seen}",
        f"%{name}_w = pto.partition_view %{name}_v, offsets = [%{name}_0, %{name}_0],"
        f" sizes = [%{name}_1, %{name}_n] : {seen} -> {view}",
        f"pto.tload ins(%{name}_w : {view}) outs(%{name}_raw : {raw})",
    ]


def _tiles(operands: dict[str, t.Type]) -> Iterator[tuple[str, t.TileBuf]]:
    return ((k, v) for k, v in operands.items() if isinstance(v, t.TileBuf))


def _numbers(kind: DType, size: int) -> Any:
    """Bytes of moderate numbers; integers are small, so that they may be indices."""
    many = size // kind.itemsize
    if kind.is_float:
        found = _RNG.uniform(0.5, 8, many).astype(kind.numpy)
    else:
        found = _RNG.integers(1, 30, many).astype(kind.numpy)
    return np.ascontiguousarray(found).view(np.uint8)


# ---- cases from rows


def cases() -> Iterator[Case]:
    """Of each row as many as it has types; of conversions, as there are pairs."""
    for row in rows():
        text = example(row)
        if row.family.section != "tile" or compiled_as(row) is None or not _TYPED.search(text):
            continue
        single = "16x" not in text and "%src" in text  # whose example has one row
        text = re.sub(r"\b1x" if single else r"\b16x", f"{SIZE}x", text)
        for kinds, line in _variants(row, text):
            operands = dict(_operands(line))
            kept = (t.TileBuf, t.Scalar)
            if all(isinstance(type, kept) for type in operands.values()):
                yield Case(row, kinds, line, operands)


def _variants(row: Instr, text: str) -> Iterator[tuple[str, str]]:
    if "a5" not in row.profiles:
        return
    own, names = dict(_operands(text)), [n for n in _TYPES if n in row.types.get("a5", _TYPES)]
    subject = own.get(row.subject)
    if not isinstance(subject, t.TileBuf):
        return
    have = _spelled(subject.tile.dtype.name)
    if row.types.get("a5") is not None:
        for name in names:
            yield name, re.sub(rf"(?<![a-wyz]){have}\b", _spelled(name), text)
        return
    source = own.get("src")
    if not isinstance(source, t.TileBuf):
        return
    first, apart = _spelled(source.tile.dtype.name), source.tile.dtype is not subject.tile.dtype
    for a in names:
        for b in names if apart else [a]:
            changed = text.replace(f"x{have}", "x@").replace(f"x{first}", f"x{_spelled(a)}")
            yield (f"{a} to {b}" if apart else a), changed.replace("x@", f"x{_spelled(b)}")


def _spelled(name: str) -> str:
    return "ui" + name[1:] if name[0] == "u" else name


def _operands(line: str) -> Iterator[tuple[str, t.Type]]:
    for found in _TYPED.finditer(line):
        names = re.findall(r"%(\w+)", found[0])
        listed = re.findall(r"!?[\w.]+(?:<[^<>]*>)?", found[3])
        yield from zip(names, map(parse_type, listed), strict=True)


# ---- measuring


def prepared(case: Case) -> Callable[[int], None] | None:
    """The case as a call with the number of turns; None where it is not legal or not compiled."""
    text, args = case.program()
    try:
        module = parse(text)
        if launch(module, args=[1, *args], engine="jit", profile="a5").left_out:
            return None
    except PtoError:
        return None
    profile = choose(profile_name="a5").profile
    ready = PreparedKernel(module, entry_functions(module, None), profile, engine="jit")
    device = Device(profile)
    return lambda turns: Launch.of(ready, device, [turns, *args], 1).now()


_MOVES = """
define void @moves(i64 %turns, ptr %from, ptr %to) {{
entry:
  br label %again
again:
  %t = phi i64 [ 0, %entry ], [ %t1, %ended ]
  br label %line
line:
  %i = phi i64 [ 0, %again ], [ %i1, %line ]
  %r = mul i64 %i, {read}
  %w = mul i64 %i, {written}
{body}
  %i1 = add i64 %i, 1
  %more = icmp ult i64 %i1, {steps}
  br i1 %more, label %line, label %ended
ended:
  call void asm sideeffect "", "~{{memory}}"()
  %t1 = add i64 %t, 1
  %on = icmp ult i64 %t1, %turns
  br i1 %on, label %again, label %done
done:
  ret void
}}
"""


@cache
def moves(read: int, written: int) -> Callable[[int], None]:
    """A loop that reads and writes so many lines of 64 bytes, and nothing else."""
    steps = max(1, min(read, written) if written and read else max(read, written) // 8)
    r, w, new = -(-read // steps), -(-written // steps), count()
    lines, last = list[str](), "zeroinitializer"
    for n in range(r):
        p, v, x = (f"%x{next(new)}" for _ in range(3))
        lines += [
            f"  {p}.b = getelementptr i8, ptr %from, i64 %r",
            f"  {p} = getelementptr i8, ptr {p}.b, i64 {64 * n}",
            f"  {v} = load <16 x i32>, ptr {p}, align 64",
            f"  {x} = or <16 x i32> {v}, {last}",
        ]
        last = x
    for n in range(max(w, 1)):
        p = f"%x{next(new)}"
        lines += [
            f"  {p}.b = getelementptr i8, ptr %to, i64 %w",
            f"  {p} = getelementptr i8, ptr {p}.b, i64 {64 * n}",
            f"  store <16 x i32> {last}, ptr {p}, align 64",
        ]
    text = _MOVES.format(body="\n".join(lines), steps=steps, read=64 * r, written=64 * w)
    code = native.target().code(text, ["moves"])
    kind = ctypes.CFUNCTYPE(None, ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p)
    call = kind(code.address("moves"))
    room = np.zeros(64 * (r + w + 2) * steps + 128, np.uint8)
    start = room.ctypes.data + -room.ctypes.data % 64
    return lambda turns: (call(turns, start, start + 64 * r * steps), code, room)[0]


def per_turn(*work: Callable[[int], Any]) -> list[float]:
    """Nanoseconds of one turn of each: the best long run less the best short one, over rounds in
    which they take turns."""
    turns: list[int] = []
    for call in work:
        n, one = 8, min(_seconds(call, 1) for _ in range(3))
        while n < 1 << 20 and min(_seconds(call, n + 1) for _ in range(2)) - one < LONG:
            n *= 4
        turns.append(n)
    long, short = ([float("inf")] * len(work) for _ in range(2))
    for _ in range(ROUNDS):
        for k, (call, n) in enumerate(zip(work, turns, strict=True)):
            long[k] = min(long[k], _seconds(call, n + 1))
            short[k] = min(short[k], _seconds(call, 1))
    return [(a - b) / n * 1e9 for a, b, n in zip(long, short, turns, strict=True)]


def _seconds(call: Callable[[int], Any], turns: int) -> float:
    start = time.thread_time()
    call(turns)
    return time.thread_time() - start


def measured(only: str = "") -> list[tuple[str, float, float]]:
    """(case, nanoseconds, nanoseconds of its limit), worst first."""
    found: list[tuple[str, float, float]] = []
    for case in cases():
        if not re.search(only, case.name):
            continue
        call = prepared(case)
        if call is None:
            continue
        lines = [-(-case.moved(*roles) // 64) for roles in (("in", "inout"), ("out", "inout"))]
        took, limit = per_turn(call, moves(*lines))
        found.append((case.name, took, limit))
    return sorted(found, key=lambda item: item[2] / item[1])


def picture(found: list[tuple[str, float, float]], to: Path) -> None:
    """How many cases are how far from their limits."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(9, 4.5), constrained_layout=True)
    far = [took / limit for _, took, limit in found][::-1]
    axes.semilogy(range(len(far)), far, ".", markersize=4)
    for times, style in ((1, "-"), (2, "--"), (20, ":")):
        axes.axhline(times, linestyle=style, linewidth=0.8, color="grey")
    axes.set(xlabel="cases: row and type", ylabel="times the bandwidth limit")
    for n in range(0, len(far), max(1, len(far) // 12)):
        axes.annotate(found[::-1][n][0], (n, far[n]), fontsize=6, rotation=45)
    figure.savefig(to, dpi=120)


def run(only: str = "") -> Rows:
    found = measured(only)
    picture(found, Path("rows.png"))
    near = sum(took <= 2 * limit for _, took, limit in found)
    far = [name for name, took, limit in found if took > 20 * limit]
    open_ = [name for name in far if not _why(name)]
    return [
        *(
            (name, took, f"ns, {took / limit:7.2f} x the limit{_why(name) if name in far else ''}")
            for name, took, limit in found
        ),
        ("cases", len(found), f"of which within 2x: {100 * near / max(1, len(found)):.0f} %"),
        ("beyond 20x", len(far), f"of which unexplained: {', '.join(open_) or 'none'}"),
    ]


def _why(name: str) -> str:
    row, kind, *_ = name.split()
    return f" ({EXPLAINED[row]})" if row in EXPLAINED and "f" in kind else ""


if __name__ == "__main__":
    for name, value, unit in run(*sys.argv[1:2]):
        print(f"{name:<32} {value:>12,.1f} {unit}")
