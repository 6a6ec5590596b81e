"""The Llama that the peers train: PyTorch as its documentation would have it, in the shapes of our own bench."""

import dataclasses
import math

import torch
import torch.nn as nn
import torch.nn.functional as F


@dataclasses.dataclass(frozen=True)
class Shape:
    layers: int
    hidden: int
    heads: int
    vocabulary: int
    sequence: int
    batch: int

    @property
    def ffn(self) -> int:
        return -(-(8 * self.hidden // 3) // 64) * 64

    @property
    def tokens_per_step(self) -> int:
        return self.batch * self.sequence

    def flops_per_token(self) -> float:
        """Matrix products forward and backward, and causal attention (half of the square)."""
        weights = self.layers * (4 * self.hidden ** 2 + 3 * self.hidden * self.ffn) + self.hidden * self.vocabulary
        return 6 * weights + 6 * self.layers * self.sequence * self.hidden


SHAPES = {
    "tiny": Shape(layers=4, hidden=256, heads=4, vocabulary=8192, sequence=256, batch=8),
    "small": Shape(layers=12, hidden=768, heads=12, vocabulary=32000, sequence=512, batch=2),
}


def rotate(x, cos, sin):  # x: batch, heads, sequence, head size
    a, b = x.float().chunk(2, -1)
    return torch.cat((a * cos - b * sin, a * sin + b * cos), -1).type_as(x)


class Attention(nn.Module):
    def __init__(self, shape: Shape):
        super().__init__()
        self.head_size = shape.hidden // shape.heads
        self.q, self.k, self.v, self.o = (nn.Linear(shape.hidden, shape.hidden, bias=False) for _ in range(4))

    def forward(self, x, cos, sin):
        batch, sequence, hidden = x.shape
        q, k, v = (w(x).view(batch, sequence, -1, self.head_size).transpose(1, 2) for w in (self.q, self.k, self.v))
        out = F.scaled_dot_product_attention(rotate(q, cos, sin), rotate(k, cos, sin), v, is_causal=True)
        return self.o(out.transpose(1, 2).reshape(batch, sequence, hidden))


class FeedForward(nn.Module):
    def __init__(self, shape: Shape):
        super().__init__()
        self.gate = nn.Linear(shape.hidden, shape.ffn, bias=False)
        self.up = nn.Linear(shape.hidden, shape.ffn, bias=False)
        self.down = nn.Linear(shape.ffn, shape.hidden, bias=False)

    def forward(self, x):
        return self.down(F.silu(self.gate(x)) * self.up(x))


class Block(nn.Module):
    def __init__(self, shape: Shape):
        super().__init__()
        self.norm1, self.attention = nn.RMSNorm(shape.hidden, eps=1e-5), Attention(shape)
        self.norm2, self.ffn = nn.RMSNorm(shape.hidden, eps=1e-5), FeedForward(shape)

    def forward(self, x, cos, sin):
        x = x + self.attention(self.norm1(x), cos, sin)
        return x + self.ffn(self.norm2(x))


class Llama(nn.Module):
    def __init__(self, shape: Shape):
        super().__init__()
        self.embedding = nn.Embedding(shape.vocabulary, shape.hidden)
        self.blocks = nn.ModuleList(Block(shape) for _ in range(shape.layers))
        self.norm = nn.RMSNorm(shape.hidden, eps=1e-5)
        self.head = nn.Linear(shape.hidden, shape.vocabulary, bias=False)
        head_size = shape.hidden // shape.heads
        frequencies = 10000.0 ** (-torch.arange(0, head_size, 2).float() / head_size)
        angles = torch.outer(torch.arange(shape.sequence).float(), frequencies)
        self.register_buffer("cos", angles.cos(), persistent=False)
        self.register_buffer("sin", angles.sin(), persistent=False)
        for name, parameter in self.named_parameters():
            if parameter.dim() > 1:
                residual = name.endswith(("o.weight", "down.weight"))
                nn.init.normal_(parameter, std=0.02 / (math.sqrt(2 * shape.layers) if residual else 1))

    def forward(self, tokens):
        x = self.embedding(tokens)
        for block in self.blocks:
            x = block(x, self.cos, self.sin)
        return self.head(self.norm(x))


def loss(model: nn.Module, tokens, targets):
    return F.cross_entropy(model(tokens).float().flatten(0, 1), targets.flatten())
