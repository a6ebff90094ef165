"""Declarative bases: a kind of object declares what its pages and its API have, see docs/CONTRIBUTING.md."""
