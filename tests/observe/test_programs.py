"""Programs with one fault each get exactly the findings they name, at the line; others get none.

The first lines of a program say its arguments (`// args:`) and blocks (`// blocks:`); a line with a
finding ends in `// error: part of the message [PTO-R001]`, as in `tests/test_programs.py`.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from pto.ir.text.parser import parse_file
from pto.observe import Verdict, sanitize
from pto.plan.calls import entry_functions
from pto.run.launch.arguments import build, parameters, parse_args

HERE = Path(__file__).parent / "programs"
BAD = sorted((HERE / "bad").glob("*.pto"))
_EXPECTED = re.compile(r"// error: (.*?)\s*\[(PTO-\w+)\]")


def verdict_on(path: Path) -> Verdict:
    text = path.read_text(encoding="utf-8")
    words = re.search(r"// args: (.*)", text)
    blocks = re.search(r"// blocks: (\d+)", text)
    module = parse_file(path)
    given = parse_args(words[1].split() if words else [])
    args = build(parameters(*entry_functions(module, None)), given, 0)
    return sanitize(module, args=args, blocks=int(blocks[1]) if blocks else 1)


@pytest.mark.parametrize("path", BAD, ids=lambda p: p.stem)
def test_bad_program_gets_the_findings_it_names(path: Path) -> None:
    lines = path.read_text(encoding="utf-8").split("\n")
    expected = [
        (number, m[2], m[1])
        for number, line in enumerate(lines, 1)
        for m in _EXPECTED.finditer(line)
    ]
    assert expected, "a bad program names at least one finding"
    left = [(d.loc.line if d.loc else 0, d.code, d.message) for d in verdict_on(path).findings]
    for line, code, part in expected:
        hit = next((f for f in left if f[:2] == (line, code) and part in f[2]), None)
        assert hit is not None, f"line {line}: no {code} with {part!r}; findings: {left}"
        left.remove(hit)
    assert left == []


def test_a_tile_program_without_flags_is_taken_for_a_compilers_input() -> None:
    module = parse_file(HERE / "auto.pto")
    args = build(parameters(*entry_functions(module, None)), {"x": "range", "y": "zeros"}, 0)
    verdict = sanitize(module, args=args)
    assert verdict.mode == "automatic"
    assert verdict.findings == ()
    assert args[1].max() == 511.5  # 1023 * 0.5
