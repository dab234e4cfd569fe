"""The page of the Python interface, from the public names, their signatures and docstrings."""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Iterator
from typing import Any

import pto
from pto.lang.names import PUBLIC, RENAMED

# title -> packages whose names it lists, in this order; a name goes to the first that matches
GROUPS: dict[str, tuple[str, ...]] = {
    "Kernels and launches": (
        *("pto.lang.define", "pto.lang.kernel", "pto.lang.bound", "pto.lang.eager"),
        *("pto.lang.operator", "pto.run.launch"),
    ),
    "Inside a kernel": ("pto.lang.control", "pto.lang.debug", "pto.lang.values.scalars"),
    "Tiles and arrays": ("pto.lang.express", "pto.lang.values"),
    "Check, compare and time": (
        *("pto.lang.program", "pto.observe", "pto.lang.diff", "pto.lang.tune", "pto.lang.trial"),
        *("pto.lang.optimize", "pto.optimize", "pto.run.watch", "pto.core", "pto.lang.call"),
        *("pto.view.side", "pto.judging"),
    ),
    "Programs as text and in C++": ("pto.ir", "pto.cxx"),
    "Devices, graphs and clusters": (
        *("pto.run.machine", "pto.graphs", "pto.cluster", "pto.lang.torch_op"),
    ),
}
_WIDEST = 84  # characters of a signature that a page shows without scrolling
_HEAD = """\
# Python interface

Every name of `import pto` except instructions and element types. An instruction is a function of
its own name: `isa.tadd(dst, a, b)`; the [instruction reference](isa/README.md) lists them.
"""


def page() -> str:
    """The page as Markdown."""
    homes = {**PUBLIC, **{name: home for name, (home, _) in RENAMED.items()}}
    lines, left = [_HEAD], dict(homes)
    for title, packages in GROUPS.items():
        lines += ["", f"## {title}", ""]
        names = [n for n, home in left.items() if home.startswith(packages)]
        for name in sorted(names, key=lambda n: (n[0].isupper(), n)):
            del left[name]
            lines += _entry(name)
    if left:
        raise LookupError(f"no group of docs/make/api.py has {', '.join(left)}")
    return "\n".join(lines) + "\n"


def _entry(name: str) -> Iterator[str]:
    value = getattr(pto, name)
    is_class = inspect.isclass(value)
    yield f"### pto.{name}"
    yield ""
    if not is_class:
        call, indent = _signature(f"pto.{name}", value), " " * len(f"pto.{name}(")
        yield from ("```text", textwrap.fill(call, _WIDEST, subsequent_indent=indent), "```", "")
    yield inspect.getdoc(value) or ""
    yield ""
    if is_class:
        members = list(_members(value))
        if members:
            yield from ("| member | meaning |", "| --- | --- |", *members, "")


def _members(owner: type) -> Iterator[str]:
    """One row for each public method and property with a docstring of its own."""
    for name, member in vars(owner).items():
        text = inspect.getdoc(member) if not name.startswith("_") else None
        if text is None or not (inspect.isfunction(member) or isinstance(member, property)):
            continue
        call = _signature(name, member) if inspect.isfunction(member) else name
        first = text.split("\n\n")[0].replace("\n", " ").replace("|", "\\|")
        yield f"| `{call.replace('|', chr(92) + '|')}` | {first} |"


def _signature(name: str, function: Any) -> str:
    """The call with its parameters and their defaults; types are left to editors."""
    given = inspect.signature(function).parameters.values()
    plain = [p.replace(annotation=inspect.Parameter.empty) for p in given if p.name != "self"]
    return f"{name}{inspect.Signature(plain)}"
