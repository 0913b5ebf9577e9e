"""What the system tells about itself in SQL: relations and functions that look into the catalog."""
