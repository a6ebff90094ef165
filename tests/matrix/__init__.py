"""Who gets in where: one checked-in table over every route and method, and the world it is asked in."""
