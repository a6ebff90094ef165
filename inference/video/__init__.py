"""Video: a detector watches a file or a stream; tracked objects are counted, reported and drawn."""
