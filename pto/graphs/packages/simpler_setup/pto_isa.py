"""The headers of the ISA: those of the PTO machine."""

from pathlib import Path
from typing import Any

import pto.cxx


def ensure_pto_isa_root(**options: Any) -> str:
    """The folder with `include/pto`."""
    return str(Path(pto.cxx.__file__).parent)
