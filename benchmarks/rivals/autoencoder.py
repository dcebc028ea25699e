"""A plain autoencoder on an encoding's matrix (PyTorch), for the rivals that search in a latent space."""

import numpy as np
import torch

from benchmarks.rivals.encoding import Encoding

HIDDEN = 64
BATCH = 128
UPDATES = 3000
PACE = 2e-3


class Autoencoder:
    """Numbers come back as they are, a category's block as shares that add up to one."""

    def __init__(self, encoding: Encoding, matrix: np.ndarray, seed: int, updates: int = UPDATES) -> None:
        torch.manual_seed(seed)
        self.encoding, self.problem = encoding, encoding.problem
        self.size = max(2, len(encoding.blocks) // 2)
        self.encoder = layers(encoding.width, self.size)
        self.decoder = layers(self.size, encoding.width)
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
        raw = self.decoder(self.encoder(rows))
        total = torch.zeros(())
        for j, block in enumerate(self.encoding.blocks):
            if j in self.problem.numeric:
                total = total + (raw[:, block] - rows[:, block]).square().mean()
            else:
                total = total - (rows[:, block] * torch.log_softmax(raw[:, block], dim=1)).sum(dim=1).mean()
        return total

    def encode(self, matrix: np.ndarray) -> np.ndarray:
        with torch.no_grad():
            return self.encoder(torch.as_tensor(matrix, dtype=torch.float32)).numpy().astype(float)

    def decode(self, latent: np.ndarray) -> np.ndarray:
        with torch.no_grad():
            return self.shares(self.decoder(torch.as_tensor(latent, dtype=torch.float32))).numpy().astype(float)

    def shares(self, raw: torch.Tensor) -> torch.Tensor:
        numeric = self.problem.numeric
        parts = [raw[:, b] if j in numeric else torch.softmax(raw[:, b], dim=1) for j, b in enumerate(self.encoding.blocks)]
        return torch.cat(parts, dim=1)

    def pulled_back(self, latent: np.ndarray, slope: np.ndarray) -> np.ndarray:
        """A slope at the decoded row as the slope at the latent point it comes from."""
        point = torch.as_tensor(latent[None], dtype=torch.float32).requires_grad_()
        self.shares(self.decoder(point)).backward(torch.as_tensor(slope[None], dtype=torch.float32))
        return point.grad[0].numpy().astype(float)


def layers(width: int, out: int) -> torch.nn.Module:
    return torch.nn.Sequential(torch.nn.Linear(width, HIDDEN), torch.nn.ReLU(), torch.nn.Linear(HIDDEN, out))
