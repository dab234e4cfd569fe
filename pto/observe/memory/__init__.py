"""What is known about bytes: who touched them, whether they are defined, cached or lost."""
