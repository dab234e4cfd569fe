"""The files around an exported kernel: its launch, the host program, data, build file, README.

`host.cpp` is the host program and `windows.cpp` the part of a kernel that ranks need: C++ with
words in capitals for what an export knows. `#ifdef RANKS` is decided when they are written.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pto.cxx.export.folder import Argument, Exported
    from pto.cxx.export.tolerance import ExportTolerance

_CORES = {"a2a3": ("dav-c220", "MEMORY_BASE"), "a5": ("dav-c310", "REGISTER_BASE")}
_ALIGNED = 512  # bytes, of arrays in a window
_KINDS = ("f32", "f16", "bf16")  # elements that the host program compares as numbers
_RANKS = re.compile(
    r"^#ifdef RANKS\n(.*?)(?:^#else // RANKS\n(.*?))?^#endif // RANKS\n", re.DOTALL | re.MULTILINE
)


def _filled(file: str, made: Exported, **words: str) -> str:
    """The text of a file beside this one, for ranks or for one device, with its words replaced."""
    text = Path(__file__).with_name(file).read_text(encoding="utf-8")
    chosen = _RANKS.sub(lambda found: found[1 if made.on_ranks else 2] or "", text)
    words["NAME"] = made.name
    return re.sub("|".join(words), lambda found: words[found[0]], chosen)


def _passed(argument: Argument) -> str:
    """The type of an argument on the host; its compiler has no 16-bit floats."""
    kind = argument.dtype
    short = kind is not None and kind.is_float and kind.bits < 32
    return "void*" if argument.is_array else "float" if short else argument.type


def _signature(made: Exported) -> str:
    given = [f"{_passed(a)} {a.name}" for a in made.arguments]
    return f"void launch_{made.name}({', '.join([*given, 'void* stream'])})"


def launcher(made: Exported, entry: str) -> str:
    """The functions of the kernel's file that the host calls."""
    given = ", ".join(f"({a.type}){a.name}" for a in made.arguments)
    call = f"    {entry}<<<{made.blocks}, nullptr, stream>>>({given});"
    moved = "\n" + _filled("windows.cpp", made) if made.on_ranks else ""
    return "\n".join(["", _signature(made), "{", call, "}", moved])


def host_program(made: Exported) -> str:
    """main.cpp: read, launch, compare, time."""
    ends, declared = [0] * len(made.ranks), [_SIGNALS] * made.takes_signals
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
    return _filled(
        "host.cpp",
        made,
        SIGNATURE=_signature(made),
        SUITE=made.suite,
        CASE=made.case,
        LAUNCH="\n        ".join(calls),
        ARRAYS="\n".join(declared),
        JUDGED="\n".join(_compared(a, a.tolerance) for a in made.arrays if a.tolerance),
        PREDICTED=made.predicted,
        MEASURED="first" if made.on_ranks else "timed(10, run)",
        WINDOW=str(max(ends)),
        COUNT=str(len(made.ranks)),
    )


_SIGNALS = "    uint64_t ffts = 0; uint32_t length = 0; rtGetC2cCtrlAddr(&ffts, &length);"


def _given(a: Argument) -> str:
    """An argument of the launch: memory, a number of Python or NumPy, or a variable of the host."""
    if a.is_array:
        return f"{a.file}.device"
    if isinstance(a.value, str):
        text = a.value
    elif a.dtype is not None and a.dtype.is_float:
        text = repr(float(a.value)).replace("inf", "INFINITY").replace("nan", "NAN")
    else:
        text = str(int(a.value))
    return f"({_passed(a)})({text})"


def _compared(a: Argument, how: ExportTolerance) -> str:
    known = how.relative and a.dtype is not None and a.dtype.name in _KINDS
    kind = a.dtype.name if known and a.dtype is not None else "bits"
    return f'    EXPECT_EQ({a.file}.wrong({how.relative!r}, {kind}), 0u) << "{a.file}: {how}";'


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
