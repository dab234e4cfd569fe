"""Watches a run and never changes it: the sanitizer. It reads events, not instructions.

A custom `Observer` is passed to `pto.launch(..., observer=...)` and receives every
`InstructionEvent`; a `Stepper` stops a run before an instruction.
"""

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
