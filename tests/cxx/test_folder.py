"""Exported folders: what is written, what is refused, and that they run with the kernel's bits."""

from __future__ import annotations

import re
import subprocess
from functools import partialmethod
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

import pto
from examples import flash_attention, gemm_mx_fp4
from pto import isa
from pto.cli.main import main
from pto.cxx import compiler, header, st
from pto.cxx.export import cpp, folder
from pto.lang.kernel import Kernel
from pto.suite import pool
from pto.target.profile import profile

F32 = pto.Global[pto.f32, "m", "n"]


@pto.kernel(profile="a2a3")
def shifted_softmax(x: F32, shift: pto.Scalar[pto.f32], y: F32) -> None:
    """Sizes with names, a number, a grid of two axes, a row reduction."""
    i, j = pto.block_idx(0) * 16, pto.block_idx(1) * 64
    t = pto.load(x[i:, j:], 16, 64) + shift
    e = pto.exp(t - t.max(axis=1))
    pto.store(y[i:, j:], e / e.sum(axis=1))


@pto.kernel(profile="a2a3")
def both_sides(a: pto.Global[pto.f16], b: pto.Global[pto.f32], c: F32) -> None:
    """A product that the vector core completes, of edges too."""
    i = pto.block_idx() * 32
    t = pto.dot(pto.load(a[i:, :], 32, 32), pto.load(a[0:32, :], 32, 32))
    pto.store(c[i:, :], pto.relu(t + pto.load(b, 32)))


@pto.kernel(profile="a5")
def product(a: pto.Global[pto.bf16], b: pto.Global[pto.bf16], c: pto.Global[pto.f32]) -> None:
    pto.store(c, pto.dot(pto.load(a, 32, 32), pto.load(b, 32, 32)))


@pto.kernel(profile="a2a3")
def named(
    f32: pto.Global[pto.f32],
    stream: pto.Global[pto.f32],
    new: pto.Global[pto.f32],
    named: pto.Global[pto.f32],
) -> None:
    pto.store(named, pto.load(f32, 16, 64) + pto.load(stream, 16, 64))
    pto.store(new, pto.load(f32, 16, 64) * 2.0)


def rows() -> tuple[np.ndarray, np.ndarray]:
    x = np.random.default_rng(5).standard_normal((37, 100), dtype=np.float32)
    return x, np.zeros_like(x)


def test_a_folder_has_what_a_board_needs(tmp_path):
    x, y = rows()
    made = shifted_softmax[3, 2].export(x, 0.5, y, device="910b1", out=str(tmp_path / "out"))
    assert not y.any(), "the arguments stay as they are"
    expected = np.zeros_like(x)
    shifted_softmax[3, 2](x, 0.5, expected)
    assert (made.path / "data/golden_y.bin").read_bytes() == expected.tobytes()
    assert (made.path / "data/x.bin").read_bytes() == x.tobytes()
    assert not (made.path / "data/golden_x.bin").exists()
    kernel = (made.path / "shifted_softmax_kernel.cpp").read_text()
    assert "TROWSUM(" in kernel
    assert "<<<6, nullptr, stream>>>" in kernel
    assert "int64_t m, int64_t n" in kernel, "sizes with names are arguments"
    assert f"{made.us:.2f} us predicted" in (made.path / "main.cpp").read_text()
    assert "pto_vec_st(shifted_softmax)" in (made.path / "CMakeLists.txt").read_text()
    readme = (made.path / "README.md").read_text()
    assert len(readme.splitlines()) == 10
    assert "within 0.001: texp, trowexpanddiv approximated by the chip; trowsum in" in readme


def test_exact_kernels_are_compared_bit_by_bit(tmp_path):
    @pto.kernel(profile="a2a3")
    def doubled(x: pto.Global[pto.f32], y: pto.Global[pto.f32]) -> None:
        pto.store(y, pto.load(x, 16, 64) * 2.0)

    x = np.ones((16, 64), np.float32)
    made = doubled.export(x, np.zeros_like(x), out=str(tmp_path / "out"))
    assert "y.wrong(0.0, bits)" in (made.path / "main.cpp").read_text()


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0.5, "(float)(0.5)"),
        (np.float32(0.75), "(float)(0.75)"),
        (2, "(float)(2.0)"),
        (float("-inf"), "(float)(-INFINITY)"),
    ],
)
def test_numbers_of_python_and_numpy_are_written_in_full(tmp_path, number, text):
    @pto.kernel(profile="a2a3")
    def lowered(x: pto.Global[pto.f32], by: pto.Scalar[pto.f32], y: pto.Global[pto.f32]) -> None:
        pto.store(y, pto.max(pto.load(x, 16, 64), by))

    x = np.ones((16, 64), np.float32)
    made = lowered.export(x, number, np.zeros_like(x), out=str(tmp_path / "out"))
    assert f", {text}," in (made.path / "main.cpp").read_text()


def test_what_cannot_be_exported_is_said_before_anything_is_written(tmp_path):
    @pto.kernel(profile="a5")
    def number(a: pto.Global[pto.f16], i: pto.Global[pto.i32], c: pto.Global[pto.f32]) -> None:
        row = isa.tgetval(pto.load(i, 1, 8), 0)
        pto.store(c, pto.exp(pto.dot(pto.load(a[row:, :], 32, 32), pto.load(a[0:32, :], 32, 32))))

    a, i = np.ones((64, 32), np.float16), np.zeros((1, 8), np.int32)
    with pytest.raises(pto.PtoError) as caught:
        number.export(a, i, np.zeros((32, 32), np.float32), out=str(tmp_path / "out"))
    assert caught.value.code == "PTO-U249"
    assert "'pto.tgetval' gives the cube core a number of the other one" in str(caught.value)
    assert caught.value.diagnostics[0].loc is not None
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("name", ["a2a3", "a5"])
def test_a_function_that_uses_both_cores_is_exported_as_two(name, tmp_path):
    a, b = np.ones((40, 32), np.float16), np.ones(32, np.float32)
    c = np.zeros((40, 32), np.float32)
    made = both_sides.on(name)[2].export(a, b, c, out=str(tmp_path / "out"))
    kernel = (made.path / "both_sides_kernel.cpp").read_text()
    cube, vector = kernel.split("void both_sides_vector(")
    assert "TMATMUL(" in cube
    assert "TRELU(" not in cube
    assert "TRELU(" in vector
    assert "TMATMUL(" not in vector
    assert "pto_mix_st(both_sides)" in (made.path / "CMakeLists.txt").read_text()
    # a2a3 keeps slots and signals in global memory; a5 in the buffers of the consumer
    in_memory = name == "a2a3"
    assert ("set_ffts_base_addr(" in kernel) is in_memory
    assert ("rtGetC2cCtrlAddr(" in (made.path / "main.cpp").read_text()) is in_memory
    assert (made.path / "data/queue_slots.bin").exists() is in_memory
    assert (made.path / "data/golden_c.bin").exists()
    assert not (made.path / "data/golden_queue_slots.bin").exists()


def test_a_mask_is_passed_with_the_bytes_of_its_bits(tmp_path):
    """The C++ simulator reads the valid bytes of a mask as one stream of bits."""

    @pto.kernel(profile="a2a3")
    def chosen(x: F32, y: F32) -> None:
        t = pto.load(x, 16, 64)
        pto.store(y, pto.where(t > 0.0, t, t * 2.0 + 1.0))

    x = np.ones((16, 64), np.float32)
    made = chosen.export(x, np.zeros_like(x), out=str(tmp_path / "out"))
    kernel = (made.path / "chosen_kernel.cpp").read_text()
    assert re.search(r"uint8_t, 16, 32, .*_seen\(.*, \(.*\.GetValidCol\(\) \+ 7\) / 8\);", kernel)


def test_what_a_kernel_says_is_written(tmp_path):
    @pto.kernel(profile="a2a3")
    def said(x: F32, y: F32, count: pto.Scalar[pto.i32]) -> None:
        assert count > 0, "too few"
        print("count =", count)
        pto.store(y, pto.load(x, 16, 64) % 3.0)

    x = np.ones((16, 64), np.float32)
    made = said.export(x, np.zeros_like(x), 3, out=str(tmp_path / "out"))
    kernel = (made.path / "said_kernel.cpp").read_text()
    assert 'cce::printf("count = %d\\n", count);' in kernel
    assert "trap();" in kernel
    # TREMS of the C++ simulator has one type for dst and tmp
    assert re.search(r"auto tmp_seen = (\w+);\n.*\n +TREMS\(\1, \w+, 3.0f, tmp_seen\);", kernel)


def test_a_strided_column_is_refused(tmp_path):
    """TLOAD of a column reads no stride along it (pto-isa, TLoadGm2ubDn2dn)."""

    @pto.kernel(profile="a2a3")
    def column(x: pto.Global[pto.f32], y: pto.Global[pto.f32]) -> None:
        pto.store(y, pto.load(x[:, 0:1], 16, 1) + 1.0)

    x = np.ones((16, 8), np.float32)
    with pytest.raises(pto.PtoError, match="src has a stride of 8 along its rows"):
        column.export(x, np.zeros((16, 1), np.float32), out=str(tmp_path / "out"))
    x = np.ones((16, 1), np.float32)
    made = column.export(x, np.zeros_like(x), out=str(tmp_path / "out"))
    assert "Layout::DN" in (made.path / "column_kernel.cpp").read_text()


def test_what_the_library_asserts_is_an_error_once_for_a_line(tmp_path):
    @pto.kernel(profile="a2a3")
    def columns(x: pto.Global[pto.f32], y: pto.Global[pto.f32]) -> None:
        for _ in range(3):
            pto.store(y, pto.load(x[:, 0:1], 16, 1) + 1.0)

    x = np.ones((16, 8), np.float32)
    with pytest.raises(pto.PtoError) as caught:
        columns.export(x, np.zeros((16, 1), np.float32), out=str(tmp_path / "out"))
    (finding,) = caught.value.diagnostics
    assert (finding.code, finding.severity) == ("PTO-L066", "error")
    assert "would not compile" in (finding.help or "")


def test_a_conversion_on_the_way_between_the_cores_is_refused_with_both_types(tmp_path):
    @pto.kernel(profile="a5")
    def narrowed(x: pto.Global[pto.f16], y: pto.Global[pto.f16]) -> None:
        t = pto.tile(32, 32, pto.f16)
        isa.tmov(t, pto.dot(pto.load(x, 32, 32), pto.load(x, 32, 32)))
        pto.store(y, t + t)

    x = np.ones((32, 32), np.float16)
    with pytest.raises(pto.PtoError, match=r"moves acc 32x32xf32 NZ .*to vec 32x32xf16 ND, which"):
        narrowed.export(x, np.zeros((32, 32), np.float16), out=str(tmp_path / "out"))


def test_data_may_decide_where_a_kernel_goes(tmp_path):
    """The predicted time is that of a run on the data."""

    @pto.kernel(profile="a2a3")
    def chosen(i: pto.Global[pto.i32], x: pto.Global[pto.f32], y: pto.Global[pto.f32]) -> None:
        pto.store(y, pto.load(x[isa.load_scalar(i, 0), :], 64))

    x = np.arange(256, dtype=np.float32).reshape(4, 64)
    number, y = np.array([2], np.int32), np.zeros((1, 64), np.float32)
    made = chosen.export(number, x, y, out=str(tmp_path / "out"))
    assert made.us > 0
    assert (made.path / "data/golden_y.bin").read_bytes() == x[2].tobytes()


def test_a_folder_with_files_is_left_alone(tmp_path, capsys):
    (tmp_path / "mine.txt").write_text("keep")
    arguments = ["--arg=a=rand:16x64", "--arg=b=rand:16x64", "--arg=c=zeros:16x64", "--arg=rows=16"]
    assert main(["export", "examples/add.pto", *arguments, "--out", str(tmp_path)]) == 2
    assert "PTO-U330" in capsys.readouterr().err
    assert [p.name for p in tmp_path.iterdir()] == ["mine.txt"]


@pytest.mark.usefixtures("a_compiler")
def test_exported_folders_run_with_the_bits_of_the_kernel(tmp_path, monkeypatch):
    """The vector core, the cube with bf16 and packed fp4, queues, one function for both, ranks,
    and names of arguments that C++ or the host program has other uses for."""
    x, y = rows()
    four = np.random.default_rng(8).standard_normal((4, 16, 64), dtype=np.float32)
    named.export(*four, out=str(tmp_path / "named"))
    shifted_softmax[3, 2].export(x, 0.5, y, out=str(tmp_path / "softmax"))
    a = np.random.default_rng(6).standard_normal((32, 32)).astype(ml_dtypes.bfloat16)
    product.export(a, a, np.zeros((32, 32), np.float32), out=str(tmp_path / "product"))

    half = np.random.default_rng(7).standard_normal((40, 32)).astype(np.float16)
    for name in ("a2a3", "a5"):
        kernel = both_sides.on(name)[2]
        into = np.zeros((40, 32), np.float32)
        kernel.export(half, np.ones(32, np.float32), into, out=str(tmp_path / f"both_{name}"))

    def exported(self, *args, blocks=1, folder="attention"):
        self.export(*args, blocks=blocks, out=str(tmp_path / folder))

    monkeypatch.setattr(Kernel, "run", exported)
    flash_attention.example("a2a3")
    monkeypatch.setattr(Kernel, "run", partialmethod(exported, folder="fp4"))
    gemm_mx_fp4.example("a5")
    for name in ("a2a3", "a5"):
        world, lists = ring(name, 3)
        passed_on.on(name).export(*lists, world=world, out=str(tmp_path / f"ranks_{name}"))
    written = {p.name for p in (tmp_path / "attention/data").iterdir()}
    assert "golden_o.bin" in written
    assert "golden_room.bin" not in written, "slots of a queue, at an offset for each block"
    cases = pool.run(st.suite(st.find([tmp_path]), "", 300.0), 1)
    assert [(c.name, c.outcome) for c in cases] == [
        ("attention/SCORES_AND_VALUESTest.case1", "exact"),
        ("both_a2a3/BOTH_SIDESTest.case1", "exact"),
        ("both_a5/BOTH_SIDESTest.case1", "exact"),
        ("fp4/GEMM_MXFP4Test.case1", "exact"),
        ("named/NAMEDTest.case1", "exact"),
        ("product/PRODUCTTest.case1", "exact"),
        ("ranks_a2a3/PASSED_ONTest.case1_3Ranks", "exact"),
        ("ranks_a5/PASSED_ONTest.case1_3Ranks", "exact"),
        ("softmax/SHIFTED_SOFTMAXTest.case1", "exact"),
    ], [d.message for c in cases for d in c.diagnostics]


@pto.kernel(profile="a5")
def small(x: pto.Global[pto.f32], y: pto.Global[pto.f8e4m3]) -> None:
    pto.store(y, pto.exp(pto.load(x, 16, 64)).to(pto.f8e4m3))


@pytest.mark.usefixtures("a_compiler")
def test_eight_bit_floats_may_differ_by_one_step_and_failed_calls_are_reported(tmp_path):
    """A chip may round to either neighbour; two steps, and NaN for a number, are wrong."""
    x = np.linspace(-3, 3, 1024, dtype=np.float32).reshape(16, 64)
    x[0, 0] = 20.0  # more than the largest number, which has the code before that of NaN
    changes = {"same": (0, 0), "one": (7, 1), "two": (7, 2), "nan": (0, 1)}
    for name, (at, steps) in changes.items():
        made = small.export(
            x, np.zeros((16, 64), ml_dtypes.float8_e4m3fn), out=str(tmp_path / name)
        )
        golden = made.path / "data/golden_y.bin"
        codes = np.fromfile(golden, np.uint8)
        assert codes[0] == 0x7E
        codes[at] += np.uint8(steps)
        codes.tofile(golden)
        assert "within one step: texp approximated" in (made.path / "README.md").read_text()
    failing = small.export(
        x, np.zeros((16, 64), ml_dtypes.float8_e4m3fn), out=str(tmp_path / "setup")
    )
    host = failing.path / "main.cpp"
    text = host.read_text()
    calls = set(re.findall(r"(CHECKED\()?(acl\w+)\(", text))
    assert {call for checked, call in calls if not checked} == {
        "aclrtFree", "aclrtDestroyStream", "aclrtResetDevice", "aclFinalize",
    }, "what ends a program may fail"  # fmt: skip
    host.write_text(text.replace("aclrtSetDevice(0)", "507033"))
    cases = pool.run(st.suite(st.find([tmp_path]), "", 300.0), 1)
    assert {c.group: c.outcome for c in cases} == {
        "same": "exact", "one": "near", "two": "wrong", "nan": "wrong", "setup": "wrong",
    }  # fmt: skip


@pto.kernel(profile="a2a3")
def passed_on(
    own: pto.Global[pto.f32],
    next_one: pto.Global[pto.f32],
    heard: pto.Global[pto.i32],
    told: pto.Global[pto.i32],
    y: pto.Global[pto.f32],
) -> None:
    """Each rank gives its rows to the next one, and doubles those that it gets."""
    staging = pto.tile(16, 64, pto.f32)
    isa.comm_tput(next_one[16:32, :], own[0:16, :], ping=staging)
    isa.fence_barrier_all("gm")
    isa.comm_tnotify(told, 1, "set")
    isa.comm_twait(heard, 1, "ge")
    pto.store(y, pto.load(own[16:32, :], 16, 64) * 2.0)


def ring(name: str, ranks: int) -> tuple[pto.World, list[list[np.ndarray]]]:
    world = pto.World(ranks, name)
    rows, signals = world.symmetric((32, 64), "f32"), world.symmetric((1,), "i32")
    for n, each in enumerate(rows):
        each[:16] = n + 1
    after = [(n + 1) % ranks for n in range(ranks)]
    made = [
        [rows[n], rows[k], signals[n], signals[k], np.zeros((16, 64), np.float32)]
        for n, k in enumerate(after)
    ]
    return world, made


def test_a_folder_of_ranks_has_the_arrays_of_each(tmp_path):
    world, lists = ring("a2a3", 3)
    made = passed_on.export(*lists, world=world, out=str(tmp_path / "out"))
    assert not lists[0][4].any(), "the arguments stay as they are"
    for rank in range(3):
        before = (rank + 2) % 3 + 1
        golden = np.fromfile(made.path / f"data/golden_y_{rank}.bin", np.float32)
        assert (golden == 2.0 * before).all()
        assert np.fromfile(made.path / f"data/own_{rank}.bin", np.float32)[0] == rank + 1
    host = (made.path / "main.cpp").read_text()
    assert "TEST(PASSED_ONTest, case1_3Ranks)" in host
    assert 'Array own_1("own_1", 8192, rank == 1, (void*)(windows[1] + 0));' in host
    assert 'Array heard_1("heard_1", 4, rank == 1, (void*)(windows[1] + 8192));' in host
    assert 'Array y_1("y_1", 4096, rank == 1);' in host, "no other rank reaches it"
    call = "launch_passed_on(own_1.device, own_2.device, heard_1.device, heard_2.device,"
    assert f"if (rank == 1) {call} y_1.device," in host
    assert "pto_comm_st(passed_on)" in (made.path / "CMakeLists.txt").read_text()
    assert "mpirun -n 3 ./passed_on" in (made.path / "run.sh").read_text()
    assert "tests/npu/a2a3/comm/st/testcase/passed_on" in (made.path / "README.md").read_text()


def test_no_folder_is_written_for_a_profile_that_is_no_chip(tmp_path):
    x, y = rows()
    with pytest.raises(pto.PtoError, match="cpu is not a chip, so no board runs it") as caught:
        shifted_softmax.on("cpu")[3, 2].export(x, 0.5, y, out=str(tmp_path / "out"))
    assert caught.value.code == "PTO-C002"
    assert not (tmp_path / "out").exists()


def test_ranks_need_lists_of_arguments_and_one_program(tmp_path):
    world, lists = ring("a2a3", 3)
    with pytest.raises(pto.PtoError, match="2 lists of arguments for 3 ranks"):
        passed_on.export(*lists[:2], world=world, out=str(tmp_path / "out"))
    assert not (tmp_path / "out").exists()


def test_transfers_that_go_on_by_themselves_are_refused():
    """They need the workspace of an engine, which a host asks its driver for."""
    tile = "!pto.tile_buf<vec, 1x256xi8>"
    text = f"""func.func @started(%room: !pto.ptr<i8>) attributes {{pto.entry}} {{
      %t = pto.alloc_tile : {tile}
      %s = pto.comm.build_async_session(%t, %room : {tile}, !pto.ptr<i8>) -> !pto.async_session
      return
    }}"""
    with pytest.raises(pto.PtoError, match="a workspace that the host gets from the driver"):
        cpp(pto.parse(text), profile("a2a3"))


def test_addresses_out_of_a_table_are_refused():
    text = """func.func @far(%table: !pto.ptr<i64>, %y: !pto.ptr<f32>) attributes {pto.entry} {
      %c0 = arith.constant 0 : index
      %a = pto.load_scalar %table[%c0] : !pto.ptr<i64> -> i64
      %p = pto.castptr %a : i64 -> !pto.ptr<f32>
      %x = pto.load_scalar %p[%c0] : !pto.ptr<f32> -> f32
      pto.store_scalar %x, %y[%c0] : !pto.ptr<f32>, f32
      return
    }"""
    with pytest.raises(pto.PtoError, match="a number that is an address here is none on a board"):
        cpp(pto.parse(text), profile("a2a3"))
    own = text.replace("%a = pto.load_scalar %table[%c0] : !pto.ptr<i64> -> i64", "").replace(
        "%p = pto.castptr %a : i64",
        "%a = pto.castptr %y : !pto.ptr<f32> -> i64\n%p = pto.castptr %a : i64",
    )
    assert "(__gm__ float*)" in cpp(pto.parse(own), profile("a2a3"))


def test_cpp_of_named_sizes_and_numbers_needs_no_arguments(tmp_path, capsys):
    path = tmp_path / "k.py"
    path.write_text(
        "import pto\nF = pto.Global[pto.f32, 'm', 'n']\n@pto.kernel(profile='a2a3')\n"
        "def scaled(x: F, s: pto.Scalar[pto.f32], y: F):\n"
        "    pto.store(y, pto.load(x, 16, 48) * s)\n"
    )
    assert main(["fmt", "--cpp", f"{path}:scaled"]) == 0
    signature = "scaled(__gm__ float* x, float s, __gm__ float* y, int64_t m, int64_t n)"
    assert signature in capsys.readouterr().out


@pytest.mark.parametrize("ranks", [[], ["RANKS"]], ids=["alone", "ranks"])
@pytest.mark.usefixtures("a_compiler")
def test_the_host_program_is_cpp_by_itself(ranks, tmp_path):
    """The words in capitals are macros of a compiler where no export has replaced them."""
    words = ["SIGNATURE void launch()", "MEASURED first", "WINDOW 0", "COUNT 2", *ranks]
    words += ["LAUNCH launch();", "ARRAYS", "JUDGED"]
    lines = [f"#include <{header.PRELUDE}>", *(f"#define {word}" for word in words)]
    (tmp_path / "defined.hpp").write_text("\n".join([*lines, ""]))
    own, include = compiler.find(), header.write(tmp_path / "include")
    command = [own.path, *own.flags("a2a3"), "-DPTO_MACHINE", f"-I{include}", "-fsyntax-only"]
    source = Path(folder.__file__).with_name("template") / "main.cpp"
    subprocess.run([*command, "-include", str(tmp_path / "defined.hpp"), str(source)], check=True)
