"""A small copy of the model, distilled in `fit`: it ranks candidates for free before the model itself is asked."""
