"""The kernels on the pages of `pto explain`: wrong ones get their code, right ones run."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pto
from pto.isa.row.types import EventIdArray

ROOT = Path(pto.__file__).parent
SOURCES = (*(ROOT / "lang").rglob("*.py"), ROOT / "ir" / "builder.py")
CODES = {c for p in SOURCES for c in re.findall(r"PTO-[A-Z]\d{3}", p.read_text(encoding="utf-8"))}
PAGES = [ROOT / "explain" / f"{code}.md" for code in sorted(CODES)]
_SNIPPET = re.compile(r"\n## (Wrong|Right)\n.*?```python\n(.*?)\n```", re.DOTALL)


def snippet(path: Path, which: str) -> str:
    found: dict[str, str] = dict(_SNIPPET.findall(path.read_text(encoding="utf-8")))
    return found[which]


def execute(text: str) -> None:
    names: dict[str, Any] = {
        "np": np,
        "pto": pto,
        "x": np.ones((16, 128), np.float32),
        "y": np.zeros((16, 128), np.float32),
        "EVENT_IDS": EventIdArray(2),
    }
    exec(compile(text, "<page>", "exec"), names)


def test_there_are_pages():
    assert len(PAGES) > 20


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_wrong_code_gets_the_code_of_its_page(path: Path):
    with pytest.raises(pto.PtoError) as caught:
        execute(snippet(path, "Wrong"))
    assert caught.value.code == path.stem


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_right_code_runs(path: Path):
    execute(snippet(path, "Right"))
