"""Keys of a service for callers without an account, and how often each caller may ask."""
