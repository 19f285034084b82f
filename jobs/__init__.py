"""Hydra entry points: `python -m jobs.benchmark provider=[pdftext] ...`."""
