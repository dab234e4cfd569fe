"""`pto mcp`: check, run, sanitize, time, judge, isa, explain and layout as tools for agents."""

from __future__ import annotations

import argparse
from pathlib import Path

from pto.cli.command_line import CommandLine
from pto.core.errors import fail
from pto.core.optional import not_installed

EXAMPLES = """\
  pto mcp                      started by an agent (docs/guide/agents.md)
  pto mcp --allow-python       also take kernels in Python, which are executed with your rights
  pto mcp --tasks tasks/       agents judge their kernels for the tasks of this folder, by name
  pto mcp --timeout 20 --memory 2048
"""


def add_arguments(parser: CommandLine) -> None:
    parser.add_argument("--allow-python", action="store_true", help=_ALLOW.format("Python"))
    parser.add_argument("--allow-cpp", action="store_true", help=_ALLOW.format("C++"))
    parser.add_argument("--tasks", type=Path, metavar="DIR", help=_TASKS)
    parser.add_argument("--timeout", type=float, default=60.0, metavar="S", help=_TIMEOUT)
    parser.add_argument("--memory", type=int, default=8192, metavar="MB", help=_MEMORY)


_ALLOW = "execute programs in {} with the rights of the server; default: reject them"
_TASKS = "a folder of tasks for `judge`, as `pto judge` takes them; agents give their names"
_TIMEOUT = "stop a command after this many seconds; default: 60"
_MEMORY = "limit the address space of a command to this many MB; default: 8192"


def run(args: argparse.Namespace) -> int:
    try:
        from pto.mcp.server import Permissions, ProcessLimits, server
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "mcp":
            raise
        raise not_installed("pto mcp", "mcp", "mcp") from None
    allowed = {"python": args.allow_python, "cpp": args.allow_cpp}
    languages = frozenset(name for name, is_allowed in allowed.items() if is_allowed)
    if args.tasks is not None and not args.tasks.is_dir():
        raise fail("PTO-U005", f"there is no folder {args.tasks}")
    server(Permissions(languages, args.tasks), ProcessLimits(args.timeout, args.memory)).run()
    return 0
