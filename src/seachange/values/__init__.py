"""SQL values: types, coercion, text and binary forms, JSON, numerics. Imports only `errors`."""
