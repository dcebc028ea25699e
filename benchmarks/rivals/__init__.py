"""One small file per system; `catalogue.py` lists them."""
