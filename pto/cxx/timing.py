"""Times a C++ kernel on a chip by a dry run of its blocks, in the child."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial

from pto.core.errors import Loc
from pto.cxx.native import NativeAgent
from pto.cxx.program import Launcher
from pto.cxx.trace import BlockTraces, Words, joined, listed
from pto.ir.graph import Operation
from pto.isa.cost.work import GlobalRegion
from pto.observe.timing.cache import State, known_state
from pto.observe.timing.chips import bench
from pto.observe.timing.depends import Dependent
from pto.observe.timing.kinds import regions_of
from pto.observe.timing.overrides import Overrides
from pto.observe.timing.remedies import remedies
from pto.observe.timing.report import time_launch
from pto.observe.timing.result import Timing
from pto.observe.timing.stream import Recording, RecordStream
from pto.run.sites import Looks
from pto.run.watch.events import Hook
from pto.run.watch.outline import DryRun
from pto.target.facts import Profile


@dataclass(slots=True)
class RecordedLaunch:
    """A launch, described by a dry run of each block: `Described` for the timing."""

    profile: Profile
    blocks: int
    arrays: list[tuple[int, int]]  # addresses and bytes
    dry_run: Callable[[Hook, int], object]  # of one block, with instrumentation
    automatic: bool = False  # a compiler synchronises the pipes
    words: Callable[[int], list[Words]] | None = None  # of a block without the simulator
    _last: tuple[int, RecordStream] = field(default_factory=lambda: (-1, RecordStream()))
    _traces: BlockTraces | None = None

    def record(self, number: int) -> RecordStream:
        if self._last[0] != number:
            recording = Recording(self.profile.sync)
            self.dry_run(Dependent(recording) if self.automatic else DryRun(recording), number)
            recording.end()
            self._last = number, recording.stream
        return self._last[1]

    def regions(self, number: int) -> list[GlobalRegion]:
        if self.words is None:
            return regions_of(self.record(number))
        if self._traces is None:
            self._traces = BlockTraces(self.words, self.record, self.arrays)
        return self._traces.regions(number)


_AUTOMATIC = (
    "built with __PTO_AUTO__: timed with its tiles where pto places them, and the order they need"
)

_UNCOUNTED = "C++ between instructions takes no time here: counting it needs objdump, of binutils"


def _words(launcher: Launcher, cores: int, number: int) -> list[Words]:
    """The records of a block, by agent, from a run without the simulator."""
    agents: list[list[Words]] = []

    def lists(agent: NativeAgent) -> Iterator[Looks]:
        agents.append([])
        return listed(agent, agents[-1])

    launcher.listed(lists, number, cores)
    return joined(agents)


def timed(
    launcher: Launcher,
    profile: Profile,
    blocks: int,
    device: str | None,
    automatic: bool,
    cache: State = "cold",
    costs: Overrides | None = None,
) -> Timing:
    """Time a launch. Operations of the result have only a name and a line, for the parent."""
    chip = bench(device or profile.device, profile.name, costs)
    known_state(cache)
    notes = [] if launcher.count() else [_UNCOUNTED]
    cores = chip.device.cube_cores
    dry_run = partial(launcher.described, cores=cores)
    words = partial(_words, launcher, cores)
    launch = RecordedLaunch(profile, blocks, launcher.arrays, dry_run, automatic, words)
    timing = time_launch(
        launch, chip, "", (*notes, *([_AUTOMATIC] if automatic else [])), cache=cache
    )
    for remedy in remedies(timing, replace(chip, kind=timing.kind), None):
        timing.offer(remedy)
    plain: dict[int, Operation] = {}

    def bare(op: Operation) -> Operation:
        if id(op) not in plain:
            loc = op.loc
            line = None if loc is None else Loc(loc.file, loc.line, loc.col, loc.end)
            plain[id(op)] = Operation(op.name, where=line)
        return plain[id(op)]

    streams = (group.timing.stream for group in timing.groups if group.timing is not None)
    for stream in {id(stream_of): stream_of for stream_of in (timing.stream, *streams)}.values():
        stream.jobs = [job._replace(op=bare(job.op)) for job in stream.jobs]
    timing.waits = [replace(w, op=bare(w.op), behind=bare(w.behind)) for w in timing.waits]
    return timing
