"""Train the autoencoder with PyTorch; the result holds NumPy arrays only.

The loss per row is the paper's: the normalised Euclidean distance over the continuous part, plus, for every categorical
block, one minus the cosine similarity of the one-hot vectors.
"""

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fasterce.config import LatentConfig
from fasterce.data.codec import Codec
from fasterce.errors import MissingExtraError
from fasterce.io.progress import Progress
from fasterce.latent.runtime import Layer, Network
from fasterce.typing import Floats, Indices

DEFAULTS = LatentConfig()


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
    torch = torch_or_none()
    if torch is None:
        raise MissingExtraError("PyTorch", "train", "Training the autoencoder")
    training, validation, held_out = split(len(matrix), seed, plan.config)
    small = plan.batch * plan.hidden * codec.width < plan.config.single_thread_step
    with torch.random.fork_rng(devices=[]), one_thread(torch) if small else nullcontext():
        torch.manual_seed(seed)
        model = _Model(torch, codec, plan)
        if start is not None:
            model.copy_weights(start)
        data = torch.as_tensor(matrix, dtype=torch.float32)
        best, epochs = _descend(torch, model, data[training], data[validation], plan, seed, progress)
    encoder, decoder = ([layer_of(module) for module in stack[::2]] for stack in (model.encoder, model.decoder))
    network = _whitened(encoder, decoder, codec, matrix[training])
    return Trained(network, epochs, best, matrix[held_out])


def split(rows: int, seed: int, config: LatentConfig = DEFAULTS) -> tuple[Indices, Indices, Indices]:
    """Return the positions of training, validation and held-out rows, at random."""
    order = np.random.default_rng(seed).permutation(rows)
    first, second = max(1, int(config.training_end * rows)), max(2, int(config.validation_end * rows))
    return order[:first], order[first:second] if rows > 2 else order, order[second:] if rows > 3 else order


class _Model:
    """Encoder, decoder and the paper's loss over the codec's layout."""

    def __init__(self, torch: Any, codec: Codec, plan: TrainingPlan) -> None:
        def stack(inputs: int, outputs: int) -> Any:
            nn = torch.nn
            return nn.Sequential(nn.Linear(inputs, plan.hidden), nn.ReLU(), nn.Linear(plan.hidden, outputs))

        self.torch = torch
        self.encoder = stack(codec.width, plan.latent)
        self.decoder = stack(plan.latent, codec.width)
        self.numeric = len(codec.numeric)
        member = np.zeros((codec.width - self.numeric, len(codec.one_hot)))
        for k, block in enumerate(codec.one_hot):
            member[block.start - self.numeric : block.start - self.numeric + len(block.codes), k] = 1.0
        self.member = torch.as_tensor(member, dtype=torch.float32)
        self.block_of = torch.as_tensor(member.argmax(axis=1) if member.size else np.zeros(0, dtype=np.int64))

    def copy_weights(self, network: Network) -> None:
        """Start from the weights of a network of the same shape."""
        with self.torch.no_grad():
            for stack, layers in ((self.encoder, network.encoder), (self.decoder, network.decoder)):
                for module, layer in zip(stack[::2], layers, strict=True):
                    module.weight.copy_(self.torch.as_tensor(layer.weight.T.copy()))
                    module.bias.copy_(self.torch.as_tensor(layer.bias))

    def parameters(self) -> list[Any]:
        return [*self.encoder.parameters(), *self.decoder.parameters()]

    def loss(self, rows: Any) -> Any:
        output = self.decoder(self.encoder(rows))
        return self._continuous(rows, output) + self._categorical(rows, output)

    def _largest_of_block(self, logits: Any) -> Any:
        values = logits.detach()
        index = self.block_of.expand(len(values), -1)
        largest = values.new_full((len(values), self.member.shape[1]), -np.inf).scatter_reduce(1, index, values, "amax")
        return largest.gather(1, index)

    def _continuous(self, rows: Any, output: Any) -> Any:
        if self.numeric == 0:
            return 0.0
        squared = (rows[:, : self.numeric] - output[:, : self.numeric]).square().mean(dim=1)
        return (squared + 1e-8).sqrt().mean()

    def _categorical(self, rows: Any, output: Any) -> Any:
        """Return one minus cosine of all blocks at once: sums over a block are products with its membership matrix."""
        if self.member.shape[1] == 0:
            return 0.0
        truth, logits = rows[:, self.numeric :], output[:, self.numeric :]
        powers = (logits - self._largest_of_block(logits)).exp()
        along = (powers * truth) @ self.member
        length = (powers.square() @ self.member + 1e-30).sqrt()
        known = truth @ self.member
        return ((1 - along / length) * known).sum(dim=1).mean()


def _descend(
    torch: Any, model: _Model, rows: Any, validation: Any, plan: TrainingPlan, seed: int, progress: Progress
) -> tuple[float, int]:
    optimiser = torch.optim.Adam(model.parameters(), lr=plan.learning_rate)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, plan.epochs)
    shuffle = torch.Generator().manual_seed(seed)
    best, best_state, waited = float("inf"), [p.detach().clone() for p in model.parameters()], 0
    epochs = 0
    for _ in progress.track(range(plan.epochs), "training the autoencoder"):
        epochs += 1
        for batch in torch.randperm(len(rows), generator=shuffle).split(plan.batch):
            optimiser.zero_grad()
            loss = model.loss(rows[batch])
            loss.backward()
            optimiser.step()
        schedule.step()
        with torch.no_grad():
            current = float(model.loss(validation))
        if current < best * (1 - plan.config.min_improvement):
            best, best_state, waited = current, [p.detach().clone() for p in model.parameters()], 0
        else:
            waited += 1
            if waited >= plan.patience:
                break
    with torch.no_grad():
        for parameter, value in zip(model.parameters(), best_state, strict=True):
            parameter.copy_(value)
    return best, epochs


def layer_of(module: Any) -> Layer:
    """Return the weights of a linear module, inputs first."""
    weight, bias = module.weight.detach().numpy(), module.bias.detach().numpy()
    return Layer(weight.T.astype(np.float64).copy(), bias.astype(np.float64).copy())


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


@contextmanager
def one_thread(torch: Any) -> Iterator[None]:
    """Keep PyTorch to one thread: on small networks several only wait for each other."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def torch_or_none() -> Any:
    """Return PyTorch, None where it is not installed."""
    try:
        import torch  # noqa: PLC0415 - training is an extra
    except ImportError:
        return None
    return torch
