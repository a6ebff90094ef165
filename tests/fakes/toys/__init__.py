"""A kind of object that only tests have: what a new one costs (tests/architecture/test_a_new_kind_of_object.py)."""
