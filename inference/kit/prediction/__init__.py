"""Predictions for many images in a run, and samples for self-tests."""
