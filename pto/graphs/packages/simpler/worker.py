"""The worker, provided by the PTO machine."""

from pto.graphs.device import Worker

__all__ = ["Worker"]
