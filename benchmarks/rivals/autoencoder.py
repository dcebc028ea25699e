"""A plain autoencoder on an encoding's matrix (PyTorch), for the rivals that search in a latent space."""

import numpy as np
import torch

from benchmarks.rivals.encoding import Encoding

HIDDEN = 64
BATCH = 128
UPDATES = 3000
LEARNING_RATE = 2e-3
TINY = 1e-12


class Autoencoder:
    """The output of a number is the number, that of a category's block are shares that sum to one."""

    def __init__(self, encoding: Encoding, matrix: np.ndarray, seed: int, updates: int = UPDATES) -> None:
        torch.manual_seed(seed)
        self.encoding, self.problem = encoding, encoding.problem
        self.size = max(2, len(encoding.blocks) // 2)
        self.encoder = layers(encoding.width, self.size)
        self.decoder = layers(self.size, encoding.width)
        self.is_number = torch.zeros(encoding.width, dtype=torch.bool)
        self.member = torch.zeros(encoding.width, len(self.problem.categorical))
        for j in self.problem.numeric:
            self.is_number[encoding.blocks[j]] = True
        for k, j in enumerate(self.problem.categorical):
            self.member[encoding.blocks[j], k] = 1.0
        self._train(torch.as_tensor(matrix, dtype=torch.float32), updates)

    def _train(self, rows: torch.Tensor, updates: int) -> None:
        weights = [*self.encoder.parameters(), *self.decoder.parameters()]
        adam = torch.optim.Adam(weights, lr=LEARNING_RATE)
        generator = torch.Generator().manual_seed(0)
        for _ in range(updates):
            batch = rows[torch.randint(len(rows), (min(BATCH, len(rows)),), generator=generator)]
            adam.zero_grad()
            self.loss(batch).backward()
            adam.step()
        for weight in weights:
            weight.requires_grad_(False)

    def loss(self, rows: torch.Tensor) -> torch.Tensor:
        """Return the squared error of the numbers plus the cross-entropy of the categories, summed over features."""
        made = self.shares(self.decoder(self.encoder(rows)))
        numbers = (made - rows)[:, self.is_number].square().sum(dim=1)
        categories = (rows * torch.log(made.clamp_min(TINY)))[:, ~self.is_number].sum(dim=1)
        return (numbers - categories).mean()

    def encode(self, matrix: np.ndarray) -> np.ndarray:
        with torch.no_grad():
            return self.encoder(torch.as_tensor(matrix, dtype=torch.float32)).numpy().astype(float)

    def decode(self, latent: np.ndarray) -> np.ndarray:
        with torch.no_grad():
            return self.shares(self.decoder(torch.as_tensor(latent, dtype=torch.float32))).numpy().astype(float)

    def shares(self, raw: torch.Tensor) -> torch.Tensor:
        """Apply a softmax within every block of a category; numbers stay."""
        grown = torch.exp(raw - raw.max(dim=1, keepdim=True).values)
        whole = (grown @ self.member) @ self.member.T
        return torch.where(self.is_number, raw, grown / whole.clamp_min(TINY))

    def latent_gradient(self, latent: np.ndarray, gradient: np.ndarray) -> np.ndarray:
        """Return the gradient at a latent point from the gradient at the decoded row (backpropagation)."""
        point = torch.as_tensor(latent[None], dtype=torch.float32).requires_grad_()
        self.shares(self.decoder(point)).backward(torch.as_tensor(gradient[None], dtype=torch.float32))
        return point.grad[0].numpy().astype(float)


def layers(width: int, out: int) -> torch.nn.Module:
    return torch.nn.Sequential(torch.nn.Linear(width, HIDDEN), torch.nn.ReLU(), torch.nn.Linear(HIDDEN, out))
