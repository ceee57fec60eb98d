#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes the small tokenizer beside this file: DeepSeek-V3's way of splitting, a vocabulary by hand.

The merges are chosen so that a text split at a wrong place gives other tokens. What texts become is
written out, by hand as well, in tests/deepseek/tokenizer_test.cpp.
"""
import json
import pathlib

# In the order of their ranks. Bytes beyond ASCII are written as Latin-1 characters.
MERGES = """
h e|l l|he ll|hell o|SP w|o r|SPw or|l d|SPwor ld
b c|a b|a a|( a|SP a
1 2|12 3|3 4|4 5|123 45
SP SP|SPSP SPSP|NL NL|! !|! NL|!! NL|SP !
\u00e6 \u0097|\u00e6\u0097 \u00a5|\u00e6 \u009c|\u00e6\u009c \u00ac|\u00e6\u0097\u00a5 \u00e6\u009c\u00ac
\u00e6\u009c\u00ac a|\u008e NL|\u00cc \u0081|e \u00cc\u0081|\u00c3 \u00a9|c \u00c3\u00a9|. c|_ b
"""

SPLIT_RULES = [
    r"\p{N}{1,3}",
    "[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+",
    r"""[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^""" + "\r\n"
    + r"""\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[""" + "\r\n" + r"""]*|\s*[""" + "\r\n"
    + r"""]+|\s+(?!\S)|\s+""",
]

ADDED = [  # content, special, and where DeepSeek has them: ids 0 to 2 in the vocabulary, others after
    ("<\uff5cbegin\u2581of\u2581sentence\uff5c>", True),
    ("<\uff5cend\u2581of\u2581sentence\uff5c>", True),
    ("<\uff5c\u2581pad\u2581\uff5c>", True),
    ("<\uff5cUser\uff5c>", False),
    ("<|EOT|>", True),
]


def alphabet():
    """The character that spells each byte."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in printable]
    return {**{byte: chr(byte) for byte in printable},
            **{byte: chr(256 + place) for place, byte in enumerate(others)}}


def main():
    spelling = alphabet()
    vocab = {content: number for number, (content, _) in enumerate(ADDED[:3])}
    for byte in range(256):
        vocab[spelling[byte]] = len(vocab)
    merges = []
    for rule in MERGES.strip().replace("\n", "|").split("|"):
        sides = ["".join(spelling[ord(c)] for c in side.replace("SP", " ").replace("NL", "\n"))
                 for side in rule.split(" ")]
        merges.append(" ".join(sides))
        vocab["".join(sides)] = len(vocab)
    added = [{"id": vocab.get(content, len(vocab) + number - 3), "content": content,
              "single_word": False, "lstrip": False, "rstrip": False, "normalized": number >= 3,
              "special": special} for number, (content, special) in enumerate(ADDED)]
    steps = [{"type": "Split", "pattern": {"Regex": rule}, "behavior": "Isolated", "invert": False}
             for rule in SPLIT_RULES]
    steps.append({"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True,
                  "use_regex": False})
    level = {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True}
    tokenizer = {
        "version": "1.0", "truncation": None, "padding": None, "added_tokens": added,
        "normalizer": {"type": "Sequence", "normalizers": []},
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": steps},
        "post_processor": {**level, "trim_offsets": False}, "decoder": level,
        "model": {"type": "BPE", "dropout": None, "unk_token": None,
                  "continuing_subword_prefix": None, "end_of_word_suffix": None, "fuse_unk": False,
                  "byte_fallback": False, "vocab": vocab, "merges": merges}}
    config = {"add_bos_token": True, "add_eos_token": False,
              "bos_token": {"__type": "AddedToken", "content": ADDED[0][0], "lstrip": False,
                            "normalized": True, "rstrip": False, "single_word": False},
              "eos_token": {"__type": "AddedToken", "content": ADDED[1][0], "lstrip": False,
                            "normalized": True, "rstrip": False, "single_word": False},
              "tokenizer_class": "LlamaTokenizerFast", "unk_token": None}
    here = pathlib.Path(__file__).parent
    for name, content in (("tokenizer.json", tokenizer), ("tokenizer_config.json", config)):
        text = json.dumps(content, ensure_ascii=False, indent=1)
        (here / name).write_text(text + "\n", encoding="utf-8")


main()
