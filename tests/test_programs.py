"""Our own programs: good ones are accepted and round-trip; bad ones get the findings they name.

In a bad program a line with a finding ends in `// error: part of the message [PTO-S021]`.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from pto.core.errors import Diagnostic, PtoError
from pto.ir.copied import same
from pto.ir.graph import Module
from pto.ir.text.parser import parse, parse_file
from pto.ir.text.printer import print_module
from pto.isa.row.attributes import Str
from pto.target.profile import choose
from pto.verify import verify

HERE = Path(__file__).parent / "pto"
GOOD = sorted((HERE / "good").glob("*.pto"))
BAD = sorted((HERE / "bad").glob("*.pto"))
_EXPECTED = re.compile(r"// error: (.*?)\s*\[(PTO-\w+)\]")


def findings_of(module: Module) -> list[Diagnostic]:
    arch = module.op.attrs.get("pto.target_arch")
    target = choose(target_arch=arch.value if isinstance(arch, Str) else None)
    return verify(module, target.profile)


@pytest.mark.parametrize("path", GOOD, ids=lambda p: p.stem)
def test_good_program_is_accepted_and_round_trips(path: Path) -> None:
    module = parse_file(path)
    assert [str(d) for d in findings_of(module)] == []
    text = print_module(module)
    again = parse(text)
    assert same(module.op, again.op)
    assert print_module(again) == text
    assert same(module.op, parse(print_module(module, generic=True)).op)


@pytest.mark.parametrize("path", BAD, ids=lambda p: p.stem)
def test_bad_program_gets_the_findings_it_names(path: Path) -> None:
    expected: list[tuple[int, str, str]] = []
    for number, line in enumerate(path.read_text().split("\n"), 1):
        expected += [(number, m[2], m[1]) for m in _EXPECTED.finditer(line)]
    assert expected, "a bad program names at least one finding"
    try:
        actual = findings_of(parse_file(path))
    except PtoError as error:
        actual = list(error.diagnostics)
    left = [(d.loc.line if d.loc else 0, d.code, d.message) for d in actual]
    for line, code, part in expected:
        hit = next((f for f in left if f[:2] == (line, code) and part in f[2]), None)
        assert hit is not None, f"line {line}: no {code} with {part!r}; findings: {left}"
        left.remove(hit)
    assert left == []
