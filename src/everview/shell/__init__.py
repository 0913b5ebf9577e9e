"""The interactive shell `everview sql`: statements in, tables out, over the wire like any other client."""
