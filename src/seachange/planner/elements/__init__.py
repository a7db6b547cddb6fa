"""What the planner knows of each kind of element, one module for each topic."""
