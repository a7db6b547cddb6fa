"""SQL text: tokens, keywords, placeholders, names, and sqlglot's trees."""
