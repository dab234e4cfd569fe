"""From a call to a run: arguments, arrays, a kernel made ready, the host that submits it."""
