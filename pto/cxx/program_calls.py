"""Programs in text form that C++ calls: `translate` writes the C++, `called` reads its record.

Compilers that emit a `.pto` program have `ptoas` translate it to C++, which their own C++ calls.
Here each function of the translation hands the program to the machine, which executes it as it is:
`python -m pto.cxx.program_calls FILE.pto -o FILE.cpp` takes the place of `ptoas`.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from pto.core.errors import PtoError
from pto.cxx.export.places import parameter_type
from pto.cxx.native import NativeBuild
from pto.cxx.records import RecordedCall
from pto.ir.text.parser import parse, read_source
from pto.run.sites import CallSites, ProgramSite

_PIECE = 1 << 14  # compilers limit the length of a literal


def translate(path: Path) -> str:
    """A program as C++: functions of the same names and parameters that call the machine."""
    text = read_source(path)
    lines = ['#include "pto/pto-inst.hpp"', "using namespace pto;"]
    pieces = [text[n : n + _PIECE] for n in range(0, len(text), _PIECE)]
    lines += ["static const char pto_program[] =", *(f'R"pto({p})pto"' for p in pieces), ";"]
    file = f"{path.parent.name}/{path.name}"  # without its root: a build is found again by its text
    for function in (f for f in parse(text, str(path)).functions() if f.has_body):
        name, args = function.symbol, function.regions[0].block.args
        listed = ", ".join(f"{parameter_type(arg.type)} v{n}" for n, arg in enumerate(args))
        arguments = "".join(f", v{n}" for n in range(len(args)))
        lines += [
            f"AICORE void {name}({listed}) {{",
            f'    machine::program(pto_program, "{file}", "{name}"{arguments});',
            "}",
        ]
    return "\n".join(lines) + "\n"


def called(
    sites: CallSites, build: NativeBuild, call: RecordedCall, values: Sequence[int]
) -> ProgramSite:
    """The function that a record calls: its first operands are the text, a file and a name."""
    text, file, name = (build.string(values[operand.at]) for operand in call.operands[:3])
    return ProgramSite(sites, parse(text, file), name)


def main() -> int:
    """Translate a file; options of `ptoas` that do not change values are accepted."""
    parser = argparse.ArgumentParser("ptoas")
    parser.add_argument("file", type=Path)
    parser.add_argument("-o", dest="out", type=Path, required=True)
    options, _ = parser.parse_known_args()
    try:
        options.out.write_text(translate(options.file), encoding="utf-8")
    except PtoError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
