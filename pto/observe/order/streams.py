"""Several launches under the sanitizer: streams, events between them, and ranks.

>>> with watch(device) as found:
...     first.launch("fill.pto", args=[x])
...     second.launch("sum.pto", args=[x, y])
...     device.synchronize()
>>> found.findings()
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from pto.observe.sanitize import Sanitizer
from pto.run.machine.device import Device
from pto.run.machine.world import World
from pto.run.watch.events import Hook


@contextmanager
def watch(host: Device | World) -> Generator[Sanitizer]:
    """Watch launches inside the block, of all ranks together.

    Launches of one stream are ordered; those of different streams only by an event, the host or a
    signal in global memory.
    """
    world = host if isinstance(host, World) else host.world
    watcher = Sanitizer(world.devices[0].profile)
    with world.observed(Hook(watcher)):
        yield watcher
