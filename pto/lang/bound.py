"""`kernel[blocks]`: a kernel and the grid it runs on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, overload

from pto.run.launch.call import Blocks, Launch
from pto.run.launch.host import Report
from pto.run.launch.progress import Progress
from pto.run.machine.device import Device
from pto.run.machine.world import World

if TYPE_CHECKING:
    from pto.cxx.export.folder import Exported
    from pto.lang.kernel import Kernel
    from pto.lang.optimize import OptimizedKernel
    from pto.observe import Verdict
    from pto.observe.proofs import Proofs
    from pto.observe.timing import Timing
    from pto.observe.timing.cache import State as CacheState
    from pto.observe.timing.overrides import Overrides

P = ParamSpec("P")


@dataclass(frozen=True, slots=True)
class Bound(Generic[P]):
    """`kernel[blocks]`: a kernel and the grid it runs on."""

    kernel: Kernel[P]
    blocks: Blocks

    @overload
    def __call__(self, *args: P.args, **named: P.kwargs) -> Report: ...
    @overload
    def __call__(self, *args: object, engine: str | None, **named: object) -> Report: ...
    @overload
    def __call__(self, *args: object, coverage: bool | None, **named: object) -> Report: ...
    @overload
    def __call__(self, *args: object, timeout: float | None, **named: object) -> Report: ...
    @overload
    def __call__(self, *args: object, progress: bool | Progress, **named: object) -> Report: ...
    def __call__(self, *args: object, **named: object) -> Report:
        """Run on arrays, which are changed in place; with the options of `Kernel.run` too."""
        return self.kernel.run(*args, blocks=self.blocks, **named)  # pyright: ignore[reportArgumentType]

    run = __call__  # as `Kernel.run`, with the grid in brackets

    def launched(
        self, device: Device, args: Sequence[object], named: Mapping[str, object]
    ) -> Launch:
        """A launch to be executed by a stream: `stream.launch(kernel[blocks], x, y)`."""
        return self.kernel.launched(device, args, named, self.blocks)

    def sanitize(
        self,
        *args: object,
        automatic: bool = False,
        timeout: float | None = None,
        **named: object,
    ) -> Verdict:
        """Run under the sanitizer."""
        return self.kernel.sanitize(
            *args, blocks=self.blocks, automatic=automatic, timeout=timeout, **named
        )

    def time(
        self,
        *args: object,
        device: str | None = None,
        data: bool = False,
        cache: CacheState = "cold",
        costs: Overrides | None = None,
        **named: object,
    ) -> Timing:
        """How long a launch takes on a chip."""
        how: dict[str, Any] = {"device": device, "data": data, "cache": cache, "costs": costs}
        how |= named
        return self.kernel.time(*args, blocks=self.blocks, **how)

    def optimize(
        self,
        *args: object,
        device: str | None = None,
        data: bool = False,
        again: bool = False,
        **named: object,
    ) -> OptimizedKernel[P]:
        """The kernel made fast on a chip for this grid, as `Kernel.optimize`."""
        return self.kernel.optimize(
            *args, blocks=self.blocks, device=device, data=data, again=again, **named
        )

    def prove(self, *args: object, assume: Sequence[str] = (), **named: object) -> Proofs:
        """Which properties hold for this grid."""
        return self.kernel.prove(*args, blocks=self.blocks, assume=assume, **named)

    def export(
        self,
        *args: object,
        out: str,
        device: str | None = None,
        world: World | None = None,
        **named: object,
    ) -> Exported:
        """Write a folder that builds and runs on a board; with the options of `Kernel.export`."""
        return self.kernel.export(
            *args, out=out, blocks=self.blocks, device=device, world=world, **named
        )

    def on(self, profile: str) -> Bound[P]:
        """The same kernel and grid for another profile."""
        return Bound(self.kernel.on(profile), self.blocks)
