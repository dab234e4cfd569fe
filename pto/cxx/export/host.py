"""The files around an exported kernel: its launch, the host program, data, build file, README."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pto.cxx.export.folder import Argument, Exported
    from pto.cxx.export.tolerance import ExportTolerance

_CORES = {"a2a3": ("dav-c220", "MEMORY_BASE"), "a5": ("dav-c310", "REGISTER_BASE")}
_ALIGNED = 512  # bytes, of arrays in a window
_KINDS = {"float": "f32", "half": "f16", "bfloat16_t": "bf16"}  # elements with a tolerance


def _passed(argument: Argument) -> str:
    """The type of an argument on the host; its compiler has no 16-bit floats."""
    short = argument.type in ("half", "bfloat16_t")
    return "void*" if argument.is_array else "float" if short else argument.type


def _signature(made: Exported) -> str:
    given = [f"{_passed(a)} {a.name}" for a in made.arguments]
    return f"void launch_{made.name}({', '.join([*given, 'void* stream'])})"


def launcher(made: Exported, entry: str) -> str:
    """The functions of the kernel's file that the host calls."""
    given = ", ".join(f"({a.type}){a.name}" for a in made.arguments)
    call = f"    {entry}<<<{made.blocks}, nullptr, stream>>>({given});"
    moved = _MOVED.replace("NAME", made.name) if made.on_ranks else ""
    return "\n".join(["", _signature(made), "{", call, "}", moved])


def host_program(made: Exported) -> str:
    """main.cpp: read, launch, compare, time."""
    ends, declared = dict.fromkeys(range(len(made.ranks)), 0), list[str]()
    for a in made.arrays:
        place = f", rank == {a.rank}" * made.on_ranks
        if a.shared:
            place += f", (void*)(windows[{a.rank}] + {ends[a.rank]})"
            ends[a.rank] += -(-a.value.nbytes // _ALIGNED) * _ALIGNED
        declared.append(f'    Array {a.file}("{a.file}", {a.value.nbytes}{place});')
    calls = [
        f"if (rank == {rank}) " * made.on_ranks
        + f"launch_{made.name}({', '.join([*map(_given, own), 'stream'])});"
        for rank, own in enumerate(made.ranks)
    ]
    words = {
        "SIGNATURE": _signature(made),
        "SUITE": made.suite,
        "CASE": made.case,
        "LAUNCH": "\n        ".join(calls),
        "ARRAYS": "\n".join(declared),
        "JUDGED": "\n".join(_compared(a, a.tolerance) for a in made.arrays if a.tolerance),
        "PREDICTED": made.predicted,
        "SIGNALS": _SIGNALS * any(isinstance(a.value, str) for a in made.arguments),
        "WINDOW": str(max(ends.values())),
        "COUNT": str(len(made.ranks)),
        "NAME": made.name,
    }
    text = _HOST
    for known in (_ON_RANKS if made.on_ranks else _ALONE, words):
        text = re.sub("|".join(known), lambda found, known=known: known[found[0]], text)
    return text


def _given(a: Argument) -> str:
    return f"{a.file}.device" if a.is_array else _number(a)


def _number(a: Argument) -> str:
    """A number of Python or NumPy, or the text of an expression, in C++."""
    if isinstance(a.value, str):
        return f"({_passed(a)})({a.value})"
    if a.type not in _KINDS:
        return f"({_passed(a)})({int(a.value)})"
    text = repr(float(a.value)).replace("inf", "INFINITY").replace("nan", "NAN")
    return f"({_passed(a)})({text})"


def _compared(a: Argument, how: ExportTolerance) -> str:
    kind = _KINDS.get(a.type.rstrip("* "), "bits") if how.relative else "bits"
    return f'    EXPECT_EQ({a.file}.wrong({how.relative!r}, {kind}), 0u) << "{a.file}: {how}";'


_SIGNALS = """\
    uint64_t ffts = 0; uint32_t length = 0; rtGetC2cCtrlAddr(&ffts, &length);
"""
_HOST = """\
// The host program of NAME: it runs the kernel on the data of gen_data.py, compares the results
// with those of the run that the folder was made from, and prints the time beside the prediction.
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <string>
#include <vector>
#include <acl/acl.h>
#include <runtime/rt.h>
#include <gtest/gtest.h>
INCLUDED
SIGNATURE;

namespace {
const std::string kFolder = "../SUITE.CASE/";
aclrtStream stream = nullptr;
MOVED
enum Kind { bits, f32, f16, bf16 };

double number(const std::vector<char>& bytes, size_t n, Kind kind)
{
    const size_t step = kind == bits ? 1 : kind == f32 ? 4 : 2;
    uint32_t word = 0;
    std::memcpy(&word, &bytes[n * step], step);
    const uint32_t special = (word & 0x7c00) == 0x7c00 ? 0x7f800000 : 0;
    if (kind == bits) return word;
    if (kind == bf16) word <<= 16;
    if (kind == f16) word = (word & 0x8000) << 16 | (word & 0x7fff) << 13 | special;
    float value;
    std::memcpy(&value, &word, 4);
    return kind == f16 ? value * 0x1p112 : value;
}

// An array of this rank, or of another one; `window` is its address where other ranks reach it.
struct Array {
    std::string name;
    std::vector<char> host;
    void *own = nullptr, *device;

    Array(const std::string& label, size_t bytes, bool mine = true, void* window = nullptr)
        : name(label), host(mine ? bytes : 0), device(window)
    {
        if (!mine) return;
        std::ifstream file(kFolder + name + ".bin", std::ios::binary);
        file.read(host.data(), bytes);
        EXPECT_TRUE(file.gcount() == (std::streamsize)bytes) << name << ".bin: run gen_data.py";
        aclrtMalloc(&own, bytes + 8, ACL_MEM_MALLOC_HUGE_FIRST);
        aclrtMemcpy(own, bytes, host.data(), bytes, ACL_MEMCPY_HOST_TO_DEVICE);
        if (window) move(window, own, bytes);
        else device = own;
    }

    ~Array() { aclrtFree(own); }

    // Copies the result back and counts the elements that differ by more than a relative error.
    size_t wrong(double allowed, Kind kind)
    {
        const size_t size = host.size(), count = size / (kind == bits ? 1 : kind == f32 ? 4 : 2);
        if (size && device != own) move(own, device, size);
        aclrtMemcpy(host.data(), size, own, size, ACL_MEMCPY_DEVICE_TO_HOST);
        const std::string ends = name + ".bin";
        if (size) std::ofstream(kFolder + "output_" + ends, std::ios::binary).write(&host[0], size);
        std::vector<char> golden(size);
        std::ifstream(kFolder + "golden_" + ends, std::ios::binary).read(golden.data(), size);
        double scale = 0;
        for (size_t n = 0; n < count; ++n) {
            const double e = std::fabs(number(golden, n, kind));
            if (std::isfinite(e)) scale = std::fmax(scale, e);
        }
        size_t found = 0;
        for (size_t n = 0; n < count; ++n) {
            const double a = number(host, n, kind), e = number(golden, n, kind);
            const double most = allowed * std::fmax(std::fabs(e), scale * 1e-3);
            if (a == e || (std::isnan(a) && std::isnan(e)) || std::fabs(a - e) <= most) continue;
            if (!found++) std::printf("%s[%zu] is %g, expected %g\\n", name.c_str(), n, a, e);
        }
        return found;
    }
};

// The time of a launch in microseconds.
template <class Run> double timed(int count, const Run& run)
{
    aclrtEvent begin, end;
    float ms = 0;
    aclrtCreateEvent(&begin), aclrtCreateEvent(&end);
    aclrtRecordEvent(begin, stream);
    for (int n = 0; n < count; ++n) run();
    aclrtRecordEvent(end, stream);
    aclrtSynchronizeStream(stream);
    aclrtEventElapsedTime(&ms, begin, end);
    return ms * 1000 / count;
}
} // namespace

TEST(SUITE, CASE)
{
BEGIN
    {
SIGNALSARRAYS
    const auto run = [&] {
        LAUNCH
    };
    barrier();
    const double first = timed(1, run); // the launch whose results are compared
    barrier();
JUDGED
#ifndef PTO_MACHINE
    std::printf("NAME: %.2f us a launch, PREDICTED\\n", MEASURED);
#endif
    }
END
}
"""
_ALONE = {
    "INCLUDED": "",
    "MOVED": "void move(void*, void*, size_t) {} // memory of one device is in no window\n",
    "BEGIN": """\
    aclInit(nullptr);
    aclrtSetDevice(0);
    aclrtCreateStream(&stream);
    const auto barrier = [] {};""",
    "MEASURED": "timed(10, run)",
    "END": "    aclrtDestroyStream(stream), aclrtResetDevice(0), aclFinalize();",
}
_ON_RANKS = {
    "INCLUDED": """
// Ranks and their windows: the header of pto-isa's tests of communication, as a host includes it.
#define PTO_COMM_ST_SKIP_SDMA_WORKSPACE_MANAGER
#ifndef AICORE
#define AICORE
#define __gm__
#endif
#if defined(PTO_MACHINE) && !__has_include("../common.hpp")
#include <pto/machine/test_context.hpp>
#else
#include "../common.hpp"
int main(int argc, char** argv)
{
    CommMpiInit(&argc, &argv);
    ::testing::InitGoogleTest(&argc, argv);
    const int result = RUN_ALL_TESTS();
    CommMpiFinalize();
    return result;
}
#endif
void move_NAME(void* to, void* from, size_t bytes, void* stream);""",
    "MOVED": """\
void move(void* to, void* from, size_t bytes) { move_NAME(to, from, bytes, stream); }
""",
    "BEGIN": """\
    EXPECT_TRUE(ForkAndRunWithHcclRootInfo(COUNT, 0, 0, [](int rank, const HcclRootInfo* root) {
    TestContext context; // HCCL_BUFFSIZE sets the size of windows
    const bool begun = context.Init(rank, COUNT, COUNT, 0, root);
    if (!begun || context.hostCtx.winSize < WINDOW) return false;
    const uint64_t* windows = context.hostCtx.windowsIn;
    stream = context.stream;
    const auto barrier = [&] { HcclHostBarrier(context.comm, stream); };""",
    "MEASURED": "first",
    "END": "    return context.Finalize();\n    }));",
}
_MOVED = """
// Copies between a window and other memory: the host may not reach windows.
__global__ AICORE void move_words(__gm__ int64_t* to, __gm__ int64_t* from, int64_t count)
{
    for (int64_t n = 0; n < count; ++n) to[n] = from[n];
    pipe_barrier(PIPE_ALL);
}

void move_NAME(void* to, void* from, size_t bytes, void* stream)
{
    move_words<<<1, nullptr, stream>>>((int64_t*)to, (int64_t*)from, (bytes + 7) / 8);
}
"""


def data_script(made: Exported) -> str:
    """gen_data.py: the data of the folder, copied to where the host program reads them."""
    return f'''\
"""Copies inputs and expected outputs to the folder that the host program reads."""

import shutil
from pathlib import Path

places = Path(__file__).resolve().parent, Path("../testcase/{made.name}")
data = next(p / "data" for p in places if (p / "data").is_dir())
shutil.copytree(data, "{made.suite}.{made.case}", dirs_exist_ok=True)
'''


def build_file(made: Exported) -> str:
    """CMakeLists.txt: one line inside pto-isa's system tests, a project of its own elsewhere."""
    arch, base = _CORES.get(made.profile, _CORES["a2a3"])
    arch += "" if made.kind == "mix" else f"-{made.kind}"
    several = made.on_ranks
    command, mix = "comm" if several else made.kind, made.kind == "mix" and not several
    library = f"{made.name}_kernel{'_mix' * mix}"
    chosen = f"    set(CCE_AICORE_ARCH {arch})\n" * several
    windows = f" $ENV{{PTO_ISA}}/tests/npu/{made.profile}/comm/st/testcase/tput" * several
    return f"""\
# Inside {_tests(made)} of pto-isa this is one line; run.sh builds it alone.
if(COMMAND pto_{command}_st)
{chosen}    pto_{command}_st({made.name})
    return()
endif()
cmake_minimum_required(VERSION 3.16)
set(CMAKE_C_COMPILER bisheng)
set(CMAKE_CXX_COMPILER bisheng)
project({made.name})
find_package(GTest REQUIRED)
set(ASCEND $ENV{{ASCEND_HOME_PATH}})
include_directories($ENV{{PTO_ISA}}/include ${{ASCEND}}/include ${{ASCEND}}/pkg_inc
    ${{ASCEND}}/pkg_inc/runtime ${{ASCEND}}/pkg_inc/profiling{windows})
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${{CMAKE_BINARY_DIR}}/bin)
add_library({library} SHARED {made.name}_kernel.cpp)
target_compile_options({library} PRIVATE -xcce -O2 -std=c++17 -D{base}
    --cce-aicore-arch={arch} -Xhost-start -Xhost-end
    "SHELL:-mllvm -cce-aicore-stack-size=0x8000"
    "SHELL:-mllvm -cce-aicore-function-stack-size=0x8000"
    "SHELL:-mllvm -cce-aicore-record-overflow=true"
    "SHELL:-mllvm -cce-aicore-addr-transform"
    "SHELL:-mllvm -cce-aicore-dcci-insert-for-scalar=false")
target_link_options({library} PRIVATE --cce-fatobj-link)
add_executable({made.name} main.cpp)
target_compile_options({made.name} PRIVATE -xc++ -std=c++17)
target_link_directories({made.name} PRIVATE ${{ASCEND}}/lib64)
target_link_libraries({made.name} PRIVATE {library} runtime stdc++ ascendcl m tiling_api platform
    c_sec dl nnopbase GTest::gtest {"hcomm" if several else "GTest::gtest_main"} pthread)
"""


def _tests(made: Exported) -> str:
    """The folder of pto-isa's system tests for such a launch."""
    return f"tests/npu/{made.profile}/{'comm' if made.on_ranks else 'src'}/st/testcase"


def script(made: Exported) -> str:
    """run.sh: everything on a board with one command."""
    started = f"mpirun -n {len(made.ranks)} " * made.on_ranks
    return f"""\
#!/bin/sh
# Builds and runs {made.name} on a board. PTO_ISA names a checkout of pto-isa; the environment of
# CANN is set: source /usr/local/Ascend/ascend-toolkit/set_env.sh
set -e
cd "$(dirname "$0")"
cmake -B build -DCMAKE_BUILD_TYPE=Release && cmake --build build
cd build && python3 ../gen_data.py && cd bin && {started}./{made.name}
"""


def readme(made: Exported) -> str:
    """README.md, ten lines."""
    board = {"a2a3": "a3"}.get(made.profile, made.profile)
    many = len(made.ranks)
    test = f"-n {many} -t comm/{made.name}" if many > 1 else f"-t {made.name}"
    ranks, option = (f" on each of {many} ranks", f" --ranks {many}") if many > 1 else ("", "")
    return f"""\
# {made.name} for {made.device}

- On a board: `PTO_ISA=<checkout of pto-isa> sh run.sh` builds, runs, compares and prints the time.
- Inside pto-isa: copy this to `{_tests(made)}/{made.name}`, list it
  in `ALL_TESTCASES` there, then `python3 tests/script/run_st.py -r npu -v {board} {test}`.
- Without a board: `pto cxx st .{option}` runs the same files on the PTO machine.
- `{made.name}_kernel.cpp`, the kernel, runs {made.blocks} blocks{ranks}; `main.cpp` is the host.
- `data/` holds the inputs and `golden_*`, the results of the run that this was made from.
- Compared: {made.compared}.
- A launch on {made.device}: {made.predicted}.
"""
