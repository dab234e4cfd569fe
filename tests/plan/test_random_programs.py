"""On random programs: a plan never lets one tile destroy another, and keeps the rules of a plan."""

import random

from hypothesis import given, settings
from hypothesis import strategies as st

from pto.core.errors import PtoError
from pto.ir.text.parser import parse
from pto.target.profile import profile

from .programs import tight
from .random_programs import Machine, random_program

A5 = profile("a5")


def planned(text: str):
    """The program with its plan; None where one allocation would be two tiles at once."""
    module = parse(text)
    try:
        return module, tight(module, A5)
    except PtoError as error:
        assert error.code == "PTO-M122"
        return None


@given(st.integers(0, 2**32))
@settings(max_examples=150, deadline=None)
def test_every_read_finds_what_was_written(seed: int):
    text = random_program(random.Random(seed))
    found = planned(text)
    for turn in range(6 if found else 0):
        Machine(*found, random.Random(seed + turn)).run()


@given(st.integers(0, 2**32))
@settings(max_examples=80, deadline=None)
def test_buffers_alive_together_lie_apart_aligned_and_inside(seed: int):
    found = planned(random_program(random.Random(seed)))
    for plan in found[1].functions if found else ():
        together = [p for p in (*plan.placed, *plan.taken) if p.buffer.alive is not None]
        for n, a in enumerate(together):
            assert a.start >= 0 and a.end <= A5.buffers[a.buffer.space.value]
            assert a.start % 32 == 0
            for b in together[:n]:
                is_call = {a.buffer.type, b.buffer.type} == {"call"}
                if a.buffer.alive.meets(b.buffer.alive) and not is_call:
                    assert a.end <= b.start or b.end <= a.start


def test_most_random_programs_are_accepted():
    accepted = [planned(random_program(random.Random(seed))) is not None for seed in range(60)]
    assert sum(accepted) > 30
