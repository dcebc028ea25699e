"""Model files read with suspicion: what they are by their content, and whether a library may be let near them."""
