"""The parts of an instruction row: operands, kinds, types, attributes. Contains no instruction."""
