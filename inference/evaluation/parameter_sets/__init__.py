"""Parameters of evaluations under a name."""
