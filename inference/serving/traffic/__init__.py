"""Who asks a service, how it answers them, and how its requests are split between two models."""
