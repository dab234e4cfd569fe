"""What an instruction row is made of: operands, kinds, types, attributes. Not the instructions."""
