"""The program of a prediction: a model over many pictures, chunk by chunk. Pure, copied into the run."""
