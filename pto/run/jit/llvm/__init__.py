"""LLVM: text, types, lanes, compilation. Knows no instruction of PTO."""
