"""Models in use: registry, evaluations, services.

`inference.server` and `inference.evaluator` know nothing of the platform: they are
copied into a run under this same package name and start there by themselves.
"""
