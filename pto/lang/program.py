"""`pto.check` for programs in text form, the same as the command `pto check`."""

from __future__ import annotations

from pto.core.findings import Findings
from pto.run.launch.call import Program, load
from pto.verify import judge


def check(program: Program, profile: str | None = None, *, device: str | None = None) -> Findings:
    """The findings of a program for `profile`, or for the profile that it declares.

    >>> pto.check(pto.parse_file("add.pto"), "a2a3")
    """
    return Findings(judge(load(program), profile=profile, device=device)[1])
