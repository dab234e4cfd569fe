"""Where sources differ on what a flag is, the profile decides: its data changes what is found."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from pto.core.errors import PtoError
from pto.ir.graph import Module
from pto.ir.text.parser import parse
from pto.observe import Sanitizer, sanitize
from pto.plan.calls import entry_functions
from pto.run.launch.call import Launch
from pto.run.launch.prepared import PreparedKernel
from pto.run.machine.device import Device
from pto.run.order.deferred import Scheduler
from pto.run.order.schedule import parse_schedule
from pto.target.facts import Profile
from pto.target.profile import profile

_HEAD = """
module attributes {pto.target_arch = "a5", pto.kernel_kind = #pto.kernel_kind<vector>} {
  func.func @kernel(%x: !pto.ptr<f32, gm>, %y: !pto.ptr<f32, gm>) attributes {pto.aicore} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c3 = arith.constant 3 : index
    %z = arith.constant 0 : i64
    %n = arith.constant 1 : i64
    %bytes = arith.constant 256 : i64
    %a = pto.castptr %z : i64 -> !pto.ptr<f32, ub>
"""
LOAD = (
    "pto.mte_gm_ub %x, %a, %z, %bytes nburst(%n, %bytes, %bytes)"
    " : !pto.ptr<f32, gm>, !pto.ptr<f32, ub>, i64, i64, i64, i64, i64"
)
LOOP, END = "scf.for %i = %c0 to %c3 step %c1 {", "}"


def flag(word: str, src: str, dst: str, number: int = 0) -> str:
    return f'pto.{word}_flag["PIPE_{src}", "PIPE_{dst}", "EVENT_ID{number}"]'


def program(*lines: str) -> Module:
    return parse(_HEAD + "\n".join(lines) + "\nreturn\n}\n}\n")


def read_as(**reading: Any) -> Profile:
    target = profile("a5")
    return replace(target, sync=replace(target.sync, **reading))


def run(device: Device, module: Module) -> None:
    args = [np.zeros(64, np.float32), np.zeros(64, np.float32)]
    kernels = entry_functions(module, None)
    kernel = PreparedKernel(module, kernels, device.profile, device.tap, device.engine)
    device.run(Launch.of(kernel, device, args, 1, None))


def codes(module: Module, **reading: Any) -> list[str]:
    """What is found where flags are read in this way."""
    target = read_as(**reading)
    watcher = Sanitizer(target)
    run(Device(target, observer=watcher, engine="reference"), module)
    return sorted({d.code for d in watcher.findings() if d.code.startswith("PTO-D")})


def goes_on(module: Module, how: str, **reading: Any) -> bool:
    """Whether a run comes to its end, on an engine or under a schedule."""
    target = read_as(**reading)
    device = Device(target, engine=how if how in ENGINES else "reference")
    if how not in ENGINES:
        device.tap = Scheduler(parse_schedule(how), target.sync)
    try:
        run(device, module)
    except PtoError as error:
        assert error.diagnostics[0].code in ("PTO-D111", "PTO-D110")
        return False
    return True


ENGINES = ("reference", "jit")
WAYS = (*ENGINES, "early", "late", "random:1", "sanitizer")
AHEAD = program(LOOP, LOAD, flag("set", "MTE2", "V"), flag("wait", "MTE2", "V"), END)
BACK = program(
    flag("set", "V", "MTE2"),
    LOOP,
    flag("wait", "V", "MTE2"),
    LOAD,
    flag("set", "MTE2", "V"),
    flag("wait", "MTE2", "V"),
    flag("set", "V", "MTE2"),
    END,
    flag("wait", "V", "MTE2"),
)
TWO = program(
    LOAD,
    flag("set", "MTE2", "V"),
    flag("set", "MTE2", "MTE3"),
    flag("wait", "MTE2", "V"),
    flag("wait", "MTE2", "MTE3"),
)


def test_a_source_that_runs_ahead_of_the_wait_is_told_of_where_asked_for() -> None:
    reuse = frozenset({"flag-reuse"})
    assert codes(AHEAD) == []
    assert codes(AHEAD, flag_warnings=reuse) == ["PTO-D208"]
    assert codes(BACK, flag_warnings=reuse) == []


def test_flags_of_one_source_and_id_are_told_of_where_asked_for() -> None:
    """Not of a flag that a loop hands on: kernels that run on hardware have such credits."""
    shared = frozenset({"shared-source-id"})
    assert codes(TWO) == []
    assert codes(TWO, flag_warnings=shared) == ["PTO-D210"]
    assert codes(BACK, flag_warnings=shared) == []


@pytest.mark.parametrize(
    ("target", "inner", "found"), [("a2a3", 2, ["PTO-D210"]), ("a2a3", 3, []), ("a5", 2, [])]
)
def test_a_flag_inside_the_life_of_another_of_its_source_has_an_id_of_its_own(
    target: str, inner: int, found: list[str]
) -> None:
    """A kernel of a 910B deadlocked with one id, and ran with two: PTOAS#823."""
    text = _NESTED.format(target=target, inner=inner)
    args = [np.zeros(1024, np.float32), np.zeros(1024, np.float32)]
    assert [d.code for d in sanitize(parse(text), args=args).findings if d.code[4] == "D"] == found


_NESTED = """
!p = !pto.ptr<f32, gm>
!view = !pto.tensor_view<16x64xf32>
!part = !pto.partition_tensor_view<16x64xf32>
!tile = !pto.tile_buf<vec, 16x64xf32>
module attributes {{pto.target_arch = "{target}", pto.kernel_kind = #pto.kernel_kind<vector>}} {{
  func.func @kernel(%x: !p, %y: !p) attributes {{pto.aicore}} {{
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c16 = arith.constant 16 : index
    %c64 = arith.constant 64 : index
    %zero = arith.constant 0 : i64
    %one = arith.constant 1.0 : f32
    %v = pto.make_tensor_view %y, shape = [%c16, %c64], strides = [%c64, %c1] : !view
    %part = pto.partition_view %v, offsets = [%c0, %c0], sizes = [%c16, %c64] : !view -> !part
    %t = pto.alloc_tile addr = %zero : !tile
    pto.texpands ins(%one : f32) outs(%t : !tile)
    pto.set_flag["PIPE_V", "PIPE_MTE3", "EVENT_ID0"]
    pto.wait_flag["PIPE_V", "PIPE_MTE3", "EVENT_ID0"]
    pto.tstore ins(%t : !tile) outs(%part : !part)
    pto.set_flag["PIPE_MTE3", "PIPE_V", "EVENT_ID2"]
    pto.set_flag["PIPE_MTE3", "PIPE_MTE2", "EVENT_ID{inner}"]
    pto.wait_flag["PIPE_MTE3", "PIPE_MTE2", "EVENT_ID{inner}"]
    pto.tload ins(%part : !part) outs(%t : !tile)
    pto.wait_flag["PIPE_MTE3", "PIPE_V", "EVENT_ID2"]
    pto.set_flag["PIPE_MTE2", "PIPE_V", "EVENT_ID0"]
    pto.wait_flag["PIPE_MTE2", "PIPE_V", "EVENT_ID0"]
    pto.tadds ins(%t, %one : !tile, f32) outs(%t : !tile)
    return
  }}
}}
"""


def test_a_second_set_of_a_flag_of_one_bit_is_an_error() -> None:
    twice = program(LOAD, *[flag("set", "MTE2", "V")] * 2, *[flag("wait", "MTE2", "V")] * 2)
    assert codes(twice) == codes(twice, flag_arity="bit") == ["PTO-D203"]


def test_where_source_and_id_name_a_flag_its_target_makes_no_difference() -> None:
    crossed = program(LOAD, flag("set", "MTE2", "V"), flag("wait", "MTE2", "MTE3"))
    assert codes(crossed) == ["PTO-D201"]
    assert codes(crossed, flag_identity="src id") == []
    assert codes(crossed, flag_identity="dst id") == ["PTO-D201"]


CROSSED = program(LOAD, flag("set", "MTE2", "V"), flag("wait", "MTE2", "MTE3"))
KINDS = program(
    LOAD,
    "pto.record_event[<TLOAD>, #pto.pipe_event_type<EVENT_COMPUTE_VEC>, <EVENT_ID0>]",
    "pto.wait_event[<TLOAD>, <TVECWAIT_EVENT>, <EVENT_ID0>]",
    "pto.record_event[<TLOAD>, <TVEC>, <EVENT_ID1>]",
    flag("wait", "MTE2", "V", 1),
)


@pytest.mark.parametrize("how", WAYS)
def test_engines_schedules_and_sanitizer_read_a_flag_alike(how: str) -> None:
    def ends(module: Module, **reading: Any) -> bool:
        if how == "sanitizer":
            return codes(module, **reading) == []
        return goes_on(module, how, **reading)

    assert not ends(CROSSED)
    assert ends(CROSSED, flag_identity="src id")
    assert not ends(CROSSED, flag_identity="dst id")
    assert ends(KINDS)  # kinds of operation stand for their pipes
