"""`pto cache`: what compiled code is kept on disk, and forgetting it."""

from __future__ import annotations

import argparse

from pto.cli.main import CLEAN
from pto.run.jit.llvm import cache

EXAMPLES = """\
  pto cache info               where compiled code is kept, how much, and the limit
  pto cache clear              remove it; programs are compiled anew when they run next"""

_MEGA = 1 << 20


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("action", choices=("info", "clear"), nargs="?", default="info")


def run(args: argparse.Namespace) -> int:
    if args.action == "clear":
        count = cache.clear()
        print(f"removed {count} compiled program{'s' if count != 1 else ''}")
        return CLEAN
    found = cache.info()
    print(f"directory  {found.directory or 'none'}  (PTO_CACHE_DIR sets another)")
    if found.refused:
        print(f"not used   {found.refused}: programs are compiled in every process")
    print(f"programs   {found.files}")
    print(f"size       {found.nbytes / _MEGA:.1f} of at most {found.limit / _MEGA:.0f} MB")
    return CLEAN
