"""Every code is raised by a test: those that no other test names, one small mistake each."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pto
from pto.cli import explain
from pto.cli.main import main
from pto.core.errors import PtoError
from pto.core.memory import Memory, Space
from pto.core.pointer import Pointer
from pto.ir.text.parser import parse
from pto.observe.sanitize import Sanitizer
from pto.observe.streams import watch
from pto.run.jit.llvm.native import Target
from pto.run.watch.step import Stepper
from pto.target.profile import profile as find_profile
from tests.machine import Bench, new_core
from tests.test_explain import CODES, KERNELS, TEXTS, codes_in

ADD = str(Path(__file__).parents[1] / "examples" / "add.pto")

# What a command line gets wrong.
COMMANDS = {
    "PTO-U005": ["check", "no/such/file.pto"],
    "PTO-U006": ["fmt", ADD, ADD],
    "PTO-U007": ["isa", "nosuchinstruction"],
    "PTO-U030": ["run", ADD, "--entry", "nobody"],
    "PTO-U034": ["run", ADD, "--arg", "nobody=1"],
    "PTO-U035": ["run", ADD, "--arg", "rows=40"],
    "PTO-U036": ["run", ADD, "--arg=a=much", "--arg=b=rand", "--arg=c=zeros", "--arg=rows=1"],
    "PTO-U037": ["run", ADD, "--arg=a=no.npy", "--arg=b=rand", "--arg=c=zeros", "--arg=rows=1"],
    "PTO-U038": ["run", ADD, "--arg", "rows"],
}


@pytest.mark.parametrize("code", COMMANDS)
def test_a_command_line_gets_its_code(code: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(COMMANDS[code]) == 2
    assert f"error[{code}]" in capsys.readouterr().err


# What a text gets wrong.
PROGRAMS = {
    "PTO-P003": f"func.func @f(%a: !pto.tile_buf<vec, {'16' * 40_000}x64xf32>) {{\nreturn\n}}",
    "PTO-P018": "func.func @f() attributes {5 = 1} {\nreturn\n}",
    "PTO-P025": "func.func @f() attributes {a = =} {\nreturn\n}",
    "PTO-U031": "func.func @f() {\nreturn\n}\nfunc.func @g() {\nreturn\n}",
    "PTO-U190": """
func.func @cube(%a: !pto.ptr<f32>) attributes {pto.kernel_kind = #pto.kernel_kind<cube>} {
  return
}
func.func @vector(%a: !pto.ptr<f16>, %n: i32)
    attributes {pto.kernel_kind = #pto.kernel_kind<vector>} {
  return
}""",
    "PTO-S134": """
func.func @f() {
  %r = pto.get_block_idx
  %c64 = arith.constant 64 : i64
  %bit = arith.addi %r, %c64 : i64
  %x = pto.sbitset1 %r, %bit : i64, i64 -> i64
  return
}""",
}


@pytest.mark.parametrize("code", PROGRAMS)
def test_a_program_gets_its_code(code: str) -> None:
    with pytest.raises(PtoError) as caught:
        pto.launch(parse(PROGRAMS[code]), args=[])
    assert caught.value.code == code


# What a host gets wrong.


def step_into_nothing() -> None:
    def ask(stop: Any) -> Any:
        return stop.value("nobody")

    args = [*(np.ones((16, 64), np.float32) for _ in range(3)), 16]
    pto.launch(pto.parse_file(ADD), args=args, stepper=Stepper(ask))


def watch_in_another_order() -> None:
    args = [*(np.ones((16, 64), np.float32) for _ in range(3)), 16]
    pto.launch(
        pto.parse_file(ADD), args=args, observer=Sanitizer(find_profile("a5")), schedule="late"
    )


def vectors() -> None:
    bench = Bench("a5")
    bench.values["a"], bench.types["a"] = 0, "vector<4xi16>"
    bench.run("%b = arith.addi %a, %a : vector<4xi16>")


HOST: dict[str, Callable[[], Any]] = {
    "PTO-M110": lambda: Pointer(Memory(Space.UB, 64), 0, None).at(1),
    "PTO-M112": lambda: new_core("a2a3").memory(Space.SCALE_A),
    "PTO-M113": lambda: pto.Device("a5").attach(np.zeros((4, 4), np.float32)[:, ::2]),
    "PTO-M114": lambda: pto.World(2, "a5").addresses([np.zeros(4, np.float32)]),
    "PTO-M115": lambda: Pointer(Memory(Space.UB, 64), 0, pto.f32).at(1 << 62),
    "PTO-T190": vectors,
    "PTO-U041": step_into_nothing,
    "PTO-U090": lambda: Target("abacus"),
    "PTO-U231": watch_in_another_order,
}


@pytest.mark.parametrize("code", HOST)
def test_a_host_gets_its_code(code: str) -> None:
    with pytest.raises(PtoError) as caught:
        HOST[code]()
    assert caught.value.code == code


@pto.kernel(profile="a5")
def copy(x: pto.Global[pto.f32], y: pto.Global[pto.f32]) -> None:
    t = pto.tile(8, 64, pto.f32)
    pto.tload(t, x)
    pto.tstore(y, t)


def test_a_launch_that_writes_what_another_reads() -> None:
    device = pto.Device("a5")
    x, y, z = (np.zeros((8, 64), np.float32) for _ in range(3))
    with watch(device) as found:
        device.stream().launch(copy, x, y)
        device.stream().launch(copy, z, x)
        device.synchronize()
    assert {d.code for d in found.findings()} == {"PTO-R032"}


# Codes that no test names yet. The list only becomes shorter.
UNNAMED = {
    *("PTO-C001", "PTO-C003", "PTO-D198", "PTO-R035", "PTO-R036", "PTO-S131", "PTO-S162"),
    *("PTO-S192", "PTO-S193", "PTO-T150", "PTO-T151", "PTO-T160", "PTO-T191", "PTO-T193"),
    *("PTO-U240", "PTO-U244", "PTO-U246", "PTO-U247", "PTO-U248", "PTO-U251", "PTO-V150"),
    *("PTO-V170", "PTO-X172", "PTO-X174"),
}


def test_every_code_is_raised_by_a_test() -> None:
    """Tests name the code they expect; pages of whole programs are tests themselves."""
    named = codes_in("tests/[!t]*/**/*.py", "tests/test_[!c]*.py", "tests/t*/**/*.py")
    named |= codes_in("tests/**/*.pto") | {*COMMANDS, *PROGRAMS, *HOST, "PTO-R032"}
    assert {*CODES} - named - {*TEXTS, *KERNELS} == UNNAMED
    assert set(explain.codes()) >= UNNAMED
