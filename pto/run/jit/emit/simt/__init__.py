"""Work items in compiled code."""
