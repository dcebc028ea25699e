"""The search, in the order the data flows:

hyperplanes -> directions -> linesearch -> project -> judge -> combine -> refine -> verify

`variants` strings the stages together for closest, sparse and realistic; `paper` holds the plain reading of the paper.
All of it works on codes and latent vectors with NumPy alone; the model is a function from codes to answers.
"""
