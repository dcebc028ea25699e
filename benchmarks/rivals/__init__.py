"""One small file a system; `catalogue.py` lists them."""
