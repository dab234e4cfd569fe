"""Checks of statements and expressions that Python executes while it traces a kernel.

Each raises a finding where the program, not Python, decides what happens.
"""

from __future__ import annotations

import sys
from typing import TypeVar

from pto.core.errors import PtoError
from pto.isa.row.traits import Control
from pto.lang.call.place import mistake
from pto.lang.call.session import active
from pto.lang.front.values import leaves
from pto.lang.trace import Trace
from pto.lang.values.scalars import Scalar

T = TypeVar("T")
_DECIDED = (Control.IF, Control.FOR, Control.WHILE)


def known(subject: T) -> T:
    """The subject of a `match` executed by Python; raises if it is a value of the program."""
    if any(isinstance(leaf, Scalar) for leaf in leaves(subject)):
        raise mistake(
            "PTO-U202",
            "`match` compares a number of the program with a class, a mapping or `*rest`, which"
            " Python would decide before the kernel runs",
            help="match values, names, `_` and sequences of these, or write `if`",
        )
    return subject


def raises() -> None:
    """Check a `raise` statement: it must not depend on a run-time condition."""
    if _is_decided_later():
        raise mistake(
            "PTO-U206",
            "`raise` in a branch or loop of the program, which is traced even if it will not run",
            help="the program has no exceptions: write `assert condition, message`",
        )


def caught() -> None:
    """Begin an `except Exception`: a finding is not an exception that a kernel may handle."""
    error = sys.exc_info()[1]
    if isinstance(error, PtoError):
        raise error


def _is_decided_later() -> bool:
    """True in a branch or loop of the program, which is traced even if it will not run."""
    session = active()
    around = session.builder.blocks[1:] if isinstance(session, Trace) else ()
    return any(block.region.owner.control in _DECIDED for block in around)


def binds_global(name: str) -> None:
    """Check a statement that binds a global variable."""
    if _is_decided_later():
        raise mistake(
            "PTO-U217",
            f"the global variable `{name}` is bound inside a branch or loop of the program, which"
            " is traced once",
            help="bind a variable of the function, and pass it on as an argument or result",
        )


def passed(function: T, name: str) -> T:
    """Check a function that binds variables around it, where it is not called directly."""
    if isinstance(active(), Trace):
        raise mistake(
            "PTO-U217",
            f"`{name}` binds variables of the function around it (nonlocal), and is passed on: in a"
            " branch or loop of the program their values would be lost",
            help=f"call {name} directly, or let it return the new values",
        )
    return function


def decided(value: T) -> T:
    """Check a condition beside `:=`: Python must know it."""
    if isinstance(value, Scalar):
        raise mistake(
            "PTO-U202",
            "Python decides an expression with `:=` while the kernel is traced, and this condition"
            " is known when the kernel runs",
            help="assign in a statement of its own, before or inside `if`",
        )
    return value


def require_objects(a: object, b: object, sign: str) -> None:
    """Check `is`, which compares objects: a number of the program is no number of Python."""
    for number, other in ((a, b), (b, a)):
        if isinstance(number, Scalar) and isinstance(other, int | float | Scalar):
            raise mistake(
                "PTO-U202",
                f"`{sign}` compares objects, but a number of the program has no value"
                " while tracing",
                help=f"compare the values with {'==' if sign == 'is' else '!='}",
            )
