"""The data that the compiled engine is written from: expressions and nests. No LLVM text."""
