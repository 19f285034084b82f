"""Where work is done: in this process (inline.py) or on Ray (rays.py), with the same five verbs (contract.py)."""
