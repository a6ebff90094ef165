"""Monitoring: alarm rules as data, judged on a plain snapshot of the platform."""
