"""State of bytes: their last accesses, and whether they are defined, cached or lost."""
