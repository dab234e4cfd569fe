"""Every code has a page, every page has a code and teaches by a pair of programs, which are run."""

from __future__ import annotations

import linecache
import re
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pto
from pto.cli import explain
from pto.core.errors import AREAS
from pto.isa.row.types import EventIdArray
from pto.run.launch.call import PtoWarning

ROOT = Path(__file__).parent.parent
CODE = re.compile(r"PTO-[A-Z]\d{3}")
CODES = explain.codes()


def told(program: str) -> set[str]:
    return {finding.code for finding in explain.findings(program)}


def codes_in(*places: str) -> set[str]:
    paths = [path for place in places for path in ROOT.glob(place)]
    return {code for path in paths for code in CODE.findall(path.read_text(encoding="utf-8"))}


# Whole programs of .pto text; of Python, the pages of the kernel language. Other pages show lines.
PROGRAMS = {code: explain.programs(code) for code in CODES}
TEXTS = [
    c for c, (n, *both) in PROGRAMS.items() if n == "pto" and all("func.func" in x for x in both)
]
WARNED = sorted(codes_in("pto/run/launch/outcome.py", "pto/plan/stores.py") | {"PTO-U313"})
NO_KERNEL = codes_in("pto/lang/file.py", "pto/lang/raised.py")  # of files that commands execute
KERNELS = sorted(codes_in("pto/lang/**/*.py", "pto/ir/builder.py") - {*WARNED, *NO_KERNEL})


def test_every_code_in_the_sources_has_a_page_and_no_other():
    assert codes_in("pto/**/*.py") == set(CODES)


@pytest.mark.parametrize("code", CODES)
def test_page_has_title_rule_wrong_and_right(code: str):
    written = (ROOT / "pto" / "explain" / f"{code}.md").read_text(encoding="utf-8")
    assert written.count("```diff ") == 1, "one program, with - before wrong lines, + before right"
    first, _, rest = explain.page(code).partition("\n")
    assert re.fullmatch(rf"# {code}: \S.*[^.]", first)
    assert code[4] in AREAS
    rule, wrong, right = re.split(r"^## (?:Wrong|Right)\n", rest, flags=re.MULTILINE)
    assert len(rule.strip()) > 80, "the rule in plain words, not only a title"
    for section in (wrong, right):
        assert re.search(r"```\w+\n.+?\n```", section, re.DOTALL)
    assert wrong != right


@pytest.mark.parametrize("code", TEXTS)
def test_wrong_program_gets_the_code_of_its_page_and_no_other_and_the_right_is_clean(code: str):
    _, wrong, right = PROGRAMS[code]
    assert told(wrong) == {code}
    assert told(right) == set()


def execute(text: str) -> None:
    names: dict[str, Any] = {
        "np": np,
        "pto": pto,
        "isa": pto.isa,
        "x": np.ones((16, 128), np.float32),
        "y": np.zeros((16, 128), np.float32),
        "EVENT_IDS": EventIdArray(2),
    }
    linecache.cache["<page>"] = len(text), None, text.splitlines(keepends=True), "<page>"
    exec(compile(text, "<page>", "exec"), names)


@pytest.mark.parametrize("code", KERNELS)
def test_wrong_kernel_gets_the_code_of_its_page_and_the_right_one_runs(code: str):
    _, wrong, right = PROGRAMS[code]
    with pytest.raises(pto.PtoError) as caught:
        execute(wrong)
    assert caught.value.code == code
    execute(right)


@pytest.mark.parametrize("code", WARNED)
def test_wrong_kernel_gets_the_warning_of_its_page_and_the_right_one_none(code: str):
    _, wrong, right = PROGRAMS[code]
    with pytest.warns(PtoWarning) as caught:
        execute(wrong)
    assert [str(w.message).split("\n")[0].endswith(f"[{code}]") for w in caught] == [True]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        execute(right)
