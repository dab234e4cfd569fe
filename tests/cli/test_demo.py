"""`make demo` runs to its end and shows what it promises."""

import re

import pytest

from examples import demo
from pto.run.launch.engine import ENGINES


def test_demo_checks_runs_sanitizes_and_breaks_flash_attention(capsys: pytest.CaptureFixture[str]):
    demo.main()
    shown = capsys.readouterr()
    assert re.findall(r"^  (a2a3|a5) .* accepted", shown.out, re.MULTILINE) == ["a2a3", "a5"]
    runs = re.findall(r"^ +(a2a3|a5) +(\w+) .* (\S+e-\d+) +the same", shown.out, re.MULTILINE)
    assert {(target, engine) for target, engine, _ in runs} == {
        (target, engine) for target in ("a2a3", "a5") for engine in ENGINES
    }
    assert all(float(error) < 2**-10 for *_, error in runs)  # weights are rounded to f16
    assert len(re.findall(r"sanitizer: 0 errors", shown.out)) == 2
    race, slot = shown.out.split("Broken")[1:]
    assert "error[PTO-R001]: read-after-write race" in race and "FIX may read before M" in race
    assert "error[PTO-V215]" in slot
    assert shown.err == ""
