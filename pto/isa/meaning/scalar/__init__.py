"""What the scalar unit computes and asks of its core."""
