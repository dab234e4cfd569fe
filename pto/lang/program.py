"""Programs that come as text, from Python: checked as `pto check` does."""

from __future__ import annotations

from pto.lang.findings import Findings
from pto.run.launch.call import Program, load
from pto.verify import judge


def check(program: Program, profile: str | None = None, *, device: str | None = None) -> Findings:
    """Is a program legal? Under the profile it declares, unless another is named.

    >>> pto.check(pto.parse_file("add.pto"), "a2a3")
    """
    return Findings(judge(load(program), profile=profile, device=device)[1])
