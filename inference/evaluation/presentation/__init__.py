"""Results of evaluations as texts, formatted numbers and charts, for pages and the report of the API."""
