"""The table of docs/reports.md, from the pairs in tests/observe/reports (`make tables`)."""

from __future__ import annotations

import re
from pathlib import Path

from tests.observe.pairs import Pair, pairs

PAGE = Path(__file__).parents[1] / "reports.md"
_MARKED = re.compile(r"(<!-- table -->\n).*?(<!-- end -->)", re.DOTALL)
_HEAD = "| report | what was wrong | found as |\n| --- | --- | --- |"


def rewritten(text: str) -> str:
    """The page with the table as the pairs are now."""
    rows = "\n".join(_row(pair) for pair in sorted(pairs(), key=_order))
    return _MARKED.sub(lambda m: f"{m[1]}\n{_HEAD}\n{rows}\n\n{m[2]}", text)


def _order(pair: Pair) -> tuple[str, int]:
    name, number = pair.report.split("#")
    return name, int(number)


def _row(pair: Pair) -> str:
    name, number = pair.report.split("#")
    link = f"[{pair.report}](https://github.com/hw-native-sys/{name}/issues/{number})"
    codes = sorted({code for code, _, _ in pair.side("-").expected})
    return f"| {link} | {pair.fault} | {', '.join(codes)} |"


if __name__ == "__main__":
    PAGE.write_text(rewritten(PAGE.read_text("utf-8")), "utf-8")
