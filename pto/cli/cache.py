"""`pto cache`: what is kept on disk, compiled code, choices of `pto tune` and builds of C++."""

from __future__ import annotations

import argparse

from pto.cli.main import CLEAN
from pto.cxx import kept
from pto.run.jit.llvm import cache

EXAMPLES = """\
  pto cache info               where compiled code, choices of `pto tune` and builds of C++ are kept
  pto cache clear              remove them; programs are compiled and tuned anew when needed"""

_MEGA = 1 << 20


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("action", choices=("info", "clear"), nargs="?", default="info")


def run(args: argparse.Namespace) -> int:
    if args.action == "clear":
        count = cache.clear() + kept.clear()
        print(f"removed {count} file{'s' if count != 1 else ''}")
        return CLEAN
    found = cache.info()
    print(f"directory  {found.directory or 'none'}  (PTO_CACHE_DIR sets another)")
    if found.refused:
        print(f"not used   {found.refused}: programs are compiled in every process")
    print(f"files      {found.files}")
    print(f"size       {found.nbytes / _MEGA:.1f} of at most {found.limit / _MEGA:.0f} MB")
    files, nbytes = kept.info()
    why = kept.why_not()
    if why:
        print(f"not used   builds of C++, {why}: C++ is built anew in every process")
    if files:
        print(f"of C++     {kept.folder()}  (PTO_CXX_CACHE sets another)")
        print(f"           {files} files, {nbytes / _MEGA:.1f} MB; unused for a month they go")
    return CLEAN
