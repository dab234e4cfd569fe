"""Which tile or buffer bytes belong to, and which has lost its own to another."""
