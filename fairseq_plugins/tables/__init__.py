"""The papers' tables: what they hold, and the workflow that trains their rows."""
