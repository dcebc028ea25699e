"""Explanations behind a decision: an HTTP service and a page; see docs/serve.md.

The front (`app`, `store`, `keys`) imports no NumPy and no model: it validates, gathers and keeps records. Processes of their
own (`worker`) explain, so that a model that hangs or dies takes nothing with it.
"""
