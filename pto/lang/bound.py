"""`kernel[blocks]`: a kernel and the grid it runs on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pto.lang.findings import Findings
from pto.run.launch.call import Blocks, Launch
from pto.run.launch.host import Report
from pto.run.machine.device import Device

if TYPE_CHECKING:
    from pto.cxx.export.folder import Exported
    from pto.lang.kernel import Kernel
    from pto.observe.proofs import Proofs
    from pto.observe.timing import Timing


@dataclass(frozen=True, slots=True)
class Bound:
    """`kernel[blocks]`: a kernel and the grid it runs on."""

    kernel: Kernel
    blocks: Blocks

    def __call__(self, *args: Any, **named: Any) -> Report:
        """Run on arrays, which are changed in place."""
        return self.kernel.run(*args, blocks=self.blocks, **named)

    def launched(self, device: Device, args: Sequence[Any], named: Mapping[str, Any]) -> Launch:
        """A launch for a stream of a device to do: `stream.launch(kernel[blocks], x, y)`."""
        return self.kernel.launched(device, args, named, self.blocks)

    def sanitize(self, *args: Any, **named: Any) -> Findings:
        """Run under the sanitizer."""
        return self.kernel.sanitize(*args, blocks=self.blocks, **named)

    def time(self, *args: Any, **named: Any) -> Timing:
        return self.kernel.time(*args, blocks=self.blocks, **named)

    def prove(self, *args: Any, **named: Any) -> Proofs:
        return self.kernel.prove(*args, blocks=self.blocks, **named)

    def export(self, *args: Any, **named: Any) -> Exported:
        return self.kernel.export(*args, blocks=self.blocks, **named)

    def on(self, profile: str) -> Bound:
        """The same for another profile."""
        return Bound(self.kernel.on(profile), self.blocks)
