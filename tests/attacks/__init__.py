"""The attack catalogue and the tests that hold it; `python -m tests.attacks` runs them all."""
