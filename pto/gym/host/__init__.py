"""The host side of a case, followed statement by statement.

`main.cpp` and `launch.cpp` say which file fills which buffer, how large buffers are, which kernel
is launched with which arguments on how many blocks, and which buffer becomes which output file.
They say it in small C++: tables, helpers, loops, lambdas, macros. Following the program is the
reading that does not break with the next spelling: `tokens`, `parser` and `syntax` read it,
`interpreter` and `evaluator` follow it over `values`, and `runtime` answers its calls. Nothing here
compiles or evaluates text by other means; what is outside the subset is a finding with its line.
"""
