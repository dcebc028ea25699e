"""Display of explanations: in a terminal, in a notebook, on a page and as figures."""
