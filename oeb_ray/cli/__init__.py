"""The command line: one module per command over the engine below."""
