"""The front end for kernels in Python: a function's syntax tree is rewritten so that its control
statements call `runtime`. A condition that Python knows is decided while the kernel is traced; one
that depends on run-time values becomes a branch or loop of the program."""
