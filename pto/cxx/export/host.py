"""The files around an exported kernel: its launch, the host program, data, build file, README."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pto.cxx.export.folder import Argument, Exported
    from pto.cxx.export.tolerance import ExportTolerance

_CORES = {"a2a3": ("dav-c220", "MEMORY_BASE"), "a5": ("dav-c310", "REGISTER_BASE")}
_KINDS = {"float": "f32", "half": "f16", "bfloat16_t": "bf16"}  # elements with a tolerance


def _passed(argument: Argument) -> str:
    """The type of an argument on the host; its compiler has no 16-bit floats."""
    short = argument.type in ("half", "bfloat16_t")
    return "void*" if argument.is_array else "float" if short else argument.type


def _signature(made: Exported) -> str:
    given = [f"{_passed(a)} {a.name}" for a in made.arguments]
    return f"void launch_{made.name}({', '.join([*given, 'void* stream'])})"


def launcher(made: Exported, entry: str) -> str:
    """The function of the kernel's file that the host calls."""
    given = ", ".join(f"({a.type}){a.name}" for a in made.arguments)
    call = f"    {entry}<<<{made.blocks}, nullptr, stream>>>({given});"
    return "\n".join(["", _signature(made), "{", call, "}", ""])


def host_program(made: Exported) -> str:
    """main.cpp: read, launch, compare, time."""
    arrays = [a for a in made.arguments if a.is_array]
    given = [f"{a.name}.device" if a.is_array else _number(a) for a in made.arguments]
    words = {
        "SIGNATURE": _signature(made),
        "SUITE": made.suite,
        "LAUNCH": f"launch_{made.name}({', '.join([*given, 'stream'])})",
        "ARRAYS": "\n".join(f'    Array {a.name}("{a.name}", {a.value.nbytes});' for a in arrays),
        "JUDGED": "\n".join(_compared(a, a.tolerance) for a in arrays if a.tolerance),
        "NAME": made.name,
        "PREDICTED": f"{made.us:.2f}",
        "SIGNALS": _SIGNALS * any(isinstance(a.value, str) for a in made.arguments),
    }
    return re.sub("|".join(words), lambda found: words[found[0]], _HOST)


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
    return f'    EXPECT_EQ({a.name}.wrong({how.relative!r}, {kind}), 0u) << "{a.name}: {how}";'


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

SIGNATURE;

namespace {
const std::string kFolder = "../SUITE.case1/";
const int kTimed = 10; // launches after the one whose results are compared

enum Kind { bits, f32, f16, bf16 };

std::vector<double> numbers(const std::vector<char>& bytes, Kind kind)
{
    const size_t step = kind == bits ? 1 : kind == f32 ? 4 : 2;
    std::vector<double> found(bytes.size() / step);
    for (size_t n = 0; n < found.size(); ++n) {
        uint32_t word = 0;
        float value;
        std::memcpy(&word, &bytes[n * step], step);
        const uint32_t special = (word & 0x7c00) == 0x7c00 ? 0x7f800000 : 0;
        if (kind == bf16) word <<= 16;
        if (kind == f16) word = (word & 0x8000) << 16 | (word & 0x7fff) << 13 | special;
        std::memcpy(&value, &word, 4);
        found[n] = kind == bits ? word : kind == f16 ? value * 0x1p112 : value;
    }
    return found;
}

struct Array {
    std::string name;
    std::vector<char> host;
    void* device = nullptr;

    Array(const std::string& label, size_t bytes) : name(label), host(bytes)
    {
        std::ifstream file(kFolder + name + ".bin", std::ios::binary);
        file.read(host.data(), bytes);
        EXPECT_TRUE(file.gcount() == (std::streamsize)bytes) << name << ".bin: run gen_data.py";
        aclrtMalloc(&device, bytes, ACL_MEM_MALLOC_HUGE_FIRST);
        aclrtMemcpy(device, bytes, host.data(), bytes, ACL_MEMCPY_HOST_TO_DEVICE);
    }

    ~Array() { aclrtFree(device); }

    // Copies the result back and counts the elements that differ by more than a relative error.
    size_t wrong(double allowed, Kind kind)
    {
        const size_t size = host.size();
        aclrtMemcpy(host.data(), size, device, size, ACL_MEMCPY_DEVICE_TO_HOST);
        const std::string output = kFolder + "output_" + name + ".bin";
        std::ofstream(output, std::ios::binary).write(host.data(), size);
        std::vector<char> golden(size);
        const std::string wanted = kFolder + "golden_" + name + ".bin";
        std::ifstream(wanted, std::ios::binary).read(golden.data(), size);
        const std::vector<double> a = numbers(host, kind), e = numbers(golden, kind);
        double scale = 0;
        for (double value : e)
            if (std::isfinite(value)) scale = std::fmax(scale, std::fabs(value));
        size_t found = 0;
        for (size_t n = 0; n < a.size(); ++n) {
            const double most = allowed * std::fmax(std::fabs(e[n]), scale * 1e-3);
            const bool both_nan = std::isnan(a[n]) && std::isnan(e[n]);
            if (a[n] == e[n] || both_nan || std::fabs(a[n] - e[n]) <= most) continue;
            if (found++) continue;
            std::printf("%s[%zu] is %g, expected %g\\n", name.c_str(), n, a[n], e[n]);
        }
        return found;
    }
};
} // namespace

TEST(SUITE, case1)
{
    aclrtStream stream;
    aclInit(nullptr);
    aclrtSetDevice(0);
    aclrtCreateStream(&stream);
    {
SIGNALSARRAYS
    LAUNCH;
    aclrtSynchronizeStream(stream);
JUDGED
#ifndef PTO_MACHINE
    aclrtEvent begin, end;
    float ms = 0;
    aclrtCreateEvent(&begin), aclrtCreateEvent(&end);
    aclrtRecordEvent(begin, stream);
    for (int n = 0; n < kTimed; ++n) LAUNCH;
    aclrtRecordEvent(end, stream);
    aclrtSynchronizeStream(stream);
    aclrtEventElapsedTime(&ms, begin, end);
    std::printf("NAME: %.2f us a launch, PREDICTED us predicted\\n", ms * 1000 / kTimed);
#endif
    }
    aclrtDestroyStream(stream), aclrtResetDevice(0), aclFinalize();
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
shutil.copytree(data, "{made.suite}.case1", dirs_exist_ok=True)
'''


def build_file(made: Exported) -> str:
    """CMakeLists.txt: one line inside pto-isa's system tests, a project of its own elsewhere."""
    arch, base = _CORES.get(made.profile, _CORES["a2a3"])
    side = "" if made.kind == "mix" else f"-{made.kind}"
    library = f"{made.name}_kernel{'_mix' if made.kind == 'mix' else ''}"
    return f"""\
# Inside tests/npu/<arch>/src/st/testcase of pto-isa this is one line; run.sh builds it alone.
if(COMMAND pto_{made.kind}_st)
    pto_{made.kind}_st({made.name})
    return()
endif()
cmake_minimum_required(VERSION 3.16)
set(CMAKE_C_COMPILER bisheng)
set(CMAKE_CXX_COMPILER bisheng)
project({made.name})
find_package(GTest REQUIRED)
set(ASCEND $ENV{{ASCEND_HOME_PATH}})
include_directories($ENV{{PTO_ISA}}/include ${{ASCEND}}/include ${{ASCEND}}/pkg_inc
    ${{ASCEND}}/pkg_inc/runtime ${{ASCEND}}/pkg_inc/profiling)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${{CMAKE_BINARY_DIR}}/bin)
add_library({library} SHARED {made.name}_kernel.cpp)
target_compile_options({library} PRIVATE -xcce -O2 -std=c++17 -D{base}
    --cce-aicore-arch={arch}{side} -Xhost-start -Xhost-end
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
    c_sec dl nnopbase GTest::gtest GTest::gtest_main pthread)
"""


def script(made: Exported) -> str:
    """run.sh: everything on a board with one command."""
    return f"""\
#!/bin/sh
# Builds and runs {made.name} on a board. PTO_ISA names a checkout of pto-isa; the environment of
# CANN is set: source /usr/local/Ascend/ascend-toolkit/set_env.sh
set -e
cd "$(dirname "$0")"
cmake -B build -DCMAKE_BUILD_TYPE=Release && cmake --build build
cd build && python3 ../gen_data.py && cd bin && ./{made.name}
"""


def readme(made: Exported) -> str:
    """README.md, ten lines."""
    shown = "; ".join(f"`{a.name}` {a.tolerance}" for a in made.arguments if a.tolerance)
    board = {"a2a3": "a3"}.get(made.profile, made.profile)
    return f"""\
# {made.name} for {made.device}

- On a board: `PTO_ISA=<checkout of pto-isa> sh run.sh` builds, runs, compares and prints the time.
- Inside pto-isa: copy this to `tests/npu/{made.profile}/src/st/testcase/{made.name}`, list it
  in `ALL_TESTCASES` there, then `python3 tests/script/run_st.py -r npu -v {board} -t {made.name}`.
- Without a board: `pto cxx st .` runs the same files on the PTO machine.
- `{made.name}_kernel.cpp` is the kernel, launched with {made.blocks} blocks; `main.cpp` the host.
- `data/` holds the inputs and `golden_*`, the results of the run that this was made from.
- Compared: {shown}.
- Predicted: {made.us:.2f} us a launch on {made.device}.
"""
