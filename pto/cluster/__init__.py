"""Work on other machines, joined by Ray: blocks of a launch, ranks of a world, many small tasks.

Nothing of Ray is imported before somebody asks for it (`on.py`). Programs travel as text, arrays
through the object store, results as the bytes that were written; bits are those of one process.
"""
