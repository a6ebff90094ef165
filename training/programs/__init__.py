"""What every kind of job with a person's own program shares: its text, the ways to start it, the program that does."""
