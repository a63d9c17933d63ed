"""A GPT of one's own: layers, training, text. All of it is here."""

import sys

import weft
from weft import nn

CONTEXT, WIDTH, HEADS, LAYERS = 32, 32, 2, 2


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.queries, self.keys, self.values = (nn.Linear(WIDTH, WIDTH) for _ in range(3))
        self.out = nn.Linear(WIDTH, WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def attend(self, x):
        heads = [part(x).reshape(*x.shape[:2], HEADS, -1) for part in (self.queries, self.keys, self.values)]
        return self.out(weft.attention(*heads, causal=True, seq_first=True).reshape(x.shape))

    def forward(self, x):
        x = x + self.attend(self.norm1(x))
        return x + self.down(weft.gelu(self.up(self.norm2(x))))


class GPT(nn.Module):
    def __init__(self, vocabulary):
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, WIDTH, nn.Initial.normal(0.02))
        self.places = nn.Parameter((CONTEXT, WIDTH), nn.Initial.normal(0.02))
        self.blocks = [Block() for _ in range(LAYERS)]
        self.norm = nn.LayerNorm(WIDTH)

    def forward(self, tokens):
        x = self.tokens(tokens) + self.places[: tokens.shape[1]]
        for block in self.blocks:
            x = block(x)
        return self.norm(x) @ self.tokens.weight.T


text = "to be or not to be, that is the question\n" * 400
tokenizer = nn.Tokenizer.train_characters(text)
data = nn.TokenData(text, tokenizer, context=CONTEXT, seed=1)
model = GPT(len(tokenizer)).build(seed=1)
optimizer = nn.AdamW(model.parameters(), clip=1.0)
for step in range(int(sys.argv[1]) if len(sys.argv) > 1 else 300):
    tokens, targets = data.train(step, 12)
    loss = nn.token_loss(model(tokens), targets)
    loss.backward()
    optimizer.step(3e-3)

ids = tokenizer.encode("to be or")
with weft.no_grad():
    for _ in range(23):
        ids.append(weft.argmax(model(weft.tensor([ids[-CONTEXT:]], dtype="i32"))[0, -1]).item())
print(tokenizer.decode(ids))
