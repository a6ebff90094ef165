"""Code that is copied into runs and packages. It imports neither the platform nor torch."""
