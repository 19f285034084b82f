"""Corpora: every format comes out as a Corpus of Docs (manifest.py), checked before anything runs (check.py)."""
