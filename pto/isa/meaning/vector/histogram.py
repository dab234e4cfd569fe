"""Histograms. A logical vector is an array of its lanes, a logical mask one bool a lane."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from pto.isa.meaning.kinds import Do
from pto.isa.meaning.machine import Machine
from pto.isa.meaning.vector.ub import Items
from pto.isa.rules.rule import Case

_BYTE_VALUES = 256


def _histogram(case: Case, cumulative: bool) -> Callable[..., Items]:
    """Bins wrap in 16 bits; byte values beyond the last bin are not counted."""

    def count(core: Machine, acc: Items, src: Items, mask: Items) -> Items:
        found = np.bincount(src.view(np.uint8)[mask], minlength=_BYTE_VALUES)[: acc.size]
        if cumulative:
            found = np.cumsum(found)
        return (acc.view(np.uint16) + found.astype(np.uint16)).view(acc.dtype)

    return count


VCHIST = Do(lambda case: _histogram(case, cumulative=True))
VDHIST = Do(lambda case: _histogram(case, cumulative=False))
