"""What of the platform runs inside a job's sandbox. Only this folder is there: standard library, started by path."""
