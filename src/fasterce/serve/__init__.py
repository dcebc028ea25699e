"""Explanations behind a decision: an HTTP service and a page; see docs/serve.md.

The front (`api`, `store`, `keys`) imports no NumPy and no model: it validates requests and stores records. Processes of their
own (`workers`) explain, so that a model that hangs or dies does not affect the service.
"""
