"""Python exceptions as findings: in user code at its line, in pto itself as a defect."""

from __future__ import annotations

import traceback
from pathlib import Path

from pto.core.errors import Diagnostic, Note
from pto.lang.call.place import is_own, raised_at, user_step

_AT_THE_TOP = 'work that a command need not repeat belongs under `if __name__ == "__main__":`'


def raised(error: BaseException) -> Diagnostic:
    """The finding for an exception other than PtoError: a user's mistake, or a defect of pto."""
    step, loc = user_step(error), raised_at(error)
    text = f"{type(error).__name__}: {error}".rstrip(": ")
    frames = traceback.extract_tb(error.__traceback__)
    if step is None or (frames and is_own(frames[-1].filename)):
        notes = [Note(f"at {Path(f.filename).name}:{f.lineno} in {f.name}") for f in frames[-1:]]
        help = "this is a defect of pto, please report it; PTO_TRACEBACK=1 shows the traceback"
        return Diagnostic("PTO-U009", f"pto failed: {text}", loc, notes=tuple(notes), help=help)
    name = step.tb_frame.f_code.co_name
    where, help = ("the file", _AT_THE_TOP) if name == "<module>" else (name, None)
    return Diagnostic("PTO-U281", f"{where} raises {text}", loc, help=help)
