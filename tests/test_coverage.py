"""Our programs use every row and text pattern that a profile has, and break every rule."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path

from pto.core.errors import PtoError
from pto.ir.graph import Module
from pto.ir.text.parser import parse, parse_file
from pto.isa import table
from pto.isa.row.attributes import Str
from pto.isa.rules.rule import Case
from pto.target.library import library
from pto.target.profile import Profile, choose
from pto.target.profile import profile as find_profile
from tests.known.headers import program
from tests.known.test_headers import RULED

HERE = Path(__file__).parent / "pto"


@cache
def modules(folder: str) -> tuple[Module, ...]:
    found: list[Module] = []
    for path in sorted((HERE / folder).glob("*.pto")):
        try:
            found.append(parse_file(path))
        except PtoError:
            continue  # a program with a wrong syntax breaks no rule
    return tuple(found)


def broken_rules() -> set[tuple[str, str]]:
    """(code, id) of every rule that a bad program or a call against a header breaks."""
    broken: set[tuple[str, str]] = set()
    for module, profile in (*_bad_programs(), *_calls_against_headers(), *_static_regions()):
        for op in module.walk():
            if op.row is None:
                continue
            case = Case(op, profile)
            for rule in op.row.rules:
                if rule.profiles and profile.name not in rule.profiles:
                    continue
                if rule.test(case) is not None:
                    broken.add((rule.code, rule.id))
    return broken


def _bad_programs() -> Iterator[tuple[Module, Profile]]:
    for module in modules("bad"):
        arch = module.op.attrs.get("pto.target_arch")
        yield module, choose(target_arch=arch.value if isinstance(arch, Str) else None).profile


def _calls_against_headers() -> Iterator[tuple[Module, Profile]]:
    for fact, profile in RULED:
        yield parse(program(fact.wrong)), find_profile(profile)


def _static_regions() -> Iterator[tuple[Module, Profile]]:
    """A program for the rules of C++ kernels alone."""
    yield parse_file(HERE / "bad" / "headers_a2a3.pto"), library(find_profile("a2a3"))


def test_every_rule_is_broken_by_a_program() -> None:
    known = {(rule.code, rule.id) for row in table.rows() for rule in row.rules}
    assert known - broken_rules() == set()


def test_every_row_stands_in_a_good_program() -> None:
    used = {op.name for module in modules("good") for op in module.walk()}
    somewhere = {row.name for row in table.rows() if row.profiles}
    assert somewhere - used == set()


def test_every_text_pattern_is_used() -> None:
    used = {op.row.text for module in modules("good") for op in module.walk() if op.row}
    assert {row.text for row in table.rows()} - used == set()
