"""Candidates of many tasks: honest ones are accepted, cheats are refused for the right reason.

A file of candidates has one section each: its title, and for a cheat the code of its finding.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import pytest

from pto.judging.candidate import Candidate
from pto.judging.judge import Options
from pto.judging.judgement import Judgement
from pto.judging.pool import Limits, Pool

HERE = Path(__file__).parent
TASKS = sorted(path.stem for path in (HERE / "tasks").glob("*.py"))
IMPORTS = "import numpy as np\nimport pto\nfrom pto import isa\n"
LIMITS = Limits(seconds=30.0, megabytes=1500)
LEFT_BEHIND = Path("/tmp/pto-judge-left-behind")


@dataclass(frozen=True)
class Written:
    """A candidate of a file, and the code that it must get; empty: it is accepted."""

    title: str
    code: str
    text: str


def written(folder: str, task: str) -> list[Written]:
    path = HERE / folder / f"{task}.txt"
    found: list[Written] = []
    for section in path.read_text().split("=== ")[1:] if path.exists() else []:
        head, _, text = section.partition("\n")
        title, _, code = head.partition(" -> ")
        found.append(Written(title, code, text))
    return found


def judged(task: str, candidates: list[Written], limits: Limits = LIMITS) -> list[Judgement]:
    """The verdicts, in the order of the candidates."""
    made = [
        Candidate(f"{HERE}/cheats/{task}.py", "pto", each.text)
        if "func.func" in each.text
        else Candidate(f"{HERE}/cheats/{task}.py", "python", IMPORTS + each.text)
        for each in candidates
    ]
    found: dict[int, Judgement] = {}
    pool = Pool(HERE / "tasks" / f"{task}.py", Options(seed=5), limits)
    pool.judge(made, found.__setitem__)
    return [found[n] for n in range(len(made))]


@pytest.mark.parametrize("task", TASKS)
def test_honest_candidates_are_accepted(task: str) -> None:
    honest = written("honest", task)
    assert honest
    verdicts = zip(honest, judged(task, honest), strict=True)
    assert {each.title: str(found) for each, found in verdicts if not found} == {}


@pytest.mark.parametrize("task", TASKS)
def test_cheats_are_refused_for_the_right_reason(task: str) -> None:
    refused(task, written("cheats", task), LIMITS)


def test_what_never_ends_is_ended() -> None:
    refused("softmax", written("endless", "softmax"), Limits(seconds=6.0, megabytes=1500))


def refused(task: str, cheats: list[Written], limits: Limits) -> None:
    LEFT_BEHIND.unlink(missing_ok=True)
    verdicts = judged(task, cheats, limits)
    codes = [found.to_json()["codes"] for found in verdicts]
    wrong = {
        each.title: (each.code, own, str(found))
        for each, own, found in zip(cheats, codes, verdicts, strict=True)
        if found or each.code not in own
    }
    assert wrong == {}
    assert not LEFT_BEHIND.exists()


def test_every_file_of_candidates_belongs_to_a_task() -> None:
    named = {path.stem for path in HERE.glob("*/*.txt")}
    assert named == set(TASKS)
    assert sum(len(written(f, t)) for f in ("cheats", "endless") for t in TASKS) >= 60
    assert sum(len(written("honest", t)) for t in TASKS) >= 60
    assert all(re.fullmatch(r"PTO-[A-Z]\d{3}", w.code) for t in TASKS for w in written("cheats", t))
