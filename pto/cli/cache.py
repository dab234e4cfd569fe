"""`pto cache`: the disk cache of compiled code, tuning results and C++ builds."""

from __future__ import annotations

import argparse

from pto.cli.command_line import CommandLine
from pto.cli.main import CLEAN
from pto.core.disk_cache import LIMIT, OBJECTS
from pto.cxx.kept import BUILDS

EXAMPLES = """\
  pto cache info               where compiled code, choices of `pto tune` and builds of C++ are kept
  pto cache clear              remove them; programs are compiled and tuned anew when needed"""

_MEGA = 1 << 20


def add_arguments(parser: CommandLine) -> None:
    text = "show the size of the cache (default), or remove everything in it"
    parser.add_argument("action", choices=("info", "clear"), nargs="?", default="info", help=text)


def run(args: argparse.Namespace) -> int:
    if args.action == "clear":
        count = OBJECTS.clear() + BUILDS.clear()
        print(f"removed {count} file{'s' if count != 1 else ''}")
        return CLEAN
    info = OBJECTS.info()
    print(f"directory  {info.directory or 'none'}  (PTO_CACHE_DIR sets another)")
    if info.refused:
        print(f"not used   {info.refused}: programs are compiled in every process")
    print(f"files      {info.files}")
    print(f"size       {info.nbytes / _MEGA:.1f} of at most {LIMIT / _MEGA:.0f} MB")
    built = BUILDS.info()
    if built.refused:
        print(f"not used   builds of C++, {built.refused}: C++ is built anew in every process")
    if built.files:
        print(f"of C++     {built.directory}  (PTO_CXX_CACHE sets another)")
        size = f"{built.files} files, {built.nbytes / _MEGA:.1f} MB"
        print(f"           {size}; unused for a month they go")
    return CLEAN
