"""What is in a model file, found out without running, loading or trusting it. Pure; no database."""
