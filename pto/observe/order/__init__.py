"""Who comes before whom: clocks of pipes, flags and fences, scopes, streams."""
