"""Several services in one process: which share one, where each answers, and who leaves it after crashes."""
