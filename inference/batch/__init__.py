"""Predictions: a version answers many pictures, as a job; their tables, service, pages and API."""
