"""A compiled program on the machine: its host, its launches, its agents and their records."""

from __future__ import annotations

import ctypes as c
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from pto.core.errors import Diagnostic, fail
from pto.cxx import native as n
from pto.cxx.feed import AgentState, GlobalMemory, Side
from pto.run import sites as s
from pto.run.machine.core import Core
from pto.run.machine.device import Device
from pto.run.watch.events import Observer, Tap
from pto.target.facts import Profile

SUB_BLOCKS = 2


class Program:
    """A program's builds on the machine. `host` runs a function of it, launches included."""

    def __init__(
        self,
        builds: dict[str, n.Native],
        profile: Profile,
        observer: Observer | None = None,
        tap: Tap | None = None,
        only: Sequence[int] | None = None,
    ) -> None:
        self.profile = profile
        self.sides = [Side(build, name, profile) for name, build in builds.items()]
        self.observer = observer
        self._tap, self._only = tap, only  # who describes it instead, and which blocks
        self.printed: list[str] = []
        self.launches = 0

    @property
    def main(self) -> n.Native:
        """The build whose host code runs."""
        return self.sides[0].build

    def host(self, call: int, closure: int) -> None:
        """Run host code to its end, and on the machine what it launches."""
        agent = self.main.agent(call, closure)
        try:
            while True:
                status, words = agent.resume(), agent.words()
                if words:  # a kernel called as a plain function
                    status = self._plain(agent, words, status)
                if status == n.LAUNCH:
                    blocks, address, key = agent.state.question[:3]
                    self._launch(blocks, address, self.main.string(key).encode())
                if status == n.FAILED:
                    raise fail("PTO-U244", f"the host threw: {agent.error()}")
                if status == n.DONE:
                    return
        finally:
            agent.end()

    def _device(self) -> tuple[Device, GlobalMemory]:
        device = Device(self.profile, observer=self.observer, engine="reference")
        if self._tap is not None:
            device.watch(self._tap)
        return device, GlobalMemory(device, self.main.memory())

    def _launch(self, blocks: int, closure: int, key: bytes) -> None:
        """All agents of a launch, each in the build of its side."""
        device, memory = self._device()
        self.launches += 1
        found: list[s.Side] = []
        mixed = len(self.sides) > 1
        for side in self.sides:
            call = side.build.kernel(key)
            if call is None:
                raise fail("PTO-U244", f"the build for the {side.name} side lacks a launch")
            side.begin(device, memory)
            agents = SUB_BLOCKS if mixed and side.name == "vector" else 1

            def feed(core: Core, side: Side = side, call: int = call) -> Iterator[Any]:
                agent = side.build.agent(call, closure, core)
                return side.feed(agent, core)

            found.append(s.Side(side.name, agents, feed))
        self.printed += s.run(device, self.profile, found, blocks, self._only)

    def _plain(self, agent: n.NativeAgent, words: list[int], status: int) -> int:
        """Records of the host itself: one block of one agent, until the host waits for it.

        Returns why it stopped last.
        """
        device, memory = self._device()
        side, last = self.sides[0], [status]
        side.begin(device, memory)

        def feed(core: Core) -> Iterator[Any]:
            state = AgentState(side, core)
            yield from state.records(words)
            while last[0] == n.LOOK:
                state.answer(agent)
                last[0] = agent.resume()
                yield from state.records(agent.words())

        self.printed += s.run(device, self.profile, [s.Side("both", 1, feed)], 1)
        return last[0]


class Launcher:
    """One kernel on arrays: runs it, again where a watcher asks for that."""

    def __init__(
        self,
        builds: dict[str, n.Native],
        profile: Profile,
        blocks: int,
        given: Sequence[Mapping[str, int]],
        raw: npt.NDArray[np.uint8],
    ) -> None:
        self._builds, self._profile, self._raw = builds, profile, raw
        self._main = next(iter(builds.values()))
        self._given = given
        self._places: list[int] = []
        self._arrays: list[tuple[int, npt.NDArray[np.uint8]]] = []
        words = [blocks]
        for each in given:
            if "word" in each:
                words.append(each["word"])
                continue
            place = self._main.lib.pto_allocate(each["size"])
            self._places.append(place)
            self._arrays.append((each["at"], n.bytes_at(place, each["size"])))
            words.append(place)
        self._words = (c.c_int64 * len(words))(*words)
        self.printed: list[str] = []

    def _run(self, observer: Observer | None = None) -> Program:
        """Once, from the arrays as they were given."""
        for at, array in self._arrays:
            array[:] = self._raw[at : at + array.size]
        return self._host(Program(self._builds, self._profile, observer))

    def described(self, tap: Tap, number: int) -> None:
        """One block, which `tap` describes instead of executing it."""
        self._host(Program(self._builds, self._profile, None, tap, [number]))

    @property
    def arrays(self) -> list[tuple[int, int]]:
        """Where the arrays of the kernel lie, and their bytes."""
        return [
            (place, array.nbytes)
            for place, (_, array) in zip(self._places, self._arrays, strict=True)
        ]

    def _host(self, program: Program) -> Program:
        entry = c.cast(self._main.lib.pto_main, c.c_void_p).value or 0
        program.host(entry, c.addressof(self._words))
        self.printed = program.printed
        return program

    def _keep(self) -> None:
        for at, array in self._arrays:
            self._raw[at : at + array.size] = array

    def plain(self) -> list[Diagnostic]:
        """Run; warnings of the rules."""
        program = self._run()
        self._keep()
        return [d for side in program.sides for d in side.warnings]

    def watched(self) -> list[Diagnostic]:
        """Run under the sanitizer, again as often as it wants to."""
        from pto.observe.sanitize import watch_run

        return watch_run(self._profile, lambda observer: self._run(observer) and None, self._keep)

    def release(self) -> None:
        for place in self._places:
            self._main.lib.pto_release(place)
