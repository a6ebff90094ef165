"""Video: a detector watches a file or a stream, and what it follows is counted, told and drawn."""
