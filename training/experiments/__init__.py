"""Experiments: several trainings beside each other."""
