"""Operations as LLVM text: the table of emitters, and one folder for each of the ISA's."""
