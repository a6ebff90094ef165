"""`manage.py backup` and `manage.py restore`: database and data root."""
