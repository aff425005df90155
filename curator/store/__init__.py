"""The curator's durable state: a store, a reader for the dashboard, and their records."""
