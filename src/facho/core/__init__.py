"""Settings, URLs, command line, and the one place where the parts are joined."""
