"""Which task a model must be for to watch."""

TASK = "detection"
