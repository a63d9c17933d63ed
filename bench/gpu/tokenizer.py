"""A byte-level BPE tokenizer of as many ids as GPT-2's, padded to 50,304, and a text of its tokens, drawn from a seed.

    tokenizer.py FOLDER     writes FOLDER/tokenizer.json and FOLDER/text.txt
"""
import json
import pathlib
import random
import sys

SIZE = 50304


def main():
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    random.seed(1)
    # The characters that stand for bytes, as in GPT-2's vocabulary.
    plain = [*range(ord("!"), ord("~") + 1), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [b for b in range(256) if b not in plain]
    names = {b: chr(b) for b in plain} | {b: chr(256 + i) for i, b in enumerate(others)}
    vocabulary = {names[b]: i for i, b in enumerate([*plain, *others])}
    letters, merges = [chr(c) for c in range(ord("a"), ord("z") + 1)], []
    parts = list(letters)
    while len(vocabulary) < SIZE:
        left, right = random.choice(parts), random.choice(letters)
        if len(left) > 6 or left + right in vocabulary:
            continue
        vocabulary[left + right] = len(vocabulary)
        parts.append(left + right)
        merges.append(f"{left} {right}")
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    (folder / "tokenizer.json").write_text(json.dumps({
        "version": "1.0", "truncation": None, "padding": None, "added_tokens": [], "normalizer": None,
        "pre_tokenizer": byte_level, "post_processor": None, "decoder": byte_level,
        "model": {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None,
                  "end_of_word_suffix": None, "fuse_unk": False, "byte_fallback": False, "vocab": vocabulary, "merges": merges}}))
    (folder / "text.txt").write_text(" ".join(random.choice(parts) for _ in range(300000)))


if __name__ == "__main__":
    main()
