"""`pto mcp` through the client of the official SDK, as an agent uses it."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

import pto

mcp = pytest.importorskip("mcp", reason="the SDK is not installed: pip install 'pto-machine[mcp]'")
ADD = (Path(__file__).parents[2] / "examples" / "add.pto").read_text("utf-8")
ENDLESS = """\
module attributes {pto.target_arch = "a5"} {
  func.func @forever(%x: !pto.ptr<f32>) {
    %yes = arith.constant true
    scf.while : () -> () {
      scf.condition(%yes)
    } do {
      scf.yield
    }
    return
  }
}
"""
PYTHON = """\
import pto
open("was_here", "w").close()
@pto.kernel
def twice(x: pto.Global[pto.f32], y: pto.Global[pto.f32]):
    pto.store(y, pto.load(x, 4, 32) * 2.0)
"""


def ask(*calls: tuple[str, dict[str, Any]], options: tuple[str, ...] = ()) -> list[Any]:
    """The answers of a server that is started for them; a refusal is its text."""

    async def talk() -> list[Any]:
        root = str(Path(pto.__file__).parents[1])
        start = mcp.StdioServerParameters(
            command=sys.executable,
            args=["-m", "pto", "mcp", *options],
            env={**os.environ, "PYTHONPATH": root},
        )
        async with mcp.Client(start) as client:
            found: list[Any] = [sorted(each.name for each in (await client.list_tools()).tools)]
            for name, given in calls:
                answer = await client.call_tool(name, given)
                text = answer.content[0].text
                found.append(text if answer.is_error else json.loads(text))
            return found

    return asyncio.run(asyncio.wait_for(talk(), 120))


def test_every_tool_gives_the_json_of_its_command():
    arrays = dict.fromkeys("abc", "ones:16x64xf32")
    arrays |= {"b": [[2.0] * 64] * 16, "rows": 16}
    wrong = ADD.replace("pto.tadd ", "pto.tad ")
    names, fine, bad, ran, clean, timed, row, page, shown = ask(
        ("check", {"program": ADD}),
        ("check", {"program": wrong}),
        ("run", {"program": ADD, "arguments": arrays}),
        ("sanitize", {"program": ADD, "arguments": arrays}),
        ("time", {"program": ADD, "arguments": arrays}),
        ("isa", {"name": "tadd", "profile": "a5"}),
        ("explain", {"code": "PTO-L001"}),
        ("layout", {"tile": "vec 2x8xf32"}),
    )
    assert names == ["check", "explain", "isa", "judge", "layout", "run", "sanitize", "time"]
    assert fine["status"] == 0 and fine["result"]["findings"] == []
    assert bad["status"] == 1 and bad["result"]["findings"][0]["code"] == "PTO-P021", bad
    assert ran["status"] == 0 and "c" in str(ran["result"]), ran
    assert clean["status"] == 0 and timed["result"], timed
    assert row["result"] and "PTO-L001" in page["text"] and shown["text"]


def test_untrusted_programs_are_bounded_and_refused():
    _, slow, python, cpp, file, option = ask(
        ("run", {"program": ENDLESS, "arguments": {"x": "zeros:4xf32"}}),
        ("check", {"program": PYTHON, "language": "python", "entry": "twice"}),
        ("run", {"program": "int main() {}", "language": "cpp", "entry": "main"}),
        ("run", {"program": ADD, "arguments": {"a": "/etc/secret.npy"}}),
        ("run", {"program": ADD, "arguments": {"a b=1 --out": 1}}),
        options=("--timeout", "5", "--memory", "4096"),
    )
    assert slow["status"] == 124 and "5 s" in slow["error"]
    assert "--allow-python" in python and "--allow-cpp" in cpp
    assert "a number, a list" in file and "is not the name" in option


def test_python_is_executed_with_permission_only():
    arguments = {"x": "ones:4x32", "y": "zeros:4x32"}
    given = {"program": PYTHON, "language": "python", "entry": "twice", "arguments": arguments}
    _, ran = ask(("run", given), options=("--allow-python",))
    assert ran["status"] == 0, ran
