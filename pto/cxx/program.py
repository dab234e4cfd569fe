"""Runs a compiled program: its host code, its launches, its agents and their records."""

from __future__ import annotations

import ctypes as c
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from pto.core.errors import Diagnostic, PtoError, fail
from pto.core.intervals import stretches
from pto.cxx import native as n
from pto.cxx.child import Given
from pto.cxx.counted import amounts
from pto.cxx.feed import AgentState, BuildSide
from pto.cxx.memory import ProgramMemory
from pto.plan.mode import Mode
from pto.run import sites as s
from pto.run.machine.core import Cluster, Core
from pto.run.machine.device import Device
from pto.run.watch.events import Hook, Observer
from pto.target.facts import Profile

SUB_BLOCKS = 2
Listing = Callable[[n.NativeAgent], Iterator[Any]]  # runs an agent without the simulator
_ROUNDS = 50  # scheduling rounds of a launch before other launches or ranks run
_MANY = 2000  # the same without other launches, before the host runs
_PATIENCE = 2000  # rounds without progress of any rank until a deadlock is reported


class NativeProgram:
    """The builds of a program. `host` runs a host function with its launches."""

    def __init__(
        self,
        builds: dict[str, n.NativeBuild],
        profile: Profile,
        observer: Observer | None = None,
        tap: Hook | None = None,
        only: Sequence[int] | None = None,
        lists: Listing | None = None,
    ) -> None:
        self.profile = profile
        self._lists = lists
        self.sides = [BuildSide(build, name, profile) for name, build in builds.items()]
        self._others: dict[str, BuildSide] = {}
        self.observer = observer
        self._tap, self._only = tap, only  # the instrumentation hook, and its blocks
        self.printed: list[str] = []
        self.launches = 0
        self._stuck: PtoError | None = None  # what a rank waits for

    @property
    def main(self) -> n.NativeBuild:
        """The build that contains the host code."""
        return self.sides[0].build

    def host(self, call: int, closure: int, ranks: int = 1) -> None:
        """Run host code and its launches to the end; ranks are scheduled round-robin."""
        hosts = [self._host(call, closure, rank, ranks) for rank in range(ranks)]
        idle = 0
        while hosts:
            for host in list(hosts):
                moved = next(host, None)
                idle = 0 if moved or moved is None else idle + 1
                if moved is None:
                    hosts.remove(host)
            if idle > _PATIENCE * ranks:
                raise self._stuck or fail(
                    "PTO-U244", "deadlock: all ranks of the host wait for each other"
                )

    def _host(self, call: int, closure: int, rank: int, ranks: int) -> Iterator[bool]:
        """Run the host of one rank; yields when it waits, True if it made progress."""
        agent = self.main.agent(call, closure, who=(rank, ranks, 0, 1, 0))
        itself, pending = Itself(self), list[s.RecordLaunch]()
        try:
            while True:
                status, words = agent.resume(), agent.words()
                if words or status == n.LOOK:  # a kernel called as a plain function
                    status = itself.go_on(agent, words, status)
                if status == n.LAUNCH:
                    blocks, address, key = agent.state.question[:3]
                    pending.append(self._launch(blocks, address, self.main.string(key).encode()))
                    self._advance(pending, ranks)
                while pending and status in (n.WAIT, n.DONE):
                    moved = self._advance(pending, ranks)
                    if pending and ranks == 1 and not moved:
                        raise pending[0].deadlock
                    if pending:
                        self._stuck = pending[0].deadlock
                        yield moved
                if status == n.FAILED:
                    raise fail("PTO-U244", f"the host threw: {agent.error()}")
                if status == n.DONE:
                    return
                if ranks > 1:
                    yield bool(words) or status in (n.LAUNCH, n.WAIT)
        finally:
            agent.end()

    def _advance(self, pending: list[s.RecordLaunch], ranks: int) -> bool:
        """Advance the pending launches; those that wait stay in the list. True if one advanced."""
        alone = ranks == 1 and len(pending) == 1
        moved = False
        for launch in list(pending):
            done = launch.go_on(_MANY if alone else _ROUNDS)
            moved |= launch.moved
            if done:
                self.printed += launch.printed
                pending.remove(launch)
        return moved

    def device(self) -> tuple[Device, ProgramMemory]:
        device = Device(self.profile, observer=self.observer, engine="reference")
        if self._tap is not None:
            device.watch(self._tap)
        return device, self.memory(device)

    def memory(self, device: Device) -> ProgramMemory:
        return ProgramMemory(device, self.main.memory(), self.profile.name == "cpu")

    def _launch(self, blocks: int, closure: int, key: bytes) -> s.RecordLaunch:
        """All agents of a launch, each in the build of its side."""
        device, memory = self.device()
        self.launches += 1
        sides: list[s.RecordSide] = []
        mixed = len(self.sides) > 1
        for side in self.sides:
            call, name = side.build.kernel(key), side.build.side(key)
            if call is None:
                raise fail(
                    "PTO-U244",
                    f"the build for the {side.name} side does not contain the launched kernel",
                )
            if name not in ("both", side.name):
                side = self._special(side.build, name)
            side.begin(device, observed=self._only is None)
            agents = SUB_BLOCKS if mixed and side.name == "vector" else 1

            def feed(core: Core, side: BuildSide = side, call: int = call) -> Iterator[Any]:
                agent = side.build.agent(call, closure, core)
                if self._lists is not None:
                    return self._lists(agent)
                return side.feed(agent, core, memory)

            sides.append(s.RecordSide(side.name, agents, feed))
        return s.RecordLaunch(device, self.profile, sides, blocks, self._only)

    def _special(self, build: n.NativeBuild, name: str) -> BuildSide:
        """The `Side` for one side of a build with sources for several sides."""
        if name not in self._others:
            self._others[name] = BuildSide(build, name, self.profile)
        return self._others[name]


class Itself:
    """A host that calls instructions as plain functions: one agent with persistent buffers."""

    def __init__(self, program: NativeProgram) -> None:
        self._program = program
        self._state: AgentState | None = None
        self._changes = 0  # version of device memory at the last call

    def go_on(self, agent: n.NativeAgent, words: list[int], status: int) -> int:
        """Execute its records until it waits; returns the last status."""
        state, last = self._now(), [status]

        def feed(core: Core) -> Iterator[Any]:
            yield from state.records(words, last[0] != n.DONE)
            while last[0] == n.LOOK:
                yield from state.answer(agent)
                last[0] = agent.resume()
                yield from state.records(agent.words(), last[0] != n.DONE)

        self._program.printed += s.carry_on(state.core, feed)
        return last[0]

    def _now(self) -> AgentState:
        """The agent, with memory as it is now."""
        program = self._program
        changes = program.main.lib.pto_changes()
        if self._state is None:
            device, memory = program.device()
            program.sides[0].begin(device)
            core = Core(Cluster(device, 0, 1), program.profile, "both", 0, 1)
            self._state = AgentState(program.sides[0], core, memory)
        elif changes != self._changes:
            self._state.memory = program.memory(self._state.core.device)
            self._state.forget()
        self._changes = changes
        return self._state


_BETWEEN = {f"PTO-R{n:03}" for n in (11, 12, 13, 21, 22, 23)}


def decided(findings: Iterable[Diagnostic], sides: Iterable[BuildSide]) -> list[Diagnostic]:
    """Findings without races between agents, if an agent polls memory by `ld_dev`: the order that
    it has by a word that others store is not followed."""
    polls = any(side.polls for side in sides)
    return [d for d in findings if not polls or d.code not in _BETWEEN]


class Launcher:
    """Runs one kernel on arrays, repeatedly if the sanitizer needs it."""

    def __init__(
        self,
        builds: dict[str, n.NativeBuild],
        profile: Profile,
        blocks: int,
        arguments: Sequence[Given],
        raw: npt.NDArray[np.uint8],
    ) -> None:
        self._builds, self._profile = builds, profile
        self._main = next(iter(builds.values()))
        self.arrays: list[tuple[int, int]] = []  # (address, bytes) of the kernel's arrays
        self._filled: list[tuple[Any, Any]] = []  # memory and values of arrays with values
        words = [blocks]
        placed: dict[int, int] = {}  # address by first byte, of arrays that may overlap
        for low, high in stretches((e.start, e.stop) for e in arguments if isinstance(e, slice)):
            placed[low] = self._allocated(high - low)
            self._filled.append((n.bytes_at(placed[low], high - low), raw[low:high]))
        for argument in arguments:
            if isinstance(argument, int):
                words.append(argument)
            elif isinstance(argument, tuple):
                words.append(self._allocated(argument[0]))
            elif argument.start == argument.stop:
                words.append(self._allocated(0))
            else:
                low = max(low for low in placed if low <= argument.start)
                words.append(placed[low] + argument.start - low)
        self._words = (c.c_int64 * len(words))(*words)
        self.printed: list[str] = []

    def _allocated(self, size: int) -> int:
        """The address of new memory for an array."""
        address: int | None = self._main.lib.pto_allocate(size)
        if address is None:
            raise MemoryError
        self.arrays.append((address, size))
        return address

    def fill(self) -> None:
        """Restore the arrays to the given values."""
        for array, values in self._filled:
            array[:] = values

    def _run(self, observer: Observer | None = None, tap: Hook | None = None) -> NativeProgram:
        """Run once, from the given values of the arrays."""
        self.fill()
        return self._host(NativeProgram(self._builds, self._profile, observer, tap))

    def count(self) -> bool:
        """Enable counting of C++ operations; False if the compiled code cannot be read."""
        counts = [amounts(build.path) for build in self._builds.values()]
        for build, mine in zip(self._builds.values(), counts, strict=True):
            build.count(mine)
        return all(counts)

    def described(self, tap: Hook, number: int, cores: int) -> None:
        """Dry run of block `number` with instrumentation `tap`; `cores` blocks run at a time."""
        self._cores(cores)
        self._host(NativeProgram(self._builds, self._profile, None, tap, [number]))

    def listed(self, lists: Listing, number: int, cores: int) -> None:
        """Run block `number` without the simulator; `lists` runs each agent."""
        self._cores(cores)
        self._host(NativeProgram(self._builds, self._profile, only=[number], lists=lists))

    def _cores(self, cores: int) -> None:
        for build in self._builds.values():
            c.c_int64.in_dll(build.lib, "pto_cores").value = cores

    def _host(self, program: NativeProgram) -> NativeProgram:
        entry = c.cast(self._main.lib.pto_main, c.c_void_p).value or 0
        program.host(entry, c.addressof(self._words))
        self.printed = program.printed
        return program

    def _keep(self) -> None:
        for array, values in self._filled:
            values[:] = array

    def plain(self) -> list[Diagnostic]:
        """Run the kernel; returns warnings of the rules."""
        program = self._run()
        self._keep()
        return [d for side in program.sides for d in side.warnings]

    def watched(self, mode: Mode) -> list[Diagnostic]:
        """Run under the sanitizer, as often as it needs."""
        from pto.observe.sanitize import watch_run

        sides: list[BuildSide] = []

        def run(observer: Observer) -> None:
            sides[:] = self._run(observer).sides

        def step(tap: Hook) -> None:
            self._run(tap=tap)

        findings = decided(watch_run(self._profile, run, self._keep, step, mode), sides)
        return [*findings, *(d for side in sides for d in side.sites.remarks.values())]

    def release(self) -> None:
        for address, _ in self.arrays:
            self._main.lib.pto_release(address)
