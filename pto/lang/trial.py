"""One configuration of a kernel that is tuned: as data for a worker, and what came of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pto.cluster.parcel import Program
from pto.core.errors import PtoError
from pto.ir.graph import Module
from pto.run.launch.host import launch

Config = dict[str, Any]
_PLAIN = (bool, int, float, str)


@dataclass(frozen=True, slots=True)
class Trial:
    """One configuration, and what came of it: its time, or why it does not count."""

    config: Config
    us: float | None = None
    bound: str = ""
    refused: str = ""

    @property
    def words(self) -> str:
        """The configuration, as a person writes it."""
        return ", ".join(f"{name}={value}" for name, value in self.config.items())

    def __str__(self) -> str:
        return f"{self.words:<40} {self.refused or f'{self.us:10.1f} us  {self.bound}'}"

    def to_json(self) -> dict[str, Any]:
        """Values that JSON does not have as their words."""
        plain = {n: v if isinstance(v, _PLAIN) else str(v) for n, v in self.config.items()}
        return {"config": plain, "us": self.us, "bound": self.bound, "refused": self.refused}


def refused_by(config: Config, error: PtoError) -> Trial:
    found = error.diagnostics[0]
    return Trial(config, refused=f"{found.message} [{found.code}]")


def differs(arrays: list[Any] | None, wanted: list[Any] | None, rtol: float) -> str:
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
class Shape:
    """An array of which only the shape counts."""

    shape: tuple[int, ...]
    kind: np.dtype[Any]


@dataclass(frozen=True, slots=True)
class Sheet:
    """What a worker needs to try one configuration."""

    config: Config
    programs: tuple[Program, Program]  # to be run, and to be timed
    profiles: tuple[str, str]
    args: tuple[Any, ...]
    blocks: int
    runs: bool  # else it is only timed

    @classmethod
    def of(
        cls,
        config: Config,
        modules: tuple[Module, Module],
        profiles: tuple[str, str],
        given: Sequence[Any],
        blocks: int,
        runs: bool,
    ) -> Sheet:
        """Arrays travel where the program is run on them."""
        args = tuple(a if runs or not isinstance(a, np.ndarray) else _shape(a) for a in given)
        programs = Program.of(modules[0]), Program.of(modules[1])
        return cls(config, programs, profiles, args, blocks, runs)


def _shape(array: Any) -> Shape:
    return Shape(array.shape, array.dtype)


def tried(shared: tuple[str | None, float, list[Any] | None], sheet: Sheet) -> Trial:
    """On a worker: run on copies, compare, and time."""
    from pto.observe import timing

    device, rtol, wanted = shared
    ran, timed = sheet.programs
    try:
        args = [np.empty(a.shape, a.kind) if isinstance(a, Shape) else a for a in sheet.args]
        if sheet.runs:
            args = [a.copy() if isinstance(a, np.ndarray) else a for a in args]
            how: dict[str, Any] = {"blocks": sheet.blocks, "profile": sheet.profiles[0]}
            launch(ran.module(), args=args, coverage=False, **how)
            wrong = differs([a for a in args if isinstance(a, np.ndarray)], wanted, rtol)
            if wrong:
                return Trial(sheet.config, refused=wrong)
        options: dict[str, Any] = {"blocks": sheet.blocks, "profile": sheet.profiles[1]}
        found = timing.time(timed.module(), args=args, device=device, **options)
    except PtoError as error:
        return refused_by(sheet.config, error)
    return Trial(sheet.config, found.us, found.bound)
