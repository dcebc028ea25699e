"""The latent space: trained once (`train`), used with NumPy alone (`runtime`), sampled and labelled (`sampling`)."""
