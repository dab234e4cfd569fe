"""Programs as text: reading and printing, driven by the rows' patterns."""
