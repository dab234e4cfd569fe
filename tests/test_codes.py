"""Every code is raised by a test: those that no other test names, one small mistake each."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

import pto
from pto import isa
from pto.cli.main import main
from pto.cluster.on import connect
from pto.cluster.worker import Hello, named
from pto.cluster.worker_pool import WorkerPool
from pto.core.errors import PtoError
from pto.core.global_tensor import GlobalTensor
from pto.core.memory import Memory, Space
from pto.core.pointer import Pointer
from pto.core.tile import Role, Tile, TileType
from pto.cxx import st
from pto.cxx.binding import bind
from pto.cxx.kernel import cpp
from pto.cxx.records import RecordedCall
from pto.graphs import scene
from pto.gym.timed import launch_timed
from pto.ir.text.parser import parse
from pto.isa.meaning.cube.accumulator import Epilogue, finished
from pto.isa.meaning.cube.load import Fractals
from pto.isa.meaning.memory.collective import require_alike, require_flat
from pto.isa.meaning.tile.mover import Mover
from pto.observe.order.streams import watch
from pto.observe.sanitize import Sanitizer
from pto.plan.sync import program as sync
from pto.run.jit.llvm.native import Target
from pto.run.watch.step import Stepper
from pto.target.costs_a5 import COSTS
from pto.target.profile import profile as find_profile
from tests.machine import Bench, new_core
from tests.test_explain import CODES, KERNELS, TEXTS, WARNED, codes_in

_SMALL, _LARGE = "vec, 8x8xf32", "vec, 16x8xf32"
_LAID_OUT = "!pto.vmi.vreg<64xf32, #pto.vmi.layout<contiguous>>"
ADD = str(Path(__file__).parents[1] / "examples" / "add.pto")

# What a command line gets wrong.
COMMANDS = {
    "PTO-U005": ["check", "no/such/file.pto"],
    "PTO-U006": ["fmt", ADD, ADD],
    "PTO-U007": ["isa", "nosuchinstruction"],
    "PTO-U013": ["run", ADD, "--bogus"],
    "PTO-U030": ["run", ADD, "--entry", "nobody"],
    "PTO-U034": ["run", ADD, "--arg", "nobody=1"],
    "PTO-U035": ["run", ADD, "--arg", "rows=40"],
    "PTO-U036": ["run", ADD, "--arg=a=much", "--arg=b=rand", "--arg=c=zeros", "--arg=rows=1"],
    "PTO-U037": ["run", ADD, "--arg=a=no.npy", "--arg=b=rand", "--arg=c=zeros", "--arg=rows=1"],
    "PTO-U038": ["run", ADD, "--arg", "rows"],
    "PTO-U320": ["graph", "run", str(Path(__file__).parent / "graphs" / "runtime")],
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


def of(body: str, results: str = "", **values: Any) -> Callable[[], Any]:
    """A body on tiles (`vec, 8x8xf32`), pointers (`*f32, ub`), logical vectors and numbers."""

    def run() -> None:
        bench = Bench("a5")
        for name, value in values.items():
            if isinstance(value, int):
                bench.scalar(name, "i64", value)
            elif value.startswith("*"):
                bench.pointer(name, value[1:], np.zeros(64))
            elif value.startswith(("!", "memref")):
                bench.values[name], bench.types[name] = np.zeros(8, np.float32), value
            else:
                bench.tile(name, value)
        bench.run(body, results=results)

    return run


def with_index(op: str) -> str:
    return f"func.func @f(%a: memref<4xindex>) {{\n  {op}\n  return\n}}"


PADDED = """
func.func @f(%g: !pto.ptr<f32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c9 = arith.constant 9 : index
  %v = pto.make_tensor_view %g, shape = [%c1, %c1], strides = [%c1, %c1]
    : !pto.tensor_view<?x?xf32>
  %t = pto.alloc_tile : !pto.tile_buf<vec, 8x8xf32>
  pto.tload ins(%v : !pto.tensor_view<?x?xf32>) outs(%t : !pto.tile_buf<vec, 8x8xf32>)
    pad_mode = #pto.padmode<PadNull> left_padding_num = %c9 : index
    init_out_buffer = false right_padding_num = %c0 : index
  return
}"""


def no_cluster() -> None:
    def init(**_: Any) -> None:
        raise ConnectionError("nobody")

    errors = SimpleNamespace(AuthenticationError=PermissionError)
    connect(SimpleNamespace(init=init, exceptions=errors), "ray://nowhere")


def push_without_a_scale() -> None:
    core = new_core("a5")
    acc = Tile(TileType.of(Role.ACC, pto.f32, 16, 16), core.memory(Space.L0C))
    finished(core, acc, Epilogue("nz2nd", "qf322f16_pre_scalar", "no_relu"), queue=3)


def members_of_another_shape() -> None:
    views = [GlobalTensor.of(Memory(Space.GM, 64), 0, pto.f32, (n,)) for n in (4, 2)]
    require_alike(Mover(new_core("a5")), *views, "src and dst")


HOST: dict[str, Callable[[], Any]] = {
    "PTO-C001": lambda: COSTS.of("a class of its own"),
    "PTO-C003": lambda: launch_timed(
        parse("func.func @f() {\nreturn\n}"), entry=None, args=[], blocks=1, profile="a5"
    ),
    "PTO-D198": push_without_a_scale,
    "PTO-S131": of("pto.tadd ins(%a, %a : {a}, {a}) outs(%d : {d})", a=_SMALL, d=_LARGE),
    "PTO-S162": lambda: Fractals(1, 5, 1, 1, 1, 1, 1, 1, small=True).check("load"),
    "PTO-S192": lambda: require_flat(
        Mover(new_core("a5")), GlobalTensor.of(Memory(Space.GM, 64), 0, pto.f32, (2, 2), (4, 1))
    ),
    "PTO-S193": members_of_another_shape,
    "PTO-T150": of("pto.tadd ins(%a, %a : {a}, {a}) outs(%a : {a})", a="vec, 8x32x!pto.hif8"),
    "PTO-T151": of(
        "pto.tadd ins(%a, %a : {a}, {a}) outs(%a : {a})",
        a="memref<8x32xindex, #pto.address_space<vec>>",
    ),
    "PTO-T160": of("%i = arith.index_cast %n : i64 to index\npto.set_mov_pad_val %i : index", n=1),
    "PTO-T191": lambda: pto.launch(parse(with_index("")), args=[np.zeros(4, np.int64)]),
    "PTO-T193": of(
        "%i = arith.index_cast %n : i64 to index\n%x = pto.load_scalar %p[%i] : {p} -> index",
        p="*i64, ub",
        n=0,
    ),
    "PTO-U240": lambda: bind(RecordedCall("TNOTHING", 0, (), ()), "a5"),
    "PTO-U302": no_cluster,
    "PTO-U303": lambda: Hello("node", "host", 1, "0.0", "3.0").require_alike(),
    "PTO-U304": lambda: WorkerPool.require_worker(cast(Any, SimpleNamespace(ready=()))),
    "PTO-U305": lambda: named("os:system"),
    "PTO-V170": lambda: pto.launch(parse(PADDED), args=[np.zeros(8, np.float32)]),
    "PTO-X020": of("%x = pto.vmi.unpack %v : {v} -> !pto.vreg<64xf32>", v=_LAID_OUT),
    "PTO-U246": lambda: st.find([Path("no/such/folder")]),
    "PTO-U323": lambda: scene._tensor("x", "in", SimpleNamespace(dtype="torch.float64", shape=())),
    "PTO-U248": lambda: cpp("no/such/kernel.cpp")["k"].source.builds("k"),
    "PTO-V150": of(
        "pto.tdequant ins(%a, %s, %s : {a}, {s}, {s}) outs(%d : {d})",
        a="vec, 8x32xi8",
        s="vec, 8x8xf32, valid=0x1",
        d="vec, 8x32xf32",
    ),
    "PTO-X172": of(
        '%r = pto.vmi.vadd %v, %v {pmode = "merge"} : {v}, {v} -> {v}', v="!pto.vmi.vreg<8xf32>"
    ),
    "PTO-X174": of(
        "pto.mte_l1_l0a_mx %a, %b, %n, %n, %n, %n : {a}, {b}, i64, i64, i64, i64",
        a="*f8E8M0FNU, l1",
        b="*f8E4M3FN, l0a",
        n=16,
    ),
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


def test_a_generator_that_fails_is_told(tmp_path: Path) -> None:
    (tmp_path / "gen_data.py").write_text("raise ValueError('no data')")
    folder = st.TestFolder(tmp_path, "a5", (), ())
    found = st.generate(folder, tmp_path / "work" / "copy", 10)
    assert found is not None and found.code == "PTO-U247" and "no data" in found.message


def test_tiles_that_find_no_place(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sync, "_ROUNDS", 0)
    with pytest.raises(PtoError) as caught:
        sync.insert(pto.parse_file(ADD), find_profile("a5"))
    assert caught.value.code == "PTO-U251"


@pto.kernel(profile="a5")
def copy(x: pto.Global[pto.f32], y: pto.Global[pto.f32]) -> None:
    t = pto.tile(8, 64, pto.f32)
    isa.tload(t, x)
    isa.tstore(y, t)


def test_a_launch_that_writes_what_another_reads() -> None:
    device = pto.Device("a5")
    x, y, z = (np.zeros((8, 64), np.float32) for _ in range(3))
    with watch(device) as found:
        device.stream().launch(copy, x, y)
        device.stream().launch(copy, z, x)
        device.synchronize()
    assert {d.code for d in found.findings()} == {"PTO-R032"}


def test_every_code_is_raised_by_a_test() -> None:
    """Tests name the code they expect; pages of whole programs are tests themselves."""
    named = codes_in("tests/[!t]*/**/*.py", "tests/test_[!c]*.py", "tests/t*/**/*.py")
    named |= codes_in("tests/**/*.pto", "tests/judging/**/*.txt") | {*COMMANDS, *PROGRAMS, *HOST}
    assert {*CODES} - named - {*TEXTS, *KERNELS, *WARNED} - {
        "PTO-R032",
        "PTO-U247",
        "PTO-U251",
    } == set()
