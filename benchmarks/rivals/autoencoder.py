"""A plain autoencoder on an encoding's matrix (PyTorch), for the rivals that search in a latent space."""

import numpy as np
import torch

from benchmarks.rivals.encoding import Encoding

HIDDEN = 64
BATCH = 128
UPDATES = 3000
PACE = 2e-3
TINY = 1e-12


class Autoencoder:
    """Numbers come back as they are, a category's block as shares that add up to one."""

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
        adam = torch.optim.Adam(weights, lr=PACE)
        generator = torch.Generator().manual_seed(0)
        for _ in range(updates):
            batch = rows[torch.randint(len(rows), (min(BATCH, len(rows)),), generator=generator)]
            adam.zero_grad()
            self.loss(batch).backward()
            adam.step()
        for weight in weights:
            weight.requires_grad_(False)

    def loss(self, rows: torch.Tensor) -> torch.Tensor:
        """Squared error of the numbers, cross-entropy of the categories, added up over features."""
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
        """Softmax within every block at once; numbers stay."""
        grown = torch.exp(raw - raw.max(dim=1, keepdim=True).values)
        whole = (grown @ self.member) @ self.member.T
        return torch.where(self.is_number, raw, grown / whole.clamp_min(TINY))

    def pulled_back(self, latent: np.ndarray, slope: np.ndarray) -> np.ndarray:
        """A slope at the decoded row as the slope at the latent point it comes from."""
        point = torch.as_tensor(latent[None], dtype=torch.float32).requires_grad_()
        self.shares(self.decoder(point)).backward(torch.as_tensor(slope[None], dtype=torch.float32))
        return point.grad[0].numpy().astype(float)


def layers(width: int, out: int) -> torch.nn.Module:
    return torch.nn.Sequential(torch.nn.Linear(width, HIDDEN), torch.nn.ReLU(), torch.nn.Linear(HIDDEN, out))
