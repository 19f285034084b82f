"""Harbor: task folders that a coding agent works in, their verifier, and what comes of running them."""
