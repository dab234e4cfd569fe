"""Order between pipes as data, and runs that do operations as early or late as it allows."""
