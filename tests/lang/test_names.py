"""The public names: each is there, tells what it is, and does what a user needs it for."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pto
from pto.lang.names import MODULES, PUBLIC, RENAMED

ADD = Path(pto.__file__).parent.parent / "examples" / "add.pto"


@pytest.mark.parametrize("name", [*PUBLIC, *RENAMED, *MODULES])
def test_each_name_is_there_and_documented(name: str):
    found: Any = getattr(pto, name)
    assert name in dir(pto)
    assert inspect.getdoc(found), name


def arrays() -> list[Any]:
    return [np.ones((16, 64), np.float32), np.ones((16, 64), np.float32), np.zeros((16, 64), "f4")]


def test_a_program_from_text_is_checked_run_and_sanitized():
    module = pto.parse_file(str(ADD))
    assert pto.check(module, "a2a3") == []
    a, b, c = arrays()
    pto.launch(module, args=[a, b, c, 16])
    assert (c == 2).all()
    assert pto.sanitize(module, args=[a, b, c, 16]).is_clean
    assert "pto.tadd" in pto.print_module(module)


def test_findings_of_a_program_from_text():
    text = ADD.read_text(encoding="utf-8").replace("f32", "bf16")
    found = pto.check(pto.parse(text, "add.pto"), "a2a3")
    assert {d.code for d in found} == {"PTO-X011"}
    assert "no findings" not in str(found)


def test_a_run_is_stepped():
    seen: list[str] = []

    def tell(stop: pto.Stop) -> Any:
        seen.append(stop.op.name)
        return "next"

    module = pto.parse_file(str(ADD))
    pto.launch(module, args=[*arrays(), 16], stepper=pto.Stepper(tell))
    assert [name for name in seen if name != "pto.get_block_idx"] == [
        "pto.tload",
        "pto.tload",
        "pto.tadd",
        "pto.tstore",
    ]


class Count:
    """An observer that counts the bytes written to global memory."""

    def __init__(self) -> None:
        self.events: list[pto.observe.InstructionEvent] = []
        self.ended = False

    def begin(self, core: Any) -> None: ...
    def finish(self, core: Any) -> None: ...
    def memory(self, memory: Any, core: Any) -> None: ...
    def enter_scope(self, core: Any) -> None: ...
    def leave_scope(self, core: Any) -> None: ...

    def event(self, event: pto.observe.InstructionEvent) -> None:
        self.events.append(event)

    def end(self) -> None:
        self.ended = True


def test_a_run_is_observed():
    watcher = Count()
    pto.launch(pto.parse_file(str(ADD)), args=[*arrays(), 16], observer=watcher)
    assert watcher.ended
    stored = [
        e
        for e in watcher.events
        if any(a.writes and a.memory.space.value == "gm" for a in e.accesses)
    ]
    assert [e.op.name for e in stored] == ["pto.tstore"]
    assert stored[0].pipe == "MTE3"
