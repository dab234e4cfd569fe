"""Who orders the pipes of a program, as the sanitizer says it. Found out in `run/mode.py`."""

from pto.run.mode import ASSUMED, Mode, mode_of

__all__ = ["ASSUMED", "Mode", "mode_of"]
