"""The programs on the pages of `pto explain`: wrong ones are found out, right ones pass."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from pto.core.errors import PtoError
from pto.ir.text.parser import parse
from pto.isa.row.attributes import Str
from pto.target.choose import choose
from pto.verify import verify

PAGES = sorted((Path(__file__).parent.parent / "pto" / "explain").glob("*.md"))
_PROGRAM = re.compile(r"\n## (Wrong|Right)\n.*?```pto\n(.*?)\n```", re.DOTALL)


def programs(path: Path) -> dict[str, str]:
    """The whole programs on a page; a few lines out of one are only for reading."""
    found = dict(_PROGRAM.findall(path.read_text(encoding="utf-8")))
    return {name: text for name, text in found.items() if "func.func" in text}


def codes_of(text: str) -> set[str]:
    try:
        module = parse(text)
        arch = module.op.attrs.get("pto.target_arch")
        target = choose(target_arch=arch.value if isinstance(arch, Str) else None)
    except PtoError as error:
        return {finding.code for finding in error.diagnostics}
    return {finding.code for finding in verify(module, target.profile)}


WITH_PROGRAMS = [path for path in PAGES if programs(path).keys() == {"Wrong", "Right"}]


def test_there_are_programs_to_check():
    assert WITH_PROGRAMS


@pytest.mark.parametrize("path", WITH_PROGRAMS, ids=lambda path: path.stem)
def test_wrong_program_gets_the_code_of_its_page_and_no_other(path: Path):
    assert codes_of(programs(path)["Wrong"]) == {path.stem}


@pytest.mark.parametrize("path", WITH_PROGRAMS, ids=lambda path: path.stem)
def test_right_program_is_clean(path: Path):
    assert codes_of(programs(path)["Right"]) == set()
