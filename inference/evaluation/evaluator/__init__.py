"""Evaluates a model on one split of a dataset version, inside a run; knows no platform.

`python -m inference.evaluation.evaluator` predicts with the very code the model server uses, keeps every
prediction, and computes all figures from what it kept.
"""
