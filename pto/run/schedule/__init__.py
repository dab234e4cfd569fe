"""Runs in which effects happen as early or as late as the order between pipes allows."""
