"""A plan as text, one module for each form. Pure: a plan and the catalog that it was made for, in; lines, out."""
