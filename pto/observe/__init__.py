"""Watches a run and never changes it: the sanitizer. It reads events, not instructions.

A custom `Observer` is passed to `pto.launch(..., observer=...)` and receives every
`InstructionEvent`; a `Stepper` stops a run before an instruction.
"""

from pto.core.renamed import warn_renamed
from pto.observe.order.streams import watch
from pto.observe.sanitize import Sanitizer, Verdict, sanitize
from pto.run.watch.events import InstructionEvent, Observer
from pto.run.watch.step import Stepper, Stop

__all__ = [
    "InstructionEvent",
    "Observer",
    "Sanitizer",
    "Stepper",
    "Stop",
    "Verdict",
    "sanitize",
    "watch",
]


def __getattr__(name: str) -> object:
    if name == "Event":
        warn_renamed("pto.observe.Event", "pto.observe.InstructionEvent", level=3)
        return InstructionEvent
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
