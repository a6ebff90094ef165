"""Programs in other languages that say what a package's run.py says, made of its model.json."""
