"""What evaluations tell, in words, numbers as text and charts: for pages, and for the report that the API gives too."""
