"""What a job may do to the machine in each sandbox tier: thirty probes, and the grid that they draw."""
