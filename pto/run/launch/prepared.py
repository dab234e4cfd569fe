"""A compiled kernel: its code for each side of a core, and the addresses of its tiles."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

from pto.core.errors import PtoError, fail
from pto.core.global_tensor import GlobalTensor
from pto.core.memory import Memory
from pto.core.pointer import Pointer
from pto.ir.graph import Module, Operation
from pto.isa.meaning.order.flags import NOT_YET_SET
from pto.isa.row.order import OfFlag
from pto.plan.buffers import Placement
from pto.plan.calls import SUBBLOCK, names_of, sides, taken
from pto.plan.credits import may_wait_early
from pto.plan.memory import plan_memory
from pto.plan.stores import used_parameters
from pto.plan.together import need_each_other, wait_in_global
from pto.run.launch.engine import cluster_target
from pto.run.launch.progress import Progress
from pto.run.machine.agents import DEADLOCK, Agent, run_cooperatively
from pto.run.machine.core import Arrivals, Cluster, Core
from pto.run.machine.limit import Limit
from pto.run.reference.compile import Compiler
from pto.target.facts import Profile

if TYPE_CHECKING:
    from pto.run.jit.emit.unit import Unit
    from pto.run.jit.runtime.direct import FastPath
    from pto.run.jit.runtime.region import CompiledRegion
    from pto.run.jit.runtime.threads import ThreadPool
    from pto.run.jit.runtime.values import Lowered
    from pto.run.launch.call import Launch
    from pto.run.launch.host import Report
    from pto.run.watch.events import Hook


Say = Callable[[int, str], None]  # block, printed line
_AHEAD = "a flag is waited for before it is set: pipes run ahead of each other"


class PreparedKernel:
    """The functions that one launch runs, compiled for a profile."""

    def __init__(
        self,
        module: Module,
        functions: Sequence[Operation],
        profile: Profile,
        tap: Hook | None = None,
        engine: str = "reference",
        logs: bool = False,
    ) -> None:
        self.functions = tuple(functions)
        self.profile = profile
        self.module = module
        self._tap = tap
        self.parameters = dict(taken(functions))
        plan = self.parts = sides(functions, profile)
        self._placement = plan_memory(functions, profile)
        # of the jit engine, as `Report` has them
        self.left_out: Mapping[tuple[str, str], int] = {}
        self.fused: Sequence[tuple[str, ...]] = ()
        self.forwarded: Sequence[str] = ()
        self._unit: Unit | None = None
        # only the reference engine can be watched
        self.engine = engine if tap is None else "reference"
        if self.engine == "jit":
            make, self._unit = _native(self._placement, logs)
            self.left_out, self.fused = self._unit.skipped, self._unit.groups
            self.forwarded = self._unit.forwarded
        else:
            make = partial(_plain, tap)
        compilers = {side: make(module, profile, side) for side in sorted({s.name for s in plan})}
        names = list(self.parameters)
        self._names = {id(f): names_of(f.regions[0].block.args, names) for f in functions}
        self._sides = [(s, compilers[s.name].code(s.function)) for s in plan]
        self.can_wait = any(code.can_wait for _, code in self._sides)  # for other agents
        self._pool = self._gathered(compilers)
        self._resting: list[Sequence[Core]] = []  # agents of a finished launch, kept for reuse

    def _gathered(self, compilers: Mapping[str, Any]) -> ThreadPool | None:
        """The thread pool that runs all blocks, if compiled code needs no Python for a block."""
        (side, _), *more = self._sides
        all_blocks = getattr(compilers[side.name], "whole", None)
        alone = not more and side.agents == 1 and not self.can_wait
        if self._unit is None or all_blocks is None or not alone:
            return None
        from pto.run.jit.runtime.threads import ThreadPool

        self._unit.whole = all_blocks.name

        def make(cluster: Cluster) -> Core:
            return Core(cluster, self.profile, side.name, 0, 1, self._placement)

        return ThreadPool(
            self._unit, all_blocks, make, side.function, self._names[id(side.function)]
        )

    def run_compiled(self, grid: LaunchGrid) -> bool:
        """Run all blocks in compiled code; False if that is impossible (nothing has run)."""
        return self._pool is not None and self._pool.run(grid, self.frame(grid))

    def frame(self, grid: LaunchGrid) -> list[Any]:
        """The initial register values of the only agent."""
        (_, code), *_ = self._sides
        names = self._names[id(code.function)]
        return code.frame([0 if n == SUBBLOCK else grid.values[n] for n in names])

    def direct(self, done: Launch, passed: Sequence[int], report: Report) -> FastPath | None:
        """A fast path for calls like a finished launch; None if there is none."""
        if self._pool is None or self.may_wait_early or done.say or cluster_target() is not None:
            return None
        from pto.run.jit.runtime.direct import FastPath

        return FastPath.of(self, self._pool, done, passed, report)

    def places(self, region: CompiledRegion) -> Mapping[str, list[tuple[Lowered, int]]]:
        """Where parameters are in the argument buffer of a compiled region."""
        (_, code), *_ = self._sides
        names = dict(zip(code.args, self._names[id(code.function)], strict=True))
        by_value: dict[str, list[tuple[Lowered, int]]] = {}
        for slot, form, at in region.ins:
            if names.get(slot, SUBBLOCK) != SUBBLOCK:
                by_value.setdefault(names[slot], []).append((form, at))
        return by_value

    @property
    def unit(self) -> Unit:
        """The compiled code of all functions, on the jit engine."""
        if self._unit is None:
            raise RuntimeError(f"the {self.engine} engine compiles nothing")
        return self._unit

    @property
    def is_reusable(self) -> bool:
        """True if an agent can be reused for another block: no observer."""
        return self._tap is None

    @cached_property
    def is_closed(self) -> bool:
        """True if no block waits for another block, launch or rank."""
        return not self.can_wait or not need_each_other(self.functions)

    def rest(self, idle: Sequence[Sequence[Core]], device: Any) -> None:
        """At the end of a launch, keep the agents of one block for the next (not of ranks)."""
        clean = (agents for agents in idle if all(core.may_rest for core in agents))
        agents = next(clean, None) if device.ranks == 1 and not self._resting else None
        if agents is not None:
            for core in agents:
                core.rest()
            self._resting.append(agents)

    def rested(self, device: Any) -> Sequence[Core]:
        try:
            return self._resting.pop() if device.ranks == 1 else ()
        except IndexError:
            return ()

    @cached_property
    def goes_on(self) -> bool:
        """True if compiled agents can run the next block without returning to Python."""
        logs = self._unit is None or self._unit.needs.logs
        return not logs and self.is_reusable and self.is_closed

    @cached_property
    def logged(self) -> PreparedKernel:
        """The same kernel, compiled to log the accesses of each block to global memory."""
        if self._unit is None or self._unit.needs.logs:
            return self
        return PreparedKernel(self.module, self.functions, self.profile, None, self.engine, True)

    @cached_property
    def is_logged(self) -> bool:
        """True if compiled code makes all accesses to global memory, and so can log them."""
        compiled = self._unit is not None and not self._unit.ordered
        return compiled and not (self.can_wait and wait_in_global(self.functions))

    @cached_property
    def may_wait_early(self) -> bool:
        """True if a wait for a flag may precede its set in program order."""
        ops = (op for function in self.functions for op in function.walk())
        has_flags = any(isinstance(op.order, OfFlag) for op in ops)
        return has_flags and may_wait_early(self.functions, self.profile)

    def with_pipes(self) -> tuple[PreparedKernel, Hook]:
        """The same kernel with pipes that run concurrently."""
        from pto.run.order.deferred import Scheduler
        from pto.run.order.schedule import PROGRAM

        tap = Scheduler(PROGRAM, self.profile.sync)
        return PreparedKernel(self.module, self.functions, self.profile, tap), tap

    def written(self, values: Mapping[str, Any]) -> list[Any]:
        """The values of parameters in global memory that may be written."""
        return [values[name] for name in sorted(self.writers)]

    @cached_property
    def writers(self) -> Mapping[str, Operation | None]:
        """Parameters that may be written, and the writing operation if it is known."""
        return used_parameters(self.functions, list(self.parameters))

    @property
    def name(self) -> str:
        return ", ".join(f.symbol for f in self.functions)

    def require(self, count: int) -> None:
        """Check that there are as many arguments as parameters."""
        wanted = self.parameters
        if len(wanted) != count:
            names_text = ", ".join(f"%{name}" for name in wanted) or "none"
            raise fail(
                "PTO-U032",
                f"@{self.name} takes {len(wanted)} arguments ({names_text}), got {count}",
            )

    def agents(
        self,
        cluster: Cluster,
        values: Mapping[str, Any],
        done: Callable[[], None],
        idle: Sequence[Core] = (),
    ) -> list[Agent]:
        """Make the agents of one block, or reuse `idle` ones of a finished block."""
        placement, again = self._placement, iter(idle)
        dirty = any(core.is_dirty for core in idle)
        if idle and not dirty:
            cluster.take_queues(idle[0].cluster)
        for core in idle:
            core.renew(cluster, dirty)
        planned = [
            (
                next(again, None)
                or Core(cluster, self.profile, side.name, sub, side.agents, placement),
                side,
                code,
            )
            for side, code in self._sides
            for sub in range(side.agents)
        ]
        if self._tap is not None:
            for core, _, _ in planned:
                self._tap.begin(core)
        agents = [
            Agent.of(
                core, code, self._arguments(core, side.function, values), self._at_end(core, done)
            )
            for core, side, code in planned
        ]
        if self._tap is not None:
            for agent in agents:
                agent.program = self._tap.around(agent.core, agent.program)
        return agents

    def _at_end(self, core: Core, done: Callable[[], None]) -> Callable[[], None]:
        """The function to call when an agent has finished."""
        return done if self._tap is None else partial(self._tap.finish, core, done)

    def _arguments(self, core: Core, function: Operation, values: Mapping[str, Any]) -> list[Any]:
        return [core.sub if n == SUBBLOCK else values[n] for n in self._names[id(function)]]


def _plain(tap: Hook | None, module: Module, profile: Profile, side: str) -> Compiler:
    return Compiler(module, profile, side, tap)


def _native(
    placement: Placement, logs: bool
) -> tuple[Callable[[Module, Profile, str], Compiler], Unit]:
    """Compilers of the jit engine: one unit of compiled code for the whole kernel."""
    from pto.run.jit.compiler import NativeCompiler
    from pto.run.jit.emit.unit import Unit

    unit = Unit(logs)
    return partial(NativeCompiler, unit, placement), unit


def memories_of(values: Iterable[Any]) -> list[Memory]:
    """The memories of pointers and views, each once."""
    memories = [v.memory for v in values if isinstance(v, Pointer | GlobalTensor)]
    return list({id(m): m for m in memories}.values())


class LaunchGrid:
    """A running launch: it starts blocks one by one, and collects what they print."""

    def __init__(
        self,
        kernel: PreparedKernel,
        device: Any,
        values: Mapping[str, Any],
        blocks: int,
        host_arguments: Sequence[Any] = (),
    ) -> None:
        self.kernel = kernel
        self.blocks = blocks
        self.given = host_arguments  # arguments from the host, from which `values` were made
        self.progress: Progress | None = None
        self.say: Say | None = None
        self.limit: Limit | None = None
        self.device = device
        self.values = values
        self._arrivals = Arrivals()
        self._started = 0
        self._end = blocks  # the end of the blocks that this grid runs
        self.ended: Callable[[Cluster], None] | None = None  # called with each block that is done
        self._left: dict[Cluster, int] = {}  # running agents by block
        self._latest: Cluster | None = None
        self._printed: dict[int, list[str]] = {}  # by block
        self.fallbacks: Counter[tuple[str, str]] = Counter()  # of all finished blocks
        self._idle: list[Sequence[Core]] = []  # agents of finished blocks

    @property
    def is_done(self) -> bool:
        return self._started == self._end and not self._left

    def only(self, first: int, end: int) -> LaunchGrid:
        """Run only these blocks of the launch here."""
        self._started, self._end = first, end
        return self

    @property
    def here(self) -> tuple[int, int]:
        """The first block that has not started, and the end of the blocks of this grid."""
        return self._started, self._end

    def run_cooperatively(self) -> None:
        """Run every block with the cooperative scheduler, in order if none has to wait."""
        run_cooperatively(self.next_block)

    def run(self) -> None:
        """Run every block in program order; with concurrent pipes if a wait precedes its set."""
        if not self.kernel.may_wait_early:
            self._run()
            return
        before = [(m, m.data.copy()) for m in memories_of(self.kernel.written(self.values))]
        try:
            self._run()
        except PtoError as error:
            if error.code != NOT_YET_SET:
                raise
            for memory, old in before:
                memory.data[:] = old
            self._forget()
            self._run_ahead(error)

    def _run(self) -> None:
        """Run in compiled code if the result is the same, else with the cooperative scheduler."""
        if self.say is None and self.kernel.run_compiled(self):
            self._started = self._end
        else:
            run_cooperatively(self.next_block)

    def _run_ahead(self, error: PtoError) -> None:
        """Run with concurrent pipes, after a wait came before its set in program order."""
        self.kernel, tap = self.kernel.with_pipes()
        try:
            run_cooperatively(self.next_block, tap)
        except PtoError as other:
            raise error if other.code == DEADLOCK else other from None

    def _forget(self) -> None:
        """Reset to the state before the first block. The reference engine then runs all blocks."""
        self.fallbacks = Counter({(f"@{self.kernel.name}", _AHEAD): 1})
        self._arrivals = Arrivals()
        self._started = 0
        self._left = {}
        self._printed = {}
        self._idle = []

    def cluster(self, block: int = 0) -> Cluster:
        """A new core for a block: the state that its agents share."""
        cluster = Cluster(self.device, block, self.blocks, self._arrivals)
        cluster.limit = self.limit
        cluster.say = None if self.say is None else partial(self.say, block)
        return cluster

    def collect(self, core: Core) -> None:
        """Collect what an agent has printed in all of its blocks, and its host fallbacks."""
        core.at_block(-1)
        self.fallbacks += core.cluster.fallbacks
        self._printed.update((n, list(lines)) for n, lines in core.cluster.printed_before)

    def next_block(self) -> list[Agent]:
        """The agents of the next block; empty when all have started."""
        if self._started == self._end:
            return []
        cluster = self.cluster(self._started)
        self._started += 1
        idle = self._idle.pop() if self._idle else self.kernel.rested(self.device)
        agents = self.kernel.agents(cluster, self.values, lambda: self._finished(cluster), idle)
        self._left[cluster] = len(agents)
        if self._latest is not None:
            self._latest.ahead = None
        self._latest = cluster
        if self.kernel.goes_on and self.say is None and self.ended is None:
            cluster.end, cluster.ahead = self._end, partial(self._gone_on, cluster)
        return agents

    def _gone_on(self, cluster: Cluster, block: int) -> None:
        """Record that these agents have finished all blocks before this one."""
        for core in cluster.agents:
            core.at_block(block)
        if self._started <= block:
            self._started = block + 1
            self._report()

    def _finished(self, cluster: Cluster) -> None:
        self._left[cluster] -= 1
        if not self._left[cluster]:
            del self._left[cluster]
            self.fallbacks += cluster.fallbacks
            lines = [x for core in cluster.agents for x in core.printed]
            if lines:
                self._printed[cluster.block] = lines
            if self.ended is not None:
                self.ended(cluster)
            if self.kernel.is_reusable:
                self._idle.append(cluster.agents)
            self._report()
            if self.is_done:
                self.kernel.rest(self._idle, self.device)

    def _report(self) -> None:
        if self.progress is not None:
            self.progress(self._started - len(self._left), self.blocks)

    def add_printed(self, printed: Mapping[int, list[str]]) -> None:
        """Add lines printed by blocks that ran on other machines."""
        self._printed |= printed

    def printed_by_block(self) -> dict[int, list[str]]:
        return dict(self._printed)

    def printed(self) -> list[str]:
        """The printed lines in the order of the blocks."""
        return [line for block in sorted(self._printed) for line in self._printed[block]]
