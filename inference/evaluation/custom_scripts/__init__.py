"""Evaluations by somebody's own script: what is run, how it is started, which figures it left."""
