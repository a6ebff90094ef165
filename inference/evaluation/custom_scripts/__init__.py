"""Evaluations by custom scripts: what is run, how it is started, and its metrics."""
