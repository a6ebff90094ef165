"""Make a version of other versions: an ensemble, or a detector with a classifier behind it."""
