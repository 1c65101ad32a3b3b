"""The peer of lockstep-bench: the same model and step in PyTorch.

Prints "ready", then answers each line "step" on standard input by training one
step and printing its seconds; "memory" by VmHWM in bytes; ends with the input.
"""

import argparse
import sys
import time

import torch
from torch import nn
from torch.nn import functional as F


class RmsNorm(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x):
        return F.rms_norm(x, (x.shape[-1],), self.weight, 1e-5)


class Attention(nn.Module):
    def __init__(self, o, rope):
        super().__init__()
        self.heads, self.kv_heads = o.heads, o.kv_heads
        self.head_width = o.width // o.heads
        bias = o.family == "gpt2"
        self.qkv = nn.Linear(
            o.width, (o.heads + 2 * o.kv_heads) * self.head_width, bias=bias)
        self.output = nn.Linear(o.width, o.width, bias=bias)
        self.rope = rope

    def rotate(self, x):
        cos, sin = self.rope
        a, b = x.chunk(2, dim=-1)
        return torch.cat((a * cos - b * sin, b * cos + a * sin), dim=-1)

    def forward(self, x):
        batch, length, width = x.shape
        sizes = [self.heads, self.kv_heads, self.kv_heads]
        q, k, v = (
            part.view(batch, length, -1, self.head_width).transpose(1, 2)
            for part in self.qkv(x).split(
                [size * self.head_width for size in sizes], dim=-1))
        if self.rope is not None:
            q, k = self.rotate(q).to(v.dtype), self.rotate(k).to(v.dtype)
        y = F.scaled_dot_product_attention(
            q, k, v, is_causal=True,
            enable_gqa=self.heads != self.kv_heads)
        return self.output(y.transpose(1, 2).reshape(batch, length, width))


class FeedForward(nn.Module):
    def __init__(self, o):
        super().__init__()
        self.gpt2 = o.family == "gpt2"
        hidden = o.hidden if self.gpt2 else 2 * o.hidden
        self.up = nn.Linear(o.width, hidden, bias=self.gpt2)
        self.down = nn.Linear(o.hidden, o.width, bias=self.gpt2)

    def forward(self, x):
        x = self.up(x)
        if self.gpt2:
            return self.down(F.gelu(x, approximate="tanh"))
        gate, up = x.chunk(2, dim=-1)
        return self.down(F.silu(gate) * up)


class Block(nn.Module):
    def __init__(self, o, norm, rope):
        super().__init__()
        self.norm1, self.norm2 = norm(), norm()
        self.attention = Attention(o, rope)
        self.feed_forward = FeedForward(o)

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.feed_forward(self.norm2(x))


class Model(nn.Module):
    def __init__(self, o):
        super().__init__()
        gpt2 = o.family == "gpt2"
        self.classes = o.classes
        self.tokens = nn.Embedding(o.vocabulary, o.width)
        self.positions = nn.Embedding(o.sequence, o.width) if gpt2 else None
        rope = None
        if not gpt2:
            d = o.width // o.heads
            frequency = 10000.0 ** (-torch.arange(0, d, 2) / d)
            angle = torch.outer(torch.arange(o.sequence), frequency)
            rope = (angle.cos(), angle.sin())
        def norm():
            return nn.LayerNorm(o.width) if gpt2 else RmsNorm(o.width)
        self.blocks = nn.ModuleList(
            Block(o, norm, rope) for _ in range(o.layers))
        self.norm = norm()
        self.head = nn.Linear(o.width, o.classes or o.vocabulary,
                              bias=o.classes > 0)
        for module in self.modules():
            if isinstance(module, (nn.Linear, nn.Embedding)):
                nn.init.normal_(module.weight, std=0.02)
        if not o.classes:
            self.head.weight = self.tokens.weight

    def forward(self, tokens, targets):
        x = self.tokens(tokens)
        if self.positions is not None:
            x = x + self.positions.weight[: tokens.shape[1]]
        for block in self.blocks:
            x = block(x)
        x = self.norm(x)
        if self.classes:
            x = x.mean(dim=1)
        logits = self.head(x)
        return F.cross_entropy(logits.flatten(0, -2), targets.flatten())


def peak_bytes():
    with open("/proc/self/status", encoding="ascii") as status:
        for line in status:
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    return 0


def main():
    parser = argparse.ArgumentParser()
    for name in ("layers", "width", "heads", "kv-heads", "hidden",
                 "vocabulary", "classes", "batch", "sequence", "threads"):
        parser.add_argument("--" + name, type=int, required=True)
    parser.add_argument("--family", required=True)
    parser.add_argument("--precision", required=True)
    parser.add_argument("--compile", action="store_true")
    o = parser.parse_args()
    torch.set_num_threads(o.threads)
    torch.manual_seed(1)
    model = Model(o)
    matrices = [p for p in model.parameters() if p.dim() > 1]
    vectors = [p for p in model.parameters() if p.dim() == 1]
    optimizer = torch.optim.AdamW(
        [{"params": matrices, "weight_decay": 0.1},
         {"params": vectors, "weight_decay": 0.0}], lr=3e-4, fused=True)
    run = torch.compile(model) if o.compile else model
    tokens = torch.randint(0, o.vocabulary, (o.batch, o.sequence))
    targets = (torch.randint(0, o.classes, (o.batch,)) if o.classes else
               torch.randint(0, o.vocabulary, (o.batch, o.sequence)))

    def step():
        with torch.autocast("cpu", torch.bfloat16, o.precision == "bf16"):
            loss = run(tokens, targets)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        return loss.item()

    print("ready", torch.__version__, flush=True)
    for line in sys.stdin:
        if line.strip() == "memory":
            print(peak_bytes(), flush=True)
            continue
        begin = time.perf_counter()
        step()
        print(time.perf_counter() - begin, flush=True)


if __name__ == "__main__":
    main()
