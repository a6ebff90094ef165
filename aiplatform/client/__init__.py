"""`aip`: the platform's REST client for terminals and scripts. Standard library only."""
