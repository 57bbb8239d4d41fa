"""Pages that are made of what the project knows: records, tables, options. The room above all others."""
