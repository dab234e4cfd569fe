"""`pto lsp`: a language server for .pto programs, on standard input and output."""

from __future__ import annotations

import argparse

from pto.core.optional import not_installed

EXAMPLES = """\
  pto lsp                      what an editor starts; docs/guide/editor.md says how
  pto lsp --profile a5         judge programs by one profile, whatever they declare
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--profile", metavar="P", help="cpu, a2a3 or a5; default: as declared")
    parser.add_argument("--device", metavar="D", help="a chip that narrows its profile: 910b1")
    parser.add_argument("--stdio", action="store_true", help="as some editors say; it always is")


def run(args: argparse.Namespace) -> int:
    try:
        from pto.lsp.server import start
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in ("pygls", "lsprotocol"):
            raise
        raise not_installed("pto lsp", str(error.name), "lsp") from None
    server = start(args.profile, args.device)
    server.start_io()
    return 0 if server.is_shut_down else 1  # the protocol: 1 for an exit that was not announced
