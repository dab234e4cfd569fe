"""Schedules and phases: a wrong order between phases, or around working space, shows in the values.

The programs and faults are those of the catalogue. What the scalar unit does it does at once, so
that a missing wait for the scalar unit shows in no schedule.
"""

from __future__ import annotations

import re

import numpy as np
import pytest

from pto.ir.text.parser import parse
from pto.plan.calls import entry_functions
from pto.run.launch.arguments import build, parameters, parse_args
from pto.run.launch.host import launch
from tests.observe.catalogue import Fault, Program, faults, programs

_ABOUT = ("phase_", "working_space sum")
_SHOWN = (
    "the wait is MTE2's own",
    "the flag is set before the indices are loaded",
    "MTE2 does not wait for the store of the source",
    "the wait is MTE3's",
    "the ramp does not wait for the product",
    "V does not wait for the loads",
    "MTE3 is taken for the pipe of the scatter",
    "the next load does not wait for V",
    "working space over a tile that MTE3 still stores",
    "the flag is set before the store",
    "a load into working space in use",
)
_SCHEDULES = ("program", "early", "late", "random:1", "random:2")


def outcomes(text: str) -> set[bytes]:
    """The bits of all arrays, under each schedule."""
    module = parse(text)
    words = re.search(r"// args: (.*)", text)
    given = parse_args(words[1].split() if words else [])
    found: set[bytes] = set()
    for schedule in _SCHEDULES:
        args = build(parameters(*entry_functions(module, None)), given, 0)
        if "mgather" in text:
            args[1][:] = np.arange(16) * 3
        how = {} if schedule == "program" else {"schedule": schedule}
        launch(module, args=args, check=False, **how)
        found.add(b"".join(a.tobytes() for a in args))
    return found


@pytest.mark.parametrize("program", [p for p in programs() if str(p).startswith(_ABOUT)], ids=str)
def test_a_right_program_gives_the_same_bits_in_every_schedule(program: Program):
    assert len(outcomes(program.text)) == 1


WRONG = [f for f in faults() if str(f).startswith(_ABOUT) and str(f).endswith(_SHOWN)]


@pytest.mark.parametrize("fault", WRONG, ids=str)
def test_a_schedule_shows_the_fault_in_the_values(fault: Fault):
    assert len(outcomes(fault.text)) > 1


def test_all_of_these_faults_are_tried():
    assert {name for f in WRONG for name in _SHOWN if str(f).endswith(name)} == set(_SHOWN)
