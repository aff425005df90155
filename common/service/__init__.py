"""What a long-running process needs: database, settings, signals, metrics, web pages."""
