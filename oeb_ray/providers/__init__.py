"""Providers: everything that turns a document and a schema into a prediction. See contract.py and registry.py."""
