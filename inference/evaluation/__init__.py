"""Evaluations: submission, results, comparison, promotion rules, reports."""
