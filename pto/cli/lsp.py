"""`pto lsp`: a language server for .pto programs and Python kernels, on standard streams."""

from __future__ import annotations

import argparse

from pto.cli import options
from pto.cli.command_line import CommandLine
from pto.core.optional import not_installed

EXAMPLES = """\
  pto lsp                      started by an editor (docs/guide/editor.md)
  pto lsp --profile a5         check programs for this profile, whatever they declare
  pto lsp --allow-python       execute Python files that are opened or saved, to check their kernels
"""


def add_arguments(parser: CommandLine) -> None:
    options.add_target(parser)
    parser.add_argument("--allow-python", action="store_true", help=_ALLOW)
    stdio = "use standard input and output: always done, accepted for editors"
    parser.add_argument("--stdio", action="store_true", help=stdio)


_ALLOW = "execute Python files, with your rights, to check their kernels; default: do not"


def run(args: argparse.Namespace) -> int:
    try:
        from pto.lsp.server import start
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in ("pygls", "lsprotocol"):
            raise
        raise not_installed("pto lsp", str(error.name), "lsp") from None
    server = start(args.profile, args.device, args.allow_python)
    server.start_io()
    return 0 if server.is_shut_down else 1  # the protocol: 1 for an exit that was not announced
