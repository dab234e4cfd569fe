"""Work on other machines, joined by Ray: blocks of a launch, ranks of a world, many small tasks.

Ray is imported only on first use (`on.py`). Programs are sent as text, arrays through the object
store, and results as the bytes that were written. Results have the same bits as in one process.
"""
