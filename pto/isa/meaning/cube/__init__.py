"""What instructions around the matrix unit do."""
