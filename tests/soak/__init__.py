"""The soak's checker against hand-made and simulated histories, and a short run of the whole."""
