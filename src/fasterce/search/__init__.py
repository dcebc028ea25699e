"""The search for counterfactuals.

The modules in the order a query passes them: `plan` (options resolved), `target` and `query_targets`, `context`, `space`
(the compiled search on an exact scorer) or `guided` (the same on the surrogate), `propose` and `realism` (known examples),
`evaluator`, `limits` and `rounds` (evaluation), `shrink` and `margin`, `verify`, `results`. `methods` combines them into
closest, sparse and realistic; `engines` has the walks and the algorithms of the paper. All of it works on codes; the model
is a function from codes to predictions.
"""
