"""The runtime's package, provided by the PTO machine (`pto.graphs.device`)."""
