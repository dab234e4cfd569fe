"""Work on other machines."""
