"""The GitHub action and the container file: their steps are run, or held against the package."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parent.parent
ACTION = yaml.safe_load((ROOT / "action.yml").read_text("utf-8"))
CONTAINER = (ROOT / "Containerfile").read_text("utf-8")
PAGE = (ROOT / "docs" / "guide" / "ci.md").read_text("utf-8")
TASK = """
arguments = {"x": "f32[m, n]", "y": "out f32[m, n]"}
cases = [{"m": 40, "n": 64}]


def reference(x):
    return x + 1
"""
KERNEL = """
import pto


@pto.kernel(profile="a5")
def plus_one(x: pto.Global[pto.f32, "m", "n"], y: pto.Global[pto.f32, "m", "n"]):
    for i in pto.range(0, x.shape[0], 8):
        pto.store(y[i:, :], pto.load(x[i:, :], 8, 64) + 1.0)
"""
TEST = """
import numpy as np
from kernel import plus_one


def test_plus_one(pto_run):
    x = np.ones((40, 64), np.float32)
    pto_run(plus_one, x, np.zeros_like(x), expected=x + 1)
"""
RIGHT = (ROOT / "examples" / "add.pto").read_text("utf-8")
WRONG = RIGHT.replace("ins(%x, %y", "ins(%x, %nothing")


@pytest.fixture
def kernels(tmp_path: Path) -> Path:
    """A repository of kernels, and the commands `pto` and `python`."""
    (tmp_path / "task.py").write_text(TASK)
    (tmp_path / "kernel.py").write_text(KERNEL)
    (tmp_path / "wrong.py").write_text(KERNEL.replace("+ 1.0", "+ 1.5"))
    (tmp_path / "test_kernel.py").write_text(TEST)
    (tmp_path / "right.pto").write_text(RIGHT)
    (tmp_path / "wrong.pto").write_text(WRONG)
    (tmp_path / "bin").mkdir()
    for name, words in (("pto", " -m pto"), ("python", "")):
        command = tmp_path / "bin" / name
        command.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)}{words} "$@"\n')
        command.chmod(0o755)
    return tmp_path


def filled(text: str, values: dict[str, str]) -> str:
    """A text of the action with its expressions replaced."""
    return re.sub(r"\$\{\{ *([\w.-]+) *\}\}", lambda m: values[m[1]], text)


def run_action(folder: Path, **inputs: str) -> dict[str, Any]:
    """Run the steps with a shell that the inputs choose; each with its status and output."""
    values = {f"inputs.{n}": each.get("default", "") for n, each in ACTION["inputs"].items()}
    values |= {f"inputs.{n}": text for n, text in inputs.items()}
    values["github.action_path"] = str(ROOT)
    files = {n: str(folder / n) for n in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY")}
    results: dict[str, Any] = {}
    for step in ACTION["runs"]["steps"]:
        condition = re.fullmatch(r"(inputs\.\w+) != ''", step.get("if", "inputs.python != ''"))
        assert condition, step
        if step.get("name", "Install") == "Install" or not values[condition[1]]:
            continue
        given = {n: filled(text, values) for n, text in step.get("env", {}).items()}
        path = f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}"
        places = {"PATH": path, "PYTHONPATH": str(ROOT), "RUNNER_TEMP": str(folder), **files}
        shell = shutil.which("bash")
        assert shell
        results[step["name"]] = subprocess.run(
            [shell, "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]],
            env=os.environ | given | places,
            cwd=folder,
            capture_output=True,
            text=True,
            timeout=300,
        )
    return results


def test_right_kernels_pass_every_step(kernels: Path) -> None:
    results = run_action(
        kernels,
        check="right.pto",
        judge="task.py kernel.py",
        device="950pr",
        pytest="-p no:cacheprovider -q test_kernel.py --pto-profile a2a3,a5",
    )
    assert list(results) == ["Check", "Judge", "Test"]
    assert {n: r.returncode for n, r in results.items()} == dict.fromkeys(results, 0), results
    assert "accepted kernel.py" in (kernels / "GITHUB_STEP_SUMMARY").read_text()
    assert "2 passed" in results["Test"].stdout
    outputs = dict(re.findall(r"(\w+)=(.*)", (kernels / "GITHUB_OUTPUT").read_text()))
    (run,) = json.loads(Path(outputs["sarif"]).read_text())["runs"]
    assert run["results"] == []
    wanted = ACTION["outputs"]["sarif"]["value"]
    assert filled(wanted, {f"steps.check.outputs.{n}": t for n, t in outputs.items()})


def test_wrong_kernels_fail_their_steps(kernels: Path) -> None:
    results = run_action(kernels, check="right.pto wrong.pto", judge="task.py wrong.py kernel.py")
    assert {n: r.returncode for n, r in results.items()} == {"Check": 1, "Judge": 1}
    (run,) = json.loads((kernels / "pto.sarif").read_text())["runs"]
    assert [r["level"] for r in run["results"]] == ["error"]
    summary = (kernels / "GITHUB_STEP_SUMMARY").read_text()
    assert "refused wrong.py" in summary and "accepted kernel.py" in summary


def test_a_step_without_input_is_left_out(kernels: Path) -> None:
    assert run_action(kernels) == {}


def test_inputs_are_no_code_of_the_shell(kernels: Path) -> None:
    results = run_action(kernels, check="right.pto; touch taken")
    assert results["Check"].returncode != 0
    assert not (kernels / "taken").exists()


def test_the_page_shows_inputs_of_the_action() -> None:
    table = set(re.findall(r"^\| `([\w-]+)` \|", PAGE, re.MULTILINE))
    assert table == set(ACTION["inputs"])
    workflow = re.search(r"^```text title=\"\.github.*?\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    assert workflow
    (job,) = yaml.safe_load(workflow[1])["jobs"].values()
    (step,) = (s for s in job["steps"] if "pto-machine" in s["uses"])
    assert set(step["with"]) <= set(ACTION["inputs"])


def test_the_container_copies_what_the_package_is_built_from() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    copied = [line.split()[1:-1] for line in CONTAINER.splitlines() if line.startswith("COPY")]
    sources = {source for sources in copied for source in sources}
    assert all((ROOT / source).exists() for source in sources)
    needed = {"pyproject.toml", project["project"]["readme"], *project["project"]["license-files"]}
    needed |= set(project["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"])
    assert needed <= sources
    entry = re.search(r"^ENTRYPOINT (.*)$", CONTAINER, re.MULTILINE)
    assert entry and json.loads(entry[1])[0] in project["project"]["scripts"]
    (extras,) = re.findall(r'"/source\[(.*)\]"', CONTAINER)
    assert set(extras.split(",")) <= set(project["project"]["optional-dependencies"])
