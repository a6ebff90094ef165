"""Studies: many trainings of one request that search for good parameters."""
