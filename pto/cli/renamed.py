"""Options that have another name now: the older one works for one version, with a warning."""

from __future__ import annotations

import argparse
import sys

from pto.cli import console


class Renamed(argparse.Action):
    """A switch under its older name: `add_argument("--old", action=Renamed, new="--new")`."""

    def __init__(self, option_strings: list[str], dest: str, *, new: str, **_: object) -> None:
        self.new = new
        dest = new.lstrip("-").replace("-", "_")
        hidden = argparse.SUPPRESS
        super().__init__(option_strings, dest, nargs=0, default=hidden, help=hidden)

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: object,
        option_string: str | None = None,
    ) -> None:
        console.write(
            [("warning", "warning"), ("", f": `{option_string}` is now `{self.new}`\n")], sys.stderr
        )
        setattr(namespace, self.dest, True)
