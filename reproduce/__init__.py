"""Runs, records and compares the notebooks; see `python -m reproduce --help`."""
