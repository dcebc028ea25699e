"""A small network that approximates the model, trained in `fit`; it ranks candidates before the model evaluates them."""
