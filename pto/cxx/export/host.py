"""The files around an exported kernel: its launch, the host program, data, build file, README.

The folder `template` has each of them, with words in capitals for what an export knows, and
`#ifdef RANKS`, which is decided when they are written. `windows.cpp` is added to a kernel of ranks.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from pto.cxx.export.function import identifier
from pto.cxx.provided import CORES, MACROS, OPTION

if TYPE_CHECKING:
    from pto.cxx.export.arguments import Argument
    from pto.cxx.export.folder import Exported
    from pto.cxx.export.tolerance import ExportTolerance

FILES = ("main.cpp", "gen_data.py", "CMakeLists.txt", "run.sh", "README.md")
_BOARDS = {"a2a3": "a3"}  # names of profiles in pto-isa, where they differ
_ALIGNED = 512  # bytes, of arrays in a window
_SIGNALS = "    uint64_t ffts = 0; uint32_t length = 0; rtGetC2cCtrlAddr(&ffts, &length);"
# Names that template/main.cpp has where arrays are declared.
_DECLARED = """std testing stream move bits f8e4m3 f8e5m2 f16 bf16 f32 size_of number timed
 ffts length rank root context begun windows barrier run first"""
TAKEN = frozenset(_DECLARED.split())
_RANKS = re.compile(
    r"^#ifdef RANKS\n(.*?)(?:^#else // RANKS\n(.*?))?^#endif // RANKS\n", re.DOTALL | re.MULTILINE
)


def filled(file: str, exported: Exported) -> str:
    """The text of a file of the template, for ranks or for one device, with its words replaced."""
    text = (Path(__file__).parent / "template" / file).read_text(encoding="utf-8")
    chosen = _RANKS.sub(lambda found: found[1 if exported.on_ranks else 2] or "", text)
    words = _words(exported)
    listed = "|".join(words)
    return re.sub(f"(?<![A-Z])(?:{listed})(?![A-Z])", lambda found: words[found[0]], chosen)


def free_name(name: str, taken: Iterable[str]) -> str:
    """The name of an argument as a C++ identifier that is not taken yet."""
    return f"{name}_" if name in taken else identifier(name)


def _words(exported: Exported) -> dict[str, str]:
    """The text for each word of the template."""
    mixed, ends = exported.kind == "mix", [0] * len(exported.ranks)
    arrays = [_SIGNALS] * exported.takes_signals
    for a in exported.arrays:
        where = f", rank == {a.rank}" * exported.on_ranks
        if a.shared:
            where += f", (void*)(windows[{a.rank}] + {ends[a.rank]})"
            ends[a.rank] += -(-a.value.nbytes // _ALIGNED) * _ALIGNED
        arrays.append(f'    Array {a.file}("{a.file}", {a.value.nbytes}{where});')
    calls = [
        f"if (rank == {rank}) " * exported.on_ranks
        + f"launch_{exported.name}({', '.join([*map(_given, rank_arguments), 'stream'])});"
        for rank, rank_arguments in enumerate(exported.ranks)
    ]
    tests = "comm" if exported.on_ranks else "src"
    options = [m.name for m in MACROS if m.origin == OPTION and exported.profile in m.values]
    return {
        "NAME": exported.name,
        "SUITE": exported.suite,
        "CASE": exported.case,
        "COUNT": str(len(exported.ranks)),
        "BLOCKS": f"{exported.blocks} block" + "s" * (exported.blocks != 1),
        "TARGET": exported.device,
        "PREDICTED": exported.predicted,
        "COMPARED": exported.compared,
        # of the host program
        "SIGNATURE": _signature(exported),
        "ARRAYS": "\n".join(arrays),
        "LAUNCH": "\n        ".join(calls),
        "JUDGED": "\n".join(_compared(a, a.tolerance) for a in exported.arrays if a.tolerance),
        "MEASURED": "first" if exported.on_ranks else "timed(10, run)",
        "WINDOW": str(max(ends)),
        # of the build, alone and among pto-isa's tests
        "CHIP": CORES[exported.profile] + ("" if mixed else f"-{exported.kind}"),
        "OPTION": f"-D{options[0]}",
        "LIBRARY": f"{exported.name}_kernel{'_mix' * (mixed and not exported.on_ranks)}",
        "KIND": "comm" if exported.on_ranks else exported.kind,
        "FOLDER": f"tests/npu/{exported.profile}/{tests}/st/testcase",
        "BOARD": _BOARDS.get(exported.profile, exported.profile),
    }


def _passed(argument: Argument) -> str:
    """The type of an argument on the host; its compiler has no 16-bit floats."""
    kind = argument.dtype
    short = kind is not None and kind.is_float and kind.bits < 32
    return "void*" if argument.is_array else "float" if short else argument.type


def _signature(exported: Exported) -> str:
    parts = [f"{_passed(a)} {a.name}" for a in exported.arguments]
    return f"void launch_{exported.name}({', '.join([*parts, 'void* stream'])})"


def launcher(exported: Exported, entry: str) -> str:
    """The functions of the kernel's file that the host calls."""
    parts = ", ".join(f"({a.type}){a.name}" for a in exported.arguments)
    call = f"    {entry}<<<{exported.blocks}, nullptr, stream>>>({parts});"
    moved = "\n" + filled("windows.cpp", exported) if exported.on_ranks else ""
    return "\n".join(["", _signature(exported), "{", call, "}", moved])


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
    inexact = a.dtype is not None and (how.allowed or how.absolute)
    parts = [repr(how.allowed), a.dtype.name if a.dtype is not None and inexact else "bits"]
    parts += [repr(how.absolute)] if how.absolute else []
    return f'    EXPECT_EQ({a.file}.wrong({", ".join(parts)}), 0u) << "{a.file}: {how}";'
