"""Trial accounts: their table, log-in, what is handed out, and what is left when they end."""
