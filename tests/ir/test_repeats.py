"""Operations written like one before are not read again: nobody can tell but by the clock."""

from __future__ import annotations

import random

import pytest

from bench.bench_parse import program
from pto.core.errors import PtoError
from pto.ir.copied import same
from pto.ir.graph import Module, Source
from pto.ir.text.parser import Parser, parse
from pto.ir.text.repeats import ParserCache
from tests.ir.test_fuzz import PROGRAMS, mutate


class Forgetful(ParserCache):
    """Knows nothing, so that everything is read."""

    def read(self, p: Parser) -> None:
        return None


def outcome(text: str, repeats: ParserCache) -> Module | list[str]:
    try:
        parser = Parser(Source("text", text))
        parser.repeats = repeats
        module = parser.program()
    except PtoError as error:
        return [str(d) for d in error.diagnostics]
    return [str(d) for d in parser.findings] or module


def agree(text: str) -> bool:
    first, second = outcome(text, ParserCache()), outcome(text, Forgetful())
    if isinstance(first, list) or isinstance(second, list):
        return first == second
    pairs = zip(first.walk(), second.walk(), strict=True)
    return same(first.op, second.op) and all(
        (a.loc, a.segments, [r.name for r in a.results])
        == (b.loc, b.segments, [r.name for r in b.results])
        for a, b in pairs
    )


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_a_program_is_the_same(path):
    assert agree(path.read_text(encoding="utf-8"))


def test_findings_are_the_same():
    rng = random.Random(3)
    texts = [program(6), *(path.read_text(encoding="utf-8") for path in PROGRAMS)]
    for _ in range(300):
        assert agree(mutate(rng.choice((texts[0], rng.choice(texts))), rng))


@pytest.mark.parametrize(
    "lines",
    [
        # other types behind the same words
        ["%a = arith.constant 1 : i32", "%b = arith.constant 2 : i64", "call(%a)", "call(%b)"],
        # an optional clause behind the same words
        ["pto.barrier #pto.pipe<PIPE_V>", "pto.barrier #pto.pipe<PIPE_V> {a.b = 1}"] * 2,
        # a name that is not there, and one that is there twice
        ["%a = arith.constant 1 : i32", "%a = arith.constant 1 : i32"],
        ["%a = arith.addi %b, %b : i32", "%c = arith.addi %a, %b : i32"],
    ],
)
def test_what_differs_is_read(lines: list[str]):
    body = "\n".join(lines).replace("call(", "func.call @g(")
    assert agree(f"func.func @f() {{\n{body}\nreturn\n}}")


def test_an_alias_may_mean_something_else_later():
    tile = "!pto.tile_buf<vec, {}x64xf32>"
    lines = [
        "!t = " + tile.format(8),
        "func.func @f() {",
        "%a = pto.alloc_tile : !t",
        "return",
        "}",
    ]
    other = ["!t = " + tile.format(4), *(line.replace("@f", "@g") for line in lines[1:])]
    module = parse("\n".join([*lines, *other]))
    made = [op.results[0].type for op in module.walk() if op.results]
    assert [t.tile.rows for t in made] == [8, 4]  # type: ignore[attr-defined]
