"""The functions of checks: each takes a `Context` and returns what it measured. The catalog names them."""
