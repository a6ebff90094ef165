"""Tracking: MLflow's API as a door by which any script reports into the platform."""
