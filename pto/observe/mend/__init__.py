"""What would mend a program, tried before it is offered, and what would break it."""
