"""The engine's side: a core answers where an allocation lies, from the plan of its launch."""

import pytest

from pto.core.errors import PtoError
from pto.plan.memory import plan_memory
from pto.run.machine.core import Cluster, Core
from pto.run.machine.device import Device

from .programs import A5, alloc, find, program, use


def test_a_core_places_what_the_launch_planned():
    module = program(f"{alloc('a', 'b')}\n{use('a', 'b', 'a')}")
    placement = plan_memory(list(module.functions()), A5)
    core = Core(Cluster(Device(A5), 0, 1), A5, "both", 0, 1, placement)
    assert sorted(core.place(find(module, n)) for n in "ab") == [0, 4096]


def test_a_core_without_a_plan_places_nothing():
    module = program(alloc("a"))
    core = Core(Cluster(Device(A5), 0, 1), A5, "both", 0, 1)
    with pytest.raises(PtoError) as caught:
        core.place(find(module, "a"))
    assert caught.value.code == "PTO-M126"


def test_a_launch_without_room_fails_before_anything_runs():
    body = """%a = pto.alloc_tile : BIG
    %b = pto.alloc_tile : BIG
    %c = pto.alloc_tile : BIG
    pto.tadd ins(%a, %b : BIG, BIG) outs(%c : BIG)"""
    module = program(body, args="")
    with pytest.raises(PtoError) as caught:
        Device(A5).kernel(module)
    assert caught.value.code == "PTO-M120"
