"""Safe loading of model files: what they are by their content, and whether a library may read them."""
