"""Train the autoencoder.

The loss per row is the paper's: the normalised Euclidean distance over the continuous part, plus, for every categorical
block, one minus the cosine similarity of the one-hot vectors.
"""

from dataclasses import dataclass, replace

import numpy as np

from fasterce.config import LatentConfig
from fasterce.data.codec import Codec
from fasterce.io.progress import Progress
from fasterce.latent.runtime import Autoencoder, Layer, Network, on_one_thread
from fasterce.latent.training import Adam, DenseLayers, cosine_rate
from fasterce.typing import Floats, Floats32, Indices

DEFAULTS = LatentConfig()
# Weights and batches are drawn from their own stream, apart from the split of the rows.
TRAINING_STREAM = 1


@dataclass(frozen=True)
class TrainingPlan:
    """Sizes and limits of one training, chosen from the size of the table."""

    latent: int
    hidden: int
    batch: int
    epochs: int
    patience: int
    learning_rate: float = DEFAULTS.learning_rate
    config: LatentConfig = DEFAULTS

    @classmethod
    def choose(cls, rows: int, codec: Codec, latent: int | None = None, config: LatentConfig = DEFAULTS) -> "TrainingPlan":
        """Plan a first training; one latent dimension per feature lets their directions be orthogonal."""
        power = round(np.log2(max(rows, 64) / config.batches_per_epoch))
        batch = int(np.clip(2**power, config.min_batch, config.max_batch))
        epochs = config.training_steps // max(1, rows // batch)
        return cls(
            latent=latent or max(2, len(codec.schema)),
            hidden=int(np.clip(config.hidden_per_column * codec.width, config.min_hidden, config.max_hidden)),
            batch=batch,
            epochs=int(np.clip(epochs, config.min_epochs, config.max_epochs)),
            patience=config.patience,
            learning_rate=config.learning_rate,
            config=config,
        )

    @classmethod
    def continue_from(cls, network: Network, rows: int, codec: Codec, config: LatentConfig = DEFAULTS) -> "TrainingPlan":
        """Plan further training of a network: the same size, a fraction of the epochs, smaller steps."""
        first = cls.choose(rows, codec, config=config)
        hidden, latent = network.encoder[-1].weight.shape
        return replace(
            first,
            latent=latent,
            hidden=hidden,
            epochs=max(config.min_update_epochs, first.epochs // config.update_epochs_divisor),
            patience=config.update_patience,
            learning_rate=first.learning_rate * config.update_learning_rate_factor,
        )


@dataclass(frozen=True)
class Trained:
    """A trained network, the epochs it took, its validation loss, and the encoded rows it has not seen."""

    network: Network
    epochs: int
    validation_loss: float
    held_out: Floats


def train(
    matrix: Floats, codec: Codec, plan: TrainingPlan, seed: int, progress: Progress, start: Network | None = None
) -> Trained:
    """Fit a network, new or from `start`, on a part of the rows; another part decides when to stop, the rest is held out."""
    training, validation, held_out = split(len(matrix), seed, plan.config)
    rng = np.random.default_rng([seed, TRAINING_STREAM])
    sizes = codec.width, plan.hidden, plan.latent, plan.hidden, codec.width
    network = DenseLayers(sizes, (True, False, True, False), rng)
    if start is not None:
        network.load([*start.encoder, *start.decoder])
    rows = matrix.astype(np.float32)
    with on_one_thread():
        best, epochs = _descend(network, ReconstructionLoss(codec), rows[training], rows[validation], plan, rng, progress)
    layers = network.layers()
    return Trained(_whitened(layers[:2], layers[2:], codec, matrix[training]), epochs, best, matrix[held_out])


def split(rows: int, seed: int, config: LatentConfig = DEFAULTS) -> tuple[Indices, Indices, Indices]:
    """Return the positions of training, validation and held-out rows, at random."""
    order = np.random.default_rng(seed).permutation(rows)
    first, second = max(1, int(config.training_end * rows)), max(2, int(config.validation_end * rows))
    return order[:first], order[first:second] if rows > 2 else order, order[second:] if rows > 3 else order


def reconstruction_losses(autoencoder: Autoencoder, codec: Codec, matrix: Floats) -> Floats:
    """Return the paper's loss per row: distance over the numbers, one minus cosine per category and missing indicator."""
    rebuilt = autoencoder.decode(autoencoder.encode(matrix))
    numbers = len(codec.numeric)
    loss = np.zeros(len(matrix))
    if numbers:
        loss += np.sqrt(((matrix - rebuilt)[:, :numbers] ** 2).mean(axis=1))
    for block in codec.one_hot:
        truth, guess = matrix[:, block.columns], rebuilt[:, block.columns]
        length = np.sqrt((guess**2).sum(axis=1)) + np.finfo(float).tiny
        loss += truth.sum(axis=1) - (truth * guess).sum(axis=1) / length
    return loss


class ReconstructionLoss:
    """The paper's loss over the codec's layout, and its derivative with respect to the outputs."""

    def __init__(self, codec: Codec) -> None:
        self.numeric = len(codec.numeric)
        self.sizes = [len(block.codes) for block in codec.one_hot]
        self.starts = np.cumsum([0, *self.sizes[:-1]])
        # Sums over the columns of each block are products with this matrix.
        self.member = np.repeat(np.eye(len(self.sizes), dtype=np.float32), self.sizes, axis=0)

    def __call__(self, rows: Floats32, outputs: Floats32) -> tuple[float, Floats32]:
        """Return the mean loss of rows and its derivative with respect to `outputs`."""
        slope = np.empty_like(outputs)
        loss = 0.0
        if self.numeric:
            loss += self._continuous(rows[:, : self.numeric], outputs[:, : self.numeric], slope[:, : self.numeric])
        if self.sizes:
            loss += self._categorical(rows[:, self.numeric :], outputs[:, self.numeric :], slope[:, self.numeric :])
        slope /= len(rows)
        return loss / len(rows), slope

    def _continuous(self, truth: Floats32, outputs: Floats32, slope: Floats32) -> float:
        difference = outputs - truth
        root = np.sqrt(np.square(difference).mean(axis=1, keepdims=True) + 1e-8)
        np.divide(difference, self.numeric * root, out=slope)
        return float(root.sum())

    def _categorical(self, truth: Floats32, logits: Floats32, slope: Floats32) -> float:
        largest = np.maximum.reduceat(logits, self.starts, axis=1)
        unit = np.exp(logits - np.repeat(largest, self.sizes, axis=1))
        unit /= np.sqrt(np.square(unit) @ self.member) @ self.member.T
        cosine = (unit * truth) @ self.member
        np.square(unit, out=unit)
        np.multiply(unit - truth, cosine @ self.member.T, out=slope)
        return float(truth.sum() - cosine.sum())


def _descend(
    network: DenseLayers,
    loss: ReconstructionLoss,
    rows: Floats32,
    validation: Floats32,
    plan: TrainingPlan,
    rng: np.random.Generator,
    progress: Progress,
) -> tuple[float, int]:
    """Train until the validation loss no longer falls; return the lowest, whose weights are kept, and the epochs."""
    adam, best, best_weights, waited, epochs = Adam(network.parameters), np.inf, network.parameters.copy(), 0, 0
    for epoch in progress.track(range(plan.epochs), "training the autoencoder"):
        epochs = epoch + 1
        rate = plan.learning_rate * cosine_rate(epoch, plan.epochs)
        order = rng.permutation(len(rows))
        for start in range(0, len(rows), plan.batch):
            batch = rows[order[start : start + plan.batch]]
            network.backward(loss(batch, network.forward(batch))[1])
            adam.step(network.gradient, rate)
        current = loss(validation, network.forward(validation))[0]
        waited += 1
        if current < best * (1 - plan.config.min_improvement):
            best, best_weights, waited = current, network.parameters.copy(), 0
        elif waited >= plan.patience:
            break
    network.parameters[:] = best_weights
    return best, epochs


def _whitened(encoder: list[Layer], decoder: list[Layer], codec: Codec, rows: Floats) -> Network:
    """Change the basis so that latent coordinates are uncorrelated with unit variance.

    A step of 0.1 then means the same in every direction and for every dataset.
    """
    blocks = tuple(block.columns for block in codec.one_hot)
    latent = Network(tuple(encoder), tuple(decoder), blocks).encode(rows)
    mean = latent.mean(axis=0)
    values, vectors = np.linalg.eigh(np.cov(latent, rowvar=False).reshape(latent.shape[1], latent.shape[1]))
    deviation = np.sqrt(np.maximum(values, max(values.max(), 1e-12) * 1e-4))
    whiten, colour = vectors / deviation, (vectors * deviation).T
    last, first = encoder[-1], decoder[0]
    encoder = [*encoder[:-1], Layer(last.weight @ whiten, (last.bias - mean) @ whiten)]
    decoder = [Layer(colour @ first.weight, first.bias + mean @ first.weight), *decoder[1:]]
    return Network(tuple(encoder), tuple(decoder), blocks)


def with_columns(network: Network, before: Codec, after: Codec) -> Network:
    """Return the network for another codec of the same schema; shared columns keep their weights, new ones start at zero."""
    old = np.full(after.width, -1, dtype=np.intp)
    old[: len(after.numeric)] = np.arange(len(after.numeric))
    for was, block in zip(before.one_hot, after.one_hot, strict=True):
        slot = was.slot_of[block.codes]
        old[block.columns] = np.where(slot >= 0, was.start + slot, -1)
    known = old >= 0
    first, last = network.encoder[0], network.decoder[-1]
    first = Layer(np.where(known[:, None], first.weight[old], 0.0), first.bias)
    last = Layer(np.where(known, last.weight[:, old], 0.0), np.where(known, last.bias[old], 0.0))
    blocks = tuple(block.columns for block in after.one_hot)
    return Network((first, *network.encoder[1:]), (*network.decoder[:-1], last), blocks)
