"""The curator's durable state: tables, records, and a reader for the dashboard."""
