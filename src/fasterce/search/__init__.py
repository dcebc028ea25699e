"""The search for counterfactuals.

The modules in the order a query passes them: `plan` (options resolved), `target` and `query_targets`, `context`, `shortlist`
and `ranked` (edits ranked by the surrogate), `propose` and `realism` (latent walks, known examples), `judge` and `rounds`
(evaluation), `refine` and `margin`, `verify`, `results`. `methods` combines them into closest, sparse and realistic; `paper`
has the algorithms of the paper. All of it works on codes and latent vectors; the model is a function from codes to
predictions.
"""
