"""The sample project: a dataset, a trained model and an endpoint that a user can create and remove in one step."""
