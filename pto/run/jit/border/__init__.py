"""The border between Python and compiled code: values, memories, pieces, threads."""
