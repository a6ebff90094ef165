"""What a model in use is shown and what it answers, against what it learned from."""
