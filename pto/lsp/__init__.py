"""`.pto` programs in an editor: what is wrong, what a word means, where a value comes from.

`document.py` reads a text again after a change, `features.py` and `actions.py` answer questions
about a place in it; none of them knows the protocol. `server.py` speaks it, with pygls.
"""
