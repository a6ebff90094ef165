"""What a next version would bring: a migration of tables in use."""
