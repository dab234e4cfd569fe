"""Mutated programs: any answer but a finding is a bug. A short, seeded run; `python -m
tests.ir.test_fuzz SECONDS SEED` goes on for longer."""

from __future__ import annotations

import random
import re
import sys
import time
from pathlib import Path

import pytest

from pto.core.errors import PtoError
from pto.ir.text.parser import parse
from pto.ir.text.printer import print_module
from pto.target.profile import PROFILES, profile
from pto.verify import verify

PROGRAMS = sorted((Path(__file__).parent.parent / "pto").glob("*/*.pto"))
_PIECES = re.compile(r"[%@#!^]?[\w.$]+|\s+|.", re.DOTALL)
_SIGNS = '{ } ( ) < > [ ] , : = -> ? // {} %a %0 @f "x" -1 0x7f 1e400 99999999999999999999 \x00 é'
_NAMES = "pto.tadd func.func scf.for ins( outs( index f32 i8 attributes true dense<1> loc( ^bb0:"
_TYPES = "!pto.ptr< #pto< !pto.vreg<64xf32> !pto.tile_buf<vec,0x0xf32> array<i32:-1> #pto.pipe<V>"
_WORDS = [*_SIGNS.split(" "), *_NAMES.split(" "), *_TYPES.split(" ")]


def mutate(text: str, rng: random.Random) -> str:
    pieces = _PIECES.findall(text)
    for _ in range(rng.choice((1, 1, 2, 3, 8))):
        at = rng.randrange(len(pieces)) if pieces else 0
        choice = rng.randrange(6)
        if choice == 0:
            del pieces[at : at + 1]
        elif choice == 1 and pieces:
            pieces[at] = rng.choice(_WORDS)
        elif choice == 2:
            pieces.insert(at, rng.choice(_WORDS))
        elif choice == 3 and pieces:
            pieces[at] = rng.choice(pieces)
        elif choice == 4:
            del pieces[at : at + rng.randrange(30)]
        else:
            del pieces[at + rng.randrange(200) :]
    return "".join(pieces)


def exercise(text: str, rng: random.Random) -> None:
    """Read, judge, print and read again; only findings may come out."""
    try:
        module = parse(text, "fuzz")
        found = verify(module, profile(rng.choice(PROFILES)))
    except PtoError as error:
        assert error.diagnostics
        return
    if any(finding.severity == "error" for finding in found):
        print_module(module)  # a wrong program prints too; what it prints may be as wrong
        return
    parse(print_module(module), "printed")
    parse(print_module(module, generic=True), "generic")


def run(count: int, seed: int, seconds: float = 1e9) -> int:
    rng = random.Random(seed)
    texts = [path.read_text(encoding="utf-8") for path in PROGRAMS]
    stop = time.monotonic() + seconds
    for n in range(count):
        if time.monotonic() > stop:
            return n
        exercise(mutate(rng.choice(texts), rng), rng)
    return count


@pytest.mark.parametrize(
    ("operation", "code"),
    [
        ('"pto.barrier"() {pipe = #pto.pipe<PIPE_ALL>} : () -> (index)', "PTO-T028"),
        ("%x = arith.addi %n, %n overflow<MLIR, nuw> : i32", "PTO-P025"),
        (
            '%x = "arith.addi"(%n, %n) {overflowFlags = #arith.overflow<MLIR>} : (i32, i32) -> i32',
            "PTO-P025",
        ),
    ],
    ids=["a result that there is not", "a flag that there is not", "the same in generic form"],
)
def test_what_long_runs_have_found(operation: str, code: str) -> None:
    text = f"module {{\n  func.func @f(%n: i32) {{\n    {operation}\n    return\n  }}\n}}\n"
    try:
        found = verify(parse(text), profile("a5"))
    except PtoError as error:
        found = error.diagnostics
    assert [finding.code for finding in found] == [code]


def test_mutated_programs_get_findings_only() -> None:
    assert run(600, seed=1) == 600


if __name__ == "__main__":
    print(run(10**9, int(sys.argv[2]), float(sys.argv[1])), "inputs")
