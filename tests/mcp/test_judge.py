"""`judge` of `pto mcp` through the client of the official SDK: short verdicts about kernels."""

from __future__ import annotations

import json
from pathlib import Path

from tests.mcp.test_server import ask

TASK = """\
arguments = {"x": "f32[n]", "y": "out f32[n]"}
cases = [{"n": 40}, {"n": 200, "baseline_us": 5.0}]


def reference(x):
    return 2 * x
"""
KERNEL = """\
import pto


@pto.kernel
def twice(x: pto.Global[pto.f32, "n"], y: pto.Global[pto.f32, "n"]):
    i = pto.block_idx() * 64
    pto.store(y[i:], pto.load(x[i:], 64) * FACTOR)
"""
RIGHT, WRONG = KERNEL.replace("FACTOR", "2.0"), KERNEL.replace("FACTOR", "3.0")
BLOCKS = "cdiv(n, 64)"


def test_verdicts_are_short_and_name_the_first_finding(tmp_path: Path):
    (tmp_path / "double.py").write_text(TASK, "utf-8")
    right = {"task": "double", "candidate": RIGHT, "blocks": BLOCKS, "device": "950pr"}
    _, accepted, refused, unknown, text = ask(
        ("judge", right),
        ("judge", {**right, "candidate": WRONG, "seed": 7}),
        ("judge", {**right, "task": "treble"}),
        ("judge", {**right, "task": TASK}),
        options=("--tasks", str(tmp_path)),
    )
    assert accepted["accepted"] and accepted["status"] == 0, accepted
    assert set(accepted["checks"].values()) == {"passed"}
    assert [c["name"] for c in accepted["times"] if "hap" in c] and accepted["score"] > 0
    assert not refused["accepted"] and refused["status"] == 1
    assert refused["failed"] == "right" and refused["seed"] == 7
    assert refused["finding"]["code"] == "PTO-J001" and "y[0]" in refused["finding"]["message"]
    assert refused["next"] == "explain PTO-J001"
    assert len(json.dumps(refused)) < 2500, "a verdict is short"
    assert "there is no task 'treble'" in unknown and "--allow-python" in text


def test_a_task_as_text_needs_permission():
    given = {"task": TASK, "candidate": RIGHT, "blocks": BLOCKS}
    _, verdict, named = ask(
        ("judge", given), ("judge", {**given, "task": "double"}), options=("--allow-python",)
    )
    assert verdict["accepted"], verdict
    assert "--tasks" in named
