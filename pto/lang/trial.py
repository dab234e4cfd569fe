"""One configuration of a kernel in tuning: as data for a worker, and its result."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from pto.cluster.kernel_message import ProgramText
from pto.core.errors import PtoError
from pto.run.launch.host import launch

Config = dict[str, Any]
Arrays = Sequence[npt.NDArray[Any]]
_PLAIN = (bool, int, float, str)


@dataclass(frozen=True, slots=True)
class Trial:
    """One configuration and its result: its time, or the reason for its rejection."""

    config: Config
    us: float | None = None
    bound: str = ""
    refused: str = ""

    @property
    def words(self) -> str:
        """The configuration as readable text."""
        return ", ".join(f"{name}={value}" for name, value in self.config.items())

    def __str__(self) -> str:
        return f"{self.words:<40} {self.refused or f'{self.us:10.1f} us  {self.bound}'}"

    def to_json(self) -> dict[str, object]:
        """The trial as JSON data; values without a JSON type become text."""
        plain = {n: v if isinstance(v, _PLAIN) else str(v) for n, v in self.config.items()}
        return {"config": plain, "us": self.us, "bound": self.bound, "refused": self.refused}


def refused_by(config: Config, error: PtoError) -> Trial:
    diagnostic = error.diagnostics[0]
    return Trial(config, refused=f"{diagnostic.message} [{diagnostic.code}]")


def differs(arrays: Arrays | None, wanted: Arrays | None, rtol: float) -> str:
    if arrays is None or wanted is None:
        return ""
    for mine, other in zip(arrays, wanted, strict=True):
        same = mine.tobytes() == other.tobytes()
        if not same and not np.allclose(
            mine.astype(np.float64), other.astype(np.float64), rtol=rtol, atol=rtol
        ):
            return "gives other values than the first configuration"
    return ""


@dataclass(frozen=True, slots=True)
class ArrayShape:
    """A placeholder for an array, with only its shape."""

    shape: tuple[int, ...]
    kind: np.dtype[Any]


@dataclass(frozen=True, slots=True)
class Sheet:
    """The data that a worker needs to try one configuration."""

    config: Config
    programs: tuple[ProgramText, ProgramText]  # to be run, and to be timed
    profiles: tuple[str, str]
    args: Sequence[Any]  # arrays themselves only if the program is run on them
    blocks: int
    runs: bool  # else it is only timed


def tried(shared: tuple[str | None, float, Arrays | None], sheet: Sheet) -> Trial:
    """Run on a worker: execute on copies, compare, and time."""
    from pto.observe import timing

    device, rtol, wanted = shared
    ran, timed = sheet.programs
    try:
        args = [np.empty(a.shape, a.kind) if isinstance(a, ArrayShape) else a for a in sheet.args]
        if sheet.runs:
            args = [a.copy() if isinstance(a, np.ndarray) else a for a in args]
            how = sheet.blocks, sheet.profiles[0]
            launch(ran.module(), args=args, coverage=False, blocks=how[0], profile=how[1])
            wrong = differs([a for a in args if isinstance(a, np.ndarray)], wanted, rtol)
            if wrong:
                return Trial(sheet.config, refused=wrong)
        predicted = timing.time(
            timed.module(),
            args=args,
            device=device,
            blocks=sheet.blocks,
            profile=sheet.profiles[1],
        )
    except PtoError as error:
        return refused_by(sheet.config, error)
    return Trial(sheet.config, predicted.us, predicted.bound)
