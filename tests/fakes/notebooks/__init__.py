"""A kind of job as an app would add it, complete in this folder: the kind, its list and the address of that."""
