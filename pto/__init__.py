"""A complete PTO machine in Python: read, check, run and watch tile-accelerator programs."""

__version__ = "0.1.0"
