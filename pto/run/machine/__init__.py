"""The machine: cores and their agents, devices, streams, worlds of ranks."""
