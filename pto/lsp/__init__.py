"""Programs in an editor: what is wrong, what a word means, where a value comes from.

`document.py` reads a .pto text again after a change, `features.py` and `actions.py` answer
questions about a place in it. `python.py` is the same for kernels in Python; what it knows of them
comes from `examine.py`, a process that executes the file. None of them knows the protocol.
`server.py` speaks it, with pygls.
"""
