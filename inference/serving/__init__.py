"""Services: model versions that answer requests."""
