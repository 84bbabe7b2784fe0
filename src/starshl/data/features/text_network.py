"""TextNetwork: texts become tokens, go through a network in batches of one length, and become one vector each."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from functools import partial
from typing import Any, Literal, TypeAlias

import numpy as np

from ..._common.extras import require
from ..._common.threads import run_all, tiles

Pooling: TypeAlias = Literal["mean", "cls"]
#: What a network of texts may take; all but the first may be missing.
INPUTS = ("input_ids", "attention_mask", "token_type_ids")
_BATCH_TOKENS = 2048  # texts of 16 tokens are fastest in batches of 16 to 64; longer ones need memory
_BATCH = 64
_CHARACTERS = 64  # per token: where a longer text is cut before it becomes tokens, unless its words are longer still
_EXTRA = "texts"


class TextNetwork:
    """A session of ONNX Runtime and the tokenizer that it was trained with.

    Texts of the same number of tokens go through together, so nothing is padded, and the vector of a text does not
    depend on the others.

    Parameters
    ----------
    session : session of ONNX Runtime
    tokenizer : bytes of a file ``tokenizer.json``
    max_tokens : int
        Longer texts are cut.
    inputs : sequence of str, which of :data:`INPUTS` the session takes
    output : str
        An output with a row per text, or with one per token.
    pooling : {"mean", "cls"}
        Which rows of the tokens of a text count: all, or the first.
    """

    def __init__(
        self,
        session: Any,
        tokenizer: bytes,
        max_tokens: int,
        *,
        inputs: Sequence[str] = INPUTS[:1],
        output: str,
        pooling: Pooling = "mean",
    ) -> None:
        self._session, self._inputs, self._output, self._pooling = session, tuple(inputs), output, pooling
        self._tokenizer = require("tokenizers", extra=_EXTRA).Tokenizer.from_str(tokenizer.decode("utf-8"))
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(max_tokens)
        self._max_tokens = max_tokens

    def embed(self, texts: Sequence[str]) -> np.ndarray:
        """Return one vector of length one per text."""
        tokens = [encoding.ids for encoding in self._encoded(texts)]
        by_length: dict[int, list[int]] = defaultdict(list)
        for place, ids in enumerate(tokens):
            by_length[len(ids)].append(place)
        batches = [
            places[tile]
            for length, places in sorted(by_length.items())
            for tile in tiles(len(places), max(1, min(_BATCH, _BATCH_TOKENS // max(length, 1))))
        ]
        made = run_all([partial(self._run, [tokens[place] for place in batch]) for batch in batches])
        rows = np.empty((len(tokens), made[0].shape[1] if made else 0), np.float32)
        for batch, part in zip(batches, made, strict=True):
            rows[batch] = part
        return rows

    def _run(self, tokens: list[list[int]]) -> np.ndarray:
        ids = np.array(tokens, np.int64)
        filled = {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)}
        (values,) = self._session.run([self._output], {name: filled[name] for name in self._inputs})
        # Pooled here, because ONNX Runtime adds tokens of several texts up in another order than those of one.
        if values.ndim == 3:
            values = values[:, 0] if self._pooling == "cls" else values.mean(axis=1, dtype=np.float64)
        values = values.astype(np.float64)
        lengths = np.sqrt(np.square(values).sum(axis=1, keepdims=True))
        return (values / np.where(lengths > 0, lengths, 1.0)).astype(np.float32)

    def count_cut(self, texts: Sequence[str]) -> int:
        """Return how many texts are longer than the network reads."""
        # A token is at least one byte, and few texts need a closer look.
        long = [
            text for text in texts if len(text) * 4 > self._max_tokens and len(text.encode()) > self._max_tokens - 2
        ]
        return sum(bool(encoding.overflowing) for encoding in self._encoded(long))

    def _encoded(self, texts: Sequence[str]) -> list[Any]:
        """Return the tokens of texts, of very long ones by their beginnings if these hold more than enough of them."""
        begins = [text[: _CHARACTERS * self._max_tokens] for text in texts]
        encoded = self._tokenizer.encode_batch(begins)
        for place, (text, begin) in enumerate(zip(texts, begins, strict=True)):
            if len(begin) < len(text) and len(encoded[place].overflowing) < 2:
                encoded[place] = self._tokenizer.encode(text)
        return encoded
