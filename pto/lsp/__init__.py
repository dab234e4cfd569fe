"""Editor support: findings, documentation of words, definitions of values.

`document.py` parses a .pto text again after a change; `features.py` and `actions.py` answer
requests about a position in it. `python.py` does the same for kernels in Python, with data from
`examine.py`, a process that executes the file. These modules are independent of the protocol;
`server.py` implements it with pygls.
"""
