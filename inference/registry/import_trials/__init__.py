"""A model from elsewhere tried on example pictures: which ways to read it there are, and the best of them to choose."""
