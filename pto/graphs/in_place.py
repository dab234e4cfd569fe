"""Import this to run pypto on the machine: `pytest -p pto.graphs.in_place ...`.

It imports the packages `simpler` and `simpler_setup` of this machine (`device.py`) before another
path provides them.
"""

from __future__ import annotations

import sys
from importlib import import_module

from pto.graphs.device import PACKAGES

sys.path.insert(0, str(PACKAGES))
for _name in ("simpler", "simpler_setup"):
    import_module(_name)
