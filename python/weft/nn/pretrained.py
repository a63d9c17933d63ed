"""Models from Hugging Face folders, and the text that they generate."""

from weft._weft import _nn


class Pretrained:
    """A language model with its tokenizer, and how its folder wants text to be chosen. weft.from_pretrained() makes one."""

    def __init__(self, model, tokenizer, defaults=None):
        self.model = model
        self.tokenizer = tokenizer
        self.defaults = defaults
        self._kept = None  # the last decoder, with the versions of its weights, and these

    def sampling(self, **given):
        """How tokens are chosen: what is given, then what the folder says, then the defaults of Sampling."""
        names = ("temperature", "top_k", "top_p", "min_p", "repetition_penalty", "never")
        unknown = [n for n in given if n not in (*names, "seed")]
        if unknown:
            raise TypeError(
                f"there is no parameter '{unknown[0]}'; how tokens are chosen is said by {', '.join(names)} and seed, "
                "and generate() takes length and stops as well"
            )
        said = {n: getattr(self.defaults, n) for n in names} if self.defaults else {}
        return _nn.Sampling(**{n: v for n, v in said.items() if v is not None} | given)

    def generate(self, prompt, length=None, stops=None, **sampling):
        """Yields the text that goes on from a prompt, piece by piece as tokens come.

            for piece in model.generate("To be or", length=20, temperature=0):
                print(piece, end="", flush=True)

        `sampling`: what Sampling takes (temperature, top_k, top_p, min_p, repetition_penalty, seed). What is left out is as the
        folder says. A decoder is kept until the model's weights change, so that a prompt that begins as the last one did is not read
        again.
        """
        for pieces in self.generate_many([prompt], length, stops, **sampling):
            if pieces[0]:
                yield pieces[0]

    def generate_many(self, prompts, length=None, stops=None, **sampling):
        """The same for many prompts at one time: yields lists with a piece for each, which may be empty."""
        if isinstance(prompts, str):
            raise TypeError("generate_many() takes a list of prompts, got one text; generate() takes it")
        kept, self._kept = self._kept, None  # while this generator runs, another one makes a decoder of its own
        weights = self.model.parameters()
        versions = _nn._versions(weights)
        if kept is None or kept[0].batch != len(prompts) or kept[1] != versions:
            kept = _nn.Decoder(self.model, len(prompts)), versions, weights  # a decoder copies the weights
        try:
            yield from self._pieces(kept[0], prompts, length, stops, sampling)
        finally:
            self._kept = kept

    def _pieces(self, decoder, prompts, length, stops, sampling):
        said = self.defaults
        run = _nn.Generation(
            decoder,
            self.tokenizer,
            [self.tokenizer.encode(p) if isinstance(p, str) else list(p) for p in prompts],
            length if length is not None else (said.max_new_tokens if said and said.max_new_tokens is not None else 200),
            self.sampling(**sampling),
            said.ends if said else [],
            list(stops) if stops is not None else (said.stops if said else []),
        )
        while run.step():
            yield [run.text(i) for i in range(len(prompts))]

    def __repr__(self):
        return f"Pretrained({type(self.model).__name__}, {self.model.parameter_count():,} parameters, {len(self.tokenizer):,} tokens)"


def from_pretrained(folder, dtype="f32"):
    """A model as Hugging Face's libraries save it: a folder with config.json, model.safetensors and tokenizer.json."""
    import os

    folder = os.fspath(folder)
    tokenizer = _nn.Tokenizer.load(folder)
    return Pretrained(_nn.load_pretrained(folder, dtype), tokenizer, _nn.load_generation(folder))
