"""Pictures and pages: self-contained HTML, no external requests, readable on paper."""
