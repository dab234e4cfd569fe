"""Things a person would really do with the machine. Each module runs with `python -m`."""
