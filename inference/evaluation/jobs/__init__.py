"""Bases of jobs that run a program with a model version: evaluations, conversions, predictions, video analyses."""
