"""Runtime interface (ABI) of Python and compiled code: values, memories, regions, threads."""
