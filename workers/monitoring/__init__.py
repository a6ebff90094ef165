"""What deserves an alarm: rules as data, judged on a plain picture. Pure: no database, no clock."""
