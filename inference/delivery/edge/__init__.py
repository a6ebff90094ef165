"""Models on devices outside of the cluster: groups of devices, what each should run, and the agent that pulls it."""
