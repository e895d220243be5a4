"""Users: their roles, scopes and preferences. Never polls."""
