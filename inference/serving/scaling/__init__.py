"""Several servers of a service: as many as its callers need, none while nobody asks."""
