"""alibi (PyPI): `proto` is CounterfactualProto, which the paper calls ICEGP; `cfrl` is CounterfactualRLTabular.

CounterfactualProto has the settings of alibi's example on Adult (numbers in -1..1, one-hot columns, 500 iterations, 5 steps
of c) and k-d trees for prototypes (theta 10) as its example on housing. It is given the black box as a Keras model where
its weights are known, else as a function with numerical gradients. CFRL trains an autoencoder and a policy first, and then
needs one pass per row; of the manual's 10,000 training steps it gets 2,000 (CFRL_STEPS sets another number). The packages
that only its text explainers need are replaced by mocks.
"""

import os
import sys
from unittest.mock import MagicMock

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
for text_only in ("spacy", "spacy.util", "spacy.cli", "transformers"):
    sys.modules.setdefault(text_only, MagicMock(name=text_only))

from typing import Any

import numpy as np
import pandas as pd
import tensorflow as tf
from alibi.explainers import CounterfactualProto, CounterfactualRLTabular
from alibi.explainers.backends.cfrl_tabular import get_he_preprocessor
from alibi.models.tensorflow import ADULTDecoder, ADULTEncoder, HeAE

from benchmarks.rivals import gradients
from benchmarks.rivals.encoding import Encoding
from benchmarks.rivals.problem import Problem

STEPS = int(os.environ.get("CFRL_STEPS", "2000"))
EPOCHS = 50
HIDDEN, LATENT = 128, 15
COARSE = 0.1


def Rival(problem: Problem, variant: str) -> Any:
    """Return the explainer of a variant: two classes, since they need different modes of TensorFlow."""
    threads = int(os.environ.get("OMP_NUM_THREADS", "1"))
    tf.config.threading.set_intra_op_parallelism_threads(threads)
    tf.config.threading.set_inter_op_parallelism_threads(threads)
    tf.get_logger().setLevel("ERROR")
    tf.keras.utils.set_random_seed(problem.seed)
    return Prototypes(problem) if variant == "proto" else Reinforced(problem)


class Prototypes:
    def __init__(self, problem: Problem) -> None:
        tf.compat.v1.disable_v2_behavior()
        self.problem, self.encoding = problem, Encoding(problem, numbers=(-1.0, 1.0))
        weights = gradients.known_weights(problem)
        model = (
            keras_model(*gradients.input_layer(problem, self.encoding, weights), weights) if weights else self.predict_proba
        )
        self.exact = weights is not None
        matrix = self.encoding.matrix(problem.codes(problem.X_train)).astype(np.float32)
        low, high = self.ranges()
        self.explainer = CounterfactualProto(
            model,
            (1, matrix.shape[1]),
            beta=0.01,
            theta=10.0,
            use_kdtree=True,
            cat_vars={self.encoding.blocks[j].start: len(problem.categories(j)) for j in problem.categorical},
            ohe=True,
            feature_range=(low, high),
            max_iterations=500,
            c_init=1.0,
            c_steps=5,
            eps=(1e-3, 1e-3 if self.exact else COARSE),
        )
        self.explainer.fit(matrix, d_type="abdm", disc_perc=[25, 50, 75])

    def ranges(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the lowest and highest value of every feature; those of categories are set by `fit`."""
        low, high = self.encoding.limits()
        first = [block.start for block in self.encoding.blocks]
        numeric = np.isin(np.arange(len(first)), self.problem.numeric)
        return tuple(np.where(numeric, end[first], edge)[None].astype(np.float32) for end, edge in ((low, -1), (high, 1)))

    def predict_proba(self, matrix: np.ndarray) -> np.ndarray:
        return self.problem.predict_proba(self.encoding.codes(np.asarray(matrix)))

    def explain(self, row: pd.DataFrame) -> np.ndarray | None:
        query = self.encoding.matrix(self.problem.codes(row)).astype(np.float32)
        found = self.explainer.explain(query)
        return None if found.cf is None else self.encoding.codes(found.cf["X"])

    def table(self, result: np.ndarray) -> pd.DataFrame:
        return self.problem.frame(result)

    def notes(self) -> list[str]:
        return ["exact gradients; calls of the Keras model are not counted" if self.exact else "numerical gradients"]


def keras_model(matrix: np.ndarray, offset: np.ndarray, weights: dict[str, np.ndarray]) -> Any:
    """Return the black box as a Keras model; its last layer has two scores, zero and that of the logistic function."""
    count = sum(name.startswith("W") for name in weights)
    layers = [(matrix, offset), *((weights[f"W{k}"], weights[f"b{k}"]) for k in range(count))]
    last = layers[-1]
    layers[-1] = tuple(np.concatenate([np.zeros_like(part), part], axis=-1) for part in last)
    kinds = ["linear", *["relu"] * (count - 1), "softmax"]
    dense = [tf.keras.layers.Dense(len(bias), activation=kind) for (_, bias), kind in zip(layers, kinds, strict=True)]
    model = tf.keras.Sequential([tf.keras.Input((matrix.shape[0],)), *dense])
    for layer, parts in zip(dense, layers, strict=True):
        layer.set_weights([np.asarray(part, dtype=np.float32) for part in parts])
    return model


class Reinforced:
    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        codes = problem.codes(problem.X_train).astype(np.float32)
        category_map = {j: [str(value) for value in problem.categories(j)] for j in problem.categorical}
        types = {problem.columns[j]: float for j in problem.numeric}
        before, back = get_he_preprocessor(
            X=codes, feature_names=problem.columns, category_map=category_map, feature_types=types
        )
        autoencoder = self.autoencoder(before(codes), codes)
        self.explainer = CounterfactualRLTabular(
            predictor=problem.predict_proba,
            encoder=autoencoder.encoder,
            decoder=autoencoder.decoder,
            latent_dim=LATENT,
            encoder_preprocessor=before,
            decoder_inv_preprocessor=back,
            coeff_sparsity=0.5,
            coeff_consistency=0.5,
            category_map=category_map,
            feature_names=problem.columns,
            immutable_features=[problem.columns[j] for j in problem.immutable],
            train_steps=STEPS,
            batch_size=100,
            backend="tensorflow",
            seed=problem.seed,
        )
        self.explainer.fit(X=codes)

    def autoencoder(self, matrix: np.ndarray, codes: np.ndarray) -> Any:
        """Return the heterogeneous autoencoder of its example: one head for the numbers, one for each category."""
        problem = self.problem
        sizes = [len(problem.categories(j)) for j in problem.categorical]
        numbers = len(problem.numeric)
        heads = [numbers, *sizes] if numbers else sizes
        autoencoder = HeAE(
            encoder=ADULTEncoder(hidden_dim=HIDDEN, latent_dim=LATENT),
            decoder=ADULTDecoder(hidden_dim=HIDDEN, output_dims=heads),
        )
        crossed = [tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True) for _ in sizes]
        losses = [tf.keras.losses.MeanSquaredError(), *crossed] if numbers else crossed
        weights = [1.0, *[1 / len(sizes)] * len(sizes)] if numbers else [1 / len(sizes)] * len(sizes)
        autoencoder.compile(optimizer=tf.keras.optimizers.Adam(1e-3), loss=losses, loss_weights=weights)
        categories = [codes[:, j].astype(int) for j in problem.categorical]
        outputs = tuple([matrix[:, :numbers], *categories] if numbers else categories)
        rows = tf.data.Dataset.from_tensor_slices((matrix, outputs)).shuffle(1024, seed=problem.seed)
        autoencoder.fit(rows.batch(min(128, len(matrix)), drop_remainder=True), epochs=EPOCHS, verbose=0)
        return autoencoder

    def explain(self, row: pd.DataFrame) -> np.ndarray:
        return self.explain_batch(row)

    def explain_batch(self, rows: pd.DataFrame) -> np.ndarray:
        codes = self.problem.codes(rows).astype(np.float32)
        conditions = [self.condition(query) for query in codes] if self.problem.ranges else [{}]
        found = self.explainer.explain(codes, Y_t=np.array([self.problem.target]), C=conditions)
        return np.asarray(found.cf["X"], dtype=float)

    def condition(self, query: np.ndarray) -> dict[str, list[float]]:
        """Return the ranges in its format: how far below and above the value of the query a number may go."""
        limits = {j: self.problem.limits(j) for j in self.problem.ranges}
        return {
            self.problem.columns[j]: [min(low - query[j], 0), max(high - query[j], 0)] for j, (low, high, _) in limits.items()
        }

    def table(self, result: np.ndarray) -> pd.DataFrame:
        return self.problem.frame(result)

    def notes(self) -> list[str]:
        return [f"{STEPS:,} training steps"]
