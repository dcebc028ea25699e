"""Train the autoencoder with PyTorch; what comes back holds NumPy arrays only.

The loss of a row is the paper's: the normalised Euclidean distance over the continuous part, plus, for every categorical
block, one minus the cosine similarity of the one-hot vectors.
"""

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np

from fasterce.codec import Codec
from fasterce.errors import MissingExtraError
from fasterce.latent.runtime import Layer, Network
from fasterce.profile import Floats
from fasterce.progress import Progress

LARGE_STEP = 50_000_000


@dataclass(frozen=True)
class TrainingPlan:
    """How to train; the defaults are chosen from the size of the table."""

    latent: int
    hidden: int
    batch: int
    epochs: int
    patience: int
    learning_rate: float = 2e-3

    @classmethod
    def choose(cls, rows: int, codec: Codec, latent: int | None = None) -> "TrainingPlan":
        """As many latent dimensions as features: each feature's direction can be orthogonal to all the others."""
        features = len(codec.schema)
        batch = int(np.clip(2 ** round(np.log2(max(rows, 64) / 48)), 32, 512))
        steps_an_epoch = max(1, rows // batch)
        return cls(
            latent=latent or max(2, features),
            hidden=int(np.clip(2 * codec.width, 64, 256)),
            batch=batch,
            epochs=int(np.clip(5000 // steps_an_epoch, 8, 200)),
            patience=12,
        )

    @classmethod
    def go_on(cls, rows: int, codec: Codec, network: Network) -> "TrainingPlan":
        """For a network that has been trained before: its own size, a fraction of the epochs, smaller steps."""
        usual = cls.choose(rows, codec)
        hidden, latent = network.encoder[-1].weight.shape
        epochs = max(4, usual.epochs // 5)
        return cls(latent, hidden, usual.batch, epochs, patience=4, learning_rate=usual.learning_rate / 2)


@dataclass(frozen=True)
class Trained:
    network: Network
    epochs: int
    validation_loss: float
    held_out: Floats


def train(
    matrix: Floats, codec: Codec, plan: TrainingPlan, seed: int, progress: Progress, start: Network | None = None
) -> Trained:
    """Fit on 70 % of the rows, stop by 15 %, keep 15 % unseen for the report; from scratch or from `start` on."""
    torch = _torch()
    training, validation, held_out = split(len(matrix), seed)
    with torch.random.fork_rng(devices=[]), _threads(torch, plan, codec.width):
        torch.manual_seed(seed)
        model = _Model(torch, codec, plan)
        if start is not None:
            model.take_over(start)
        data = torch.as_tensor(matrix, dtype=torch.float32)
        best, epochs = _descend(torch, model, data[training], data[validation], plan, seed, progress)
    network = _whitened(_layers(model.encoder), _layers(model.decoder), codec, matrix[training])
    return Trained(network, epochs, best, matrix[held_out])


def split(rows: int, seed: int) -> tuple[Any, Any, Any]:
    order = np.random.default_rng(seed).permutation(rows)
    first, second = max(1, int(0.7 * rows)), max(2, int(0.85 * rows))
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

    def take_over(self, network: Network) -> None:
        """Go on from the numbers of a network of the same shape."""
        with self.torch.no_grad():
            for stack, layers in ((self.encoder, network.encoder), (self.decoder, network.decoder)):
                for module, known in zip((part for part in stack if hasattr(part, "weight")), layers, strict=True):
                    module.weight.copy_(self.torch.as_tensor(known.weight.T.copy()))
                    module.bias.copy_(self.torch.as_tensor(known.bias))

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
        """One minus cosine for all blocks at once: sums over a block are products with its membership matrix."""
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
        for batch in _batches(torch.randperm(len(rows), generator=shuffle), plan.batch):
            optimiser.zero_grad()
            loss = model.loss(rows[batch])
            loss.backward()
            optimiser.step()
        schedule.step()
        with torch.no_grad():
            current = float(model.loss(validation))
        if current < best * (1 - 1e-4):
            best, best_state, waited = current, [p.detach().clone() for p in model.parameters()], 0
        else:
            waited += 1
            if waited >= plan.patience:
                break
    with torch.no_grad():
        for parameter, value in zip(model.parameters(), best_state, strict=True):
            parameter.copy_(value)
    return best, epochs


def _batches(order: Any, size: int) -> Iterator[Any]:
    for start in range(0, len(order), size):
        yield order[start : start + size]


def _layers(stack: Any) -> list[Layer]:
    return [layer(module) for module in stack if hasattr(module, "weight")]


def layer(module: Any) -> Layer:
    """A linear module's numbers, inputs first."""
    weight, bias = module.weight.detach().numpy(), module.bias.detach().numpy()
    return Layer(weight.T.astype(np.float64).copy(), bias.astype(np.float64).copy())


def _whitened(encoder: list[Layer], decoder: list[Layer], codec: Codec, rows: Floats) -> Network:
    """Fold a change of basis into the two networks, so that latent coordinates are uncorrelated with unit variance.

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


def moved(network: Network, before: Codec, after: Codec) -> Network:
    """The network for another codec of the same schema: columns both have keep their weights, new ones start at zero."""
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
def _threads(torch: Any, plan: TrainingPlan, width: int) -> Iterator[None]:
    """One thread for small networks: several would spend their time waiting for each other."""
    with one_thread(torch) if plan.batch * plan.hidden * width < LARGE_STEP else nullcontext():
        yield


@contextmanager
def one_thread(torch: Any) -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _torch() -> Any:
    torch = torch_or_none()
    if torch is None:
        raise MissingExtraError("PyTorch", "train", "Training the autoencoder")
    return torch


def torch_or_none() -> Any:
    try:
        import torch  # noqa: PLC0415 - training is an extra
    except ImportError:
        return None
    return torch
