"""The files around an exported kernel: its launch, the host program, data, build file, README."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pto.cxx.export.folder import Argument, Exported

_CORES = {"a2a3": ("dav-c220", "MEMORY_BASE"), "a5": ("dav-c310", "REGISTER_BASE")}
_SHORT = ("half", "bfloat16_t")
_KINDS = {"float": "f32", "half": "f16", "bfloat16_t": "bf16"}  # elements with a tolerance
_TIMES = 10  # launches that are timed after the one whose results are compared


def _signature(made: Exported) -> str:
    given = [f"{_passed(a)} {a.name}" for a in made.arguments]
    return f"void launch_{made.name}({', '.join([*given, 'void* stream'])})"


def _passed(argument: Argument) -> str:
    """The type of an argument on the host, whose compiler has no short floats."""
    if argument.is_array:
        return "void*"
    return "float" if argument.type in _SHORT else argument.type


def launcher(made: Exported, entry: str) -> str:
    """The function of the kernel's file that the host calls."""
    given = ", ".join(f"({a.type}){a.name}" for a in made.arguments)
    call = f"    {entry}<<<{made.blocks}, nullptr, stream>>>({given});"
    return "\n".join(["", _signature(made), "{", call, "}", ""])


def host_program(made: Exported) -> str:
    """main.cpp: read, launch, compare, time."""
    arrays = [a for a in made.arguments if a.is_array]
    outputs = [a for a in arrays if a.tolerance is not None]
    makes = "\n".join(f'    Array {a.name}("{a.name}", {a.value.nbytes});' for a in arrays)
    judged = "\n".join(_compared(a) for a in outputs)
    given = [f"{a.name}.device" if a.is_array else _number(a) for a in made.arguments]
    text = _HOST.replace("SIGNATURE", _signature(made)).replace("SUITE", made.suite)
    text = text.replace("LAUNCH", f"launch_{made.name}({', '.join([*given, 'stream'])})")
    text = text.replace("ARRAYS", makes).replace("JUDGED", judged).replace("NAME", made.name)
    return text.replace("TIMES", str(_TIMES)).replace("PREDICTED", f"{made.us:.2f}")


def _number(argument: Argument) -> str:
    value = argument.value
    if isinstance(value, bool):
        return "true" if value else "false"
    return f"({_passed(argument)})({value!r})"


def _compared(a: Argument) -> str:
    assert a.tolerance is not None
    kind = _KINDS.get(a.type.rstrip("*").strip(), "bits") if a.tolerance.relative else "bits"
    allowed = f"{a.tolerance.relative!r}, {kind}"
    return f'    EXPECT_EQ({a.name}.wrong({allowed}), 0u) << "{a.name}: {a.tolerance}";'


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
#include <gtest/gtest.h>

SIGNATURE;

namespace {
const std::string kFolder = "../SUITE.case1/";

enum Kind { bits, f32, f16, bf16 };

float number(const char* at, Kind kind)
{
    uint32_t word = 0;
    float value;
    std::memcpy(&word, at, kind == f32 ? 4 : 2);
    if (kind == f16) {
        const uint32_t sign = (word & 0x8000) << 16, exponent = word >> 10 & 31, rest = word & 1023;
        if (exponent == 0) return (sign ? -1.0f : 1.0f) * std::ldexp((float)rest, -24);
        word = sign | (exponent == 31 ? 255 : exponent + 112) << 23 | rest << 13;
    }
    if (kind == bf16) word <<= 16;
    std::memcpy(&value, &word, 4);
    return value;
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
        const size_t size = host.size(), step = kind == bits ? 1 : kind == f32 ? 4 : 2;
        aclrtMemcpy(host.data(), size, device, size, ACL_MEMCPY_DEVICE_TO_HOST);
        const std::string output = kFolder + "output_" + name + ".bin";
        std::ofstream(output, std::ios::binary).write(host.data(), size);
        std::vector<char> golden(size);
        const std::string wanted = kFolder + "golden_" + name + ".bin";
        std::ifstream(wanted, std::ios::binary).read(golden.data(), size);
        size_t found = 0;
        double scale = 0;
        for (size_t at = 0; kind != bits && at < size; at += step) {
            const double e = number(&golden[at], kind);
            if (std::isfinite(e)) scale = std::fmax(scale, std::fabs(e));
        }
        for (size_t at = 0; at < size; at += step) {
            if (std::memcmp(&host[at], &golden[at], step) == 0) continue;
            const double a = kind == bits ? host[at] : number(&host[at], kind);
            const double e = kind == bits ? golden[at] : number(&golden[at], kind);
            const double most = allowed * std::fmax(std::fabs(e), scale * 1e-3);
            const bool near = std::fabs(a - e) <= most || (std::isnan(a) && std::isnan(e));
            if (kind != bits && near) continue;
            const char* label = found++ == 0 ? name.c_str() : nullptr;
            if (label) std::printf("%s[%zu] is %g, expected %g\\n", label, at / step, a, e);
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
ARRAYS
    LAUNCH;
    aclrtSynchronizeStream(stream);
JUDGED
#ifndef PTO_MACHINE
    aclrtEvent begin, end;
    float ms = 0;
    aclrtCreateEvent(&begin);
    aclrtCreateEvent(&end);
    aclrtRecordEvent(begin, stream);
    for (int n = 0; n < TIMES; ++n) LAUNCH;
    aclrtRecordEvent(end, stream);
    aclrtSynchronizeStream(stream);
    aclrtEventElapsedTime(&ms, begin, end);
    std::printf("NAME: %.2f us a launch, PREDICTED us predicted\\n", ms * 1000 / TIMES);
#endif
    }
    aclrtDestroyStream(stream);
    aclrtResetDevice(0);
    aclFinalize();
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
    arch = made.profile
    board = {"a2a3": "a3"}.get(arch, arch)
    return f"""\
# {made.name} for {made.device}

- On a board: `PTO_ISA=<checkout of pto-isa> sh run.sh` builds, runs, compares and prints the time.
- Inside pto-isa: copy this folder to `tests/npu/{arch}/src/st/testcase/{made.name}`, list it in
  `ALL_TESTCASES` there, then `python3 tests/script/run_st.py -r npu -v {board} -t {made.name}`.
- Without a board: `pto cxx st .` runs the same files on the PTO machine.
- `{made.name}_kernel.cpp` is the kernel, launched with {made.blocks} blocks; `main.cpp` the host.
- `data/` holds the inputs and `golden_*`, the results of the run that this was made from.
- Compared: {shown}.
- Predicted: {made.us:.2f} us a launch on {made.device}.
"""
