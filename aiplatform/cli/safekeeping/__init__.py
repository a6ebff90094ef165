"""`manage.py backup` and `manage.py restore`: database and data root, kept elsewhere and brought back."""
