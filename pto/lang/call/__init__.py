"""A call of an instruction function: its arguments, its results, its place in the user's file."""
