"""PTO kernels in C++: the header, the user's C++ compiler, records of calls, and their execution.

The compiled kernel runs natively, with the user's rights, in a child process. Every instruction
call is recorded, and the simulator (`run/sites.py`), which is independent of C++, executes it.
"""
