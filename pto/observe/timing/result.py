"""The result of a timed launch: its time, its bounds, its waits; as numbers and as text."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from html import escape
from pathlib import Path
from typing import Any

from pto.core.errors import Loc
from pto.core.output import write_whole
from pto.ir.graph import Operation
from pto.isa.cost.work import MatmulWork
from pto.observe.timing.clock import Times
from pto.observe.timing.fold import weights
from pto.observe.timing.interval import Term
from pto.observe.timing.overrides import template
from pto.observe.timing.price import Price, passes
from pto.observe.timing.rounds import Shown
from pto.observe.timing.shared import Load
from pto.observe.timing.stream import RecordStream
from pto.target.costs import Costs, LaunchKind

_FULL = 0.9  # of the memory bandwidth: it is the bound
_FULL_L2 = 0.93
_WIDE = 20  # characters of a column
_WORTH = 0.98  # of the time: a remedy that saves less is not reported
_LEAST_SAVED = 0.05  # us
_LITTLE = 0.05  # of the results: less that stays in the cache is not reported


_INPUTS = {
    "cold": "inputs are new to it",
    "warm": "inputs are those of the launch before",
    "clean": "it begins with other data",
}


def is_worth(before: float, after: float) -> bool:
    return after < _WORTH * before


Site = tuple[str, str, int] | int  # an operation and its line; operations without one are separate


def site(op: Operation) -> Site:
    """Copies of one line of the source, as of unrolled loops, are one site."""
    return id(op) if op.loc is None else (op.name, op.loc.file, op.loc.line)


@dataclass(frozen=True, slots=True)
class Waiting:
    """A pipe that waited for another at one line, and the time that no wait would save."""

    op: Operation
    behind: Operation
    pipe: str
    us: float
    times: int
    what: str = ""  # the awaited work: a load, a store, or the name of the instruction
    saves_us: float = 0.0

    @property
    def loc(self) -> Loc | None:
        return self.op.loc

    def __str__(self) -> str:
        loc, line = self.op.loc, self.behind.loc
        where = "" if loc is None else f"{Path(loc.file).name}:{loc.line} "
        often = "" if self.times == 1 else f" in {self.times:,} waits"
        other = self.what or short(self.behind)
        of = "" if line is None else f" of line {line.line}"
        saved = (
            f"; if that {other} were free, the kernel would be {self.saves_us:.1f} us faster"
            if self.saves_us >= _LEAST_SAVED
            else ""
        )
        return (
            f"{where}{short(self.op)} ({self.pipe}) waited {self.us:.1f} us{often} for the"
            f" {other}{of}{saved}"
        )


def short(op: Operation) -> str:
    return op.name.removeprefix("pto.")


@dataclass(frozen=True, slots=True)
class Remedy:
    """A change that was timed: its description, its saving, and the condition."""

    change: str
    saves_us: float
    condition: str = ""

    def __str__(self) -> str:
        condition = f" {self.condition}" if self.condition else ""
        return f"{self.change}: {self.saves_us:.1f} us less{condition}"


@dataclass(frozen=True, slots=True)
class Roofline:
    """The position of the kernel between the limits of memory and of the matrix unit."""

    flops: float
    bytes: float
    flops_per_second: float
    peak: float
    bandwidth: float

    @property
    def intensity(self) -> float:
        return self.flops / self.bytes if self.bytes else float("inf")

    @property
    def limit(self) -> float:
        return min(self.peak, self.intensity * self.bandwidth)


@dataclass(frozen=True, slots=True)
class Cores:
    """Cores of a launch that do the same at different addresses, and the times of the first."""

    numbers: list[int]
    timing: Timing | None


@dataclass(slots=True)
class Timing:
    """The time of a launch on a chip. Printing it gives the report."""

    kernel: str
    device: str
    blocks: int
    cores: int
    us: float  # with the launch
    core_us: float
    band: tuple[float, float]  # the interval, by what each part of the time rests on
    busy: dict[str, dict[str, float]]  # side -> pipe -> share of the time
    bound: str
    runner_up: str
    hbm_bytes: float
    l2_bytes: float
    stored_bytes: float
    kept_bytes: float  # of these, bytes that stay in the L2 cache
    l2_capacity: float
    hbm_share: float
    l2_share: float
    guessed: float  # share of the busy time that is based on guesses
    waits: list[Waiting]
    roofline: Roofline | None
    terms: list[Term] = field(default_factory=list[Term])  # parts of the time by cost
    notes: tuple[str, ...] = ()
    cache: str = "cold"  # state of the L2 cache when the launch begins
    kind: LaunchKind = "mix"  # the cores that it uses
    costs: Costs | None = field(default=None, repr=False)
    stream: RecordStream = field(default_factory=RecordStream, repr=False)
    times: Times | None = field(default=None, repr=False)
    prices: list[Price] = field(default_factory=list[Price], repr=False)
    mhz: float = 0.0
    load: Load | None = field(default=None, repr=False)
    shown: list[Shown] = field(default_factory=list[Shown], repr=False)  # rounds in `times`
    rounds: int = 1  # of blocks, on the busiest core
    l2_rate: float = 0.0  # bytes a second
    remedies: list[Remedy] = field(default_factory=list[Remedy])
    groups: list[Cores] = field(default_factory=list[Cores], repr=False, compare=False)  # all cores

    def offer(self, remedy: Remedy) -> None:
        """Add a timed change if it is worthwhile; the best comes first."""
        listed = {str(remedy_listed) for remedy_listed in self.remedies}
        if is_worth(self.us, self.us - remedy.saves_us) and str(remedy) not in listed:
            self.remedies.append(remedy)
            self.remedies.sort(key=lambda each: -each.saves_us)

    def __repr__(self) -> str:
        return str(self)

    def __str__(self) -> str:
        low, high = self.band
        lines = [
            f"{self.kernel} on {self.device}, {_count(self.blocks, 'block')} on"
            f" {_count(self.cores, 'core')}: {self.us:.1f} us ({low:.1f} to {high:.1f})",
            self.limits,
        ]
        for side, pipes in self.busy.items():
            shares = "  ".join(f"{pipe} {share:4.0%}" for pipe, share in pipes.items())
            lines.append(f"  {side:8} {shares}")
        lines.append(
            f"  memory   {_size(self.hbm_bytes)} ({self.hbm_share:.0%} of its rate),"
            f" L2 {_size(self.l2_bytes)} ({self.l2_share:.0%})"
        )
        if self.kept_bytes > _LITTLE * self.stored_bytes:
            lines.append(
                f"  L2 keeps {_size(self.kept_bytes)} of {_size(self.stored_bytes)} of results from"
                f" launch to launch (it holds {_size(self.l2_capacity)}); {_INPUTS[self.cache]}"
            )
        lines += [f"  {line}" for line in (*self.waits, *self.remedies)]
        if self.terms:
            lines.append(f"  most uncertain: {' and '.join(map(str, self.terms[:2]))}")
        if self.guessed >= 0.005:
            lines.append(f"  {self.guessed:.0%} of the busy time rests on guesses")
        return "\n".join([*lines, *(f"  {note}" for note in self.notes)])

    @property
    def limits(self) -> str:
        """The bound, and the next one."""
        return f"bound by {self.bound}, then {self.runner_up}" if self.busy else "it does nothing"

    def compare(self, other: Timing) -> str:
        """A comparison with another timing, figure by figure."""
        names = [f"{timing.kernel} {timing.device}"[-_WIDE:] for timing in (self, other)]
        rows = [("time us", self.us, other.us)]
        sides = {side: self.busy.get(side, {}) | pipes for side, pipes in other.busy.items()}
        for side, pipes in (self.busy | sides).items():
            for pipe in sorted(pipes):
                a, b = (100 * t.busy.get(side, {}).get(pipe, 0.0) for t in (self, other))
                rows.append((f"{side} {pipe} %", a, b))
        rows.append(("memory MB", self.hbm_bytes / 1e6, other.hbm_bytes / 1e6))
        rows.append(("L2 MB", self.l2_bytes / 1e6, other.l2_bytes / 1e6))
        head = f"{'':14} {names[0]:>{_WIDE}} {names[1]:>{_WIDE}}"
        return "\n".join(
            [head, *(f"{n:14} {a:{_WIDE}.1f} {b:{_WIDE}.1f} {_ratio(a, b):>8}" for n, a, b in rows)]
        )

    def html(self, path: str | None = None, *others: Timing) -> str:
        """The timeline as a self-contained page; also written to `path` if one is given."""
        from pto.observe.timing.page import page  # only needed for display

        text = page(self, *others)
        if path is not None:
            _write(path, text)
        return text

    def trace(self, path: str) -> None:
        """The timeline in Chrome's format, for Perfetto and MindStudio Insight."""
        from pto.observe.timing.trace import chrome

        _write(path, json.dumps(chrome(self)))

    def template(self, path: str) -> None:
        """Write the numbers that the launch uses, for `pto time --costs`."""
        if self.costs is not None:
            used = frozenset(price.cost for price in self.prices)
            _write(path, template(self.costs, used))

    def _repr_html_(self) -> str:
        return f"<pre>{escape(str(self))}</pre>"

    def to_json(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in _FIGURES} | {
            "band": list(self.band),
            "terms": [term._asdict() | {"error_us": term.error_us} for term in self.terms],
            "shown": [
                {
                    "round": shown_round.number,
                    "block": shown_round.block,
                    "repeated": shown_round.skipped,
                }
                for shown_round in self.shown
            ],
            "waits": [
                {
                    "op": w.op.name,
                    "line": w.op.loc.line if w.op.loc else None,
                    "behind": w.behind.name,
                    "behind_line": w.behind.loc.line if w.behind.loc else None,
                    "pipe": w.pipe,
                    "us": w.us,
                    "times": w.times,
                    "saves_us": w.saves_us,
                }
                for w in self.waits
            ],
            "remedies": [asdict(remedy) for remedy in self.remedies],
            "notes": list(self.notes),
        }


# Of a timing: members of its JSON that are as they are.
_FIGURES = (
    *("kernel", "device", "blocks", "cores", "us", "core_us", "band", "busy", "bound"),
    *("runner_up", "hbm_bytes", "l2_bytes", "stored_bytes", "kept_bytes", "hbm_share"),
    *("l2_share", "guessed", "rounds", "cache"),
)


def _write(path: str, text: str) -> None:
    write_whole(Path(path), text)


def _count(n: int, unit: str) -> str:
    return f"{n} {unit}" if n == 1 else f"{n} {unit}s"


def _ratio(a: float, b: float) -> str:
    return f"{b / a:.2f}x" if a and b else "-"


def _size(nbytes: float) -> str:
    for unit in ("B", "KB", "MB"):
        if nbytes < 1000:
            return f"{nbytes:.0f} {unit}" if unit == "B" else f"{nbytes:.1f} {unit}"
        nbytes /= 1000
    return f"{nbytes:.2f} GB"


def busiest(busy: dict[str, dict[str, float]], hbm: float, l2: float) -> tuple[str, str]:
    """The bound of the kernel, and the next one."""
    pipes = sorted(
        (
            (share, f"{side} {pipe}")
            for side, side_pipes in busy.items()
            for pipe, share in side_pipes.items()
        ),
        reverse=True,
    )
    names = [name for _, name in pipes] or ["nothing"]
    if l2 > _FULL_L2:
        names.insert(0, "L2 bandwidth")
    if hbm > _FULL:
        names.insert(0, "HBM bandwidth")
    return names[0], (names[1] if len(names) > 1 else "nothing")


def shares(stream: RecordStream, times: Times, span: float) -> dict[str, dict[str, float]]:
    """Busy share of each pipe in the `span` time; sub-blocks of one side are averaged."""
    total: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for number, pipe in enumerate(stream.pipes):
        side = stream.side(pipe.agent)
        total[side][pipe.name].append(times.busy[number] / span if span else 0.0)
    return {
        side: {
            pipe: sum(shares_of) / len(shares_of)
            for pipe, shares_of in sorted(pipes.items())
            if pipe != "S" or any(shares_of)
        }
        for side, pipes in total.items()
    }


def guessed_share(prices: Sequence[Price], times: Times) -> float:
    total = guessed = 0.0
    for n, price in enumerate(prices):
        took = times.free[n] - times.start[n]
        total += took
        guessed += took if price.status == "guess" else 0.0
    return guessed / total if total else 0.0


def products(stream: RecordStream, costs: Costs) -> tuple[float, float]:
    """Operations of the matrix unit (one step is 16 x 16 x k0 products and sums), and cycles."""
    flops = cycles = 0.0
    for job, times_over in zip(stream.jobs, weights(stream), strict=True):
        work = job.work
        if isinstance(work, MatmulWork):
            flops += 2.0 * 16 * 16 * work.k0 * work.steps * float(times_over)
            cycles += work.steps * passes(work, costs) * float(times_over)
    return flops, cycles
