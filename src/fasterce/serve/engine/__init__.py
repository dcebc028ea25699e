"""Processes that explain, and the front's door to them (`desk`); only `answering` and what it imports know the model."""
