"""The runtime's build package, provided by the PTO machine (`pto.graphs.device`)."""

from pto.graphs.device import KernelCompiler

__all__ = ["KernelCompiler"]
