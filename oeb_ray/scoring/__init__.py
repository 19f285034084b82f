"""Scorers: two parsed JSON documents and a schema in, plain values out.

Each scorer stands alone on the standard library, numpy and scipy, and knows nothing of runs, providers or storage.
"""
