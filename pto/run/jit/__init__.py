"""The fast engine: LLVM code from the same rows. What it cannot compile, the reference engine does."""
