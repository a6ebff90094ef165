"""Reports: documents of people with live panels over runs."""
