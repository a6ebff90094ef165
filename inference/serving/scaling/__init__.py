"""Several servers of a service: as many as its callers need, none without requests."""
