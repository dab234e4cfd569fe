"""PTO kernels in C++: our header, a compiler of the user's, records, and the machine behind them.

The compiled kernel runs natively, with the user's rights, in a child process; every instruction it
reaches is written down and executed by the machine (`run/sites.py`), which knows nothing of C++.
"""
