"""Inspect model files without running or loading them. Pure; no database."""
