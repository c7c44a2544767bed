"""Sentences as numbers, and in batches of about the same length."""
from __future__ import annotations

import bisect
import itertools
import random
from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from typing import Any

import numpy as np

from mxc import ndarray
from mxc.compiler.error import ArgumentError
from mxc.io import DataBatch, DataDesc, DataIter

Vocabulary = dict[Hashable, int]


def encode_sentences(sentences: Iterable[Iterable[Hashable]], vocab: Vocabulary | None = None,
                     invalid_label: int = -1, invalid_key: Hashable = "\n", start_label: int = 0,
                     unknown_token: Hashable | None = None) -> tuple[list[list[int]], Vocabulary]:
    """Sentences of words as lists of numbers, and the vocabulary: the number of each word.

    vocab: the number of each word. Without it words get numbers from start_label on, in the order in which they come,
    but none gets invalid_label, which stands for invalid_key. unknown_token: the word that replaces words which are not
    in the vocabulary; it gets a new number each time.
    Raises ValueError for a word that is not in a given vocabulary, without unknown_token.
    """
    is_new = vocab is None
    words: Vocabulary = {invalid_key: invalid_label} if vocab is None else vocab
    number, found = start_label, []
    for sentence in sentences:
        coded = []
        for word in sentence:
            if word not in words:
                if not is_new and not unknown_token:
                    raise ArgumentError(f"the word {word!r} is not in the vocabulary; give unknown_token for such "
                                        "words")
                if number == invalid_label:
                    number += 1
                if unknown_token:
                    word = unknown_token
                words[word] = number
                number += 1
            coded.append(words[word])
        found.append(coded)
    return found, words


class BucketSentenceIter(DataIter):
    """Batches of sentences of one length: each sentence is filled up to the length of the next larger bucket. The label
    is the sentence moved on by one word. At each reset the batches, and the sentences within a bucket, come in another
    order, which the global generators of `random` and NumPy give.

    sentences: lists of numbers, which `encode_sentences` makes. buckets: the lengths; by default all lengths with
    enough sentences for a batch. Longer sentences are left out, and in each bucket those that fill no batch.
    invalid_label: the number that fills sentences up. layout: NT, or TN for batches with time first. data_name,
    label_name: for the descriptions.
    Raises ValueError for another layout or a batch size below 1, and where there is no bucket.
    """

    def __init__(self, sentences: Sequence[Sequence[int]], batch_size: int, buckets: Sequence[int] | None = None,
                 invalid_label: int = -1, data_name: str = "data", label_name: str = "softmax_label",
                 dtype: Any = "float32", layout: str = "NT"):
        if isinstance(batch_size, bool) or not isinstance(batch_size, (int, np.integer)) or batch_size < 1:
            raise ArgumentError(f"BucketSentenceIter: batch_size must be a whole number from 1 on, got {batch_size!r}")
        super().__init__(batch_size)
        if buckets is None:
            counts = Counter(map(len, sentences))
            buckets = sorted(length for length, count in counts.items() if count >= batch_size)
        if not buckets:
            raise ArgumentError(f"BucketSentenceIter: there are not {batch_size} sentences of any length; give buckets")
        self.major_axis = layout.find("N")
        if self.major_axis not in (0, 1):
            raise ArgumentError(f"BucketSentenceIter: the layout is {layout!r}; expected NT (batch first) or TN (time "
                                "first)")
        self.buckets = sorted(buckets)
        self.data_name, self.label_name, self.layout = data_name, label_name, layout
        self.dtype, self.invalid_label, self.default_bucket_key = dtype, invalid_label, self.buckets[-1]
        self.data = self._filled(sentences)
        self.provide_data = [self._described(data_name, self.default_bucket_key)]
        self.provide_label = [self._described(label_name, self.default_bucket_key)]
        self.idx = [(i, j) for i, rows in enumerate(self.data)
                    for j in range(0, len(rows) - batch_size + 1, batch_size)]
        self.reset()

    def _filled(self, sentences: Sequence[Sequence[int]]) -> list[np.ndarray]:
        """The sentences of each bucket as a matrix."""
        chosen: list[list[Sequence[int]]] = [[] for _ in self.buckets]
        left_out = 0
        for sentence in sentences:
            bucket = bisect.bisect_left(self.buckets, len(sentence))
            if bucket < len(self.buckets):
                chosen[bucket].append(sentence)
            else:
                left_out += 1
        print(f"WARNING: discarded {left_out} sentences longer than the largest bucket.")
        made = []
        for length, rows in zip(self.buckets, chosen, strict=True):
            matrix = np.full((len(rows), length), self.invalid_label, self.dtype)
            lengths = np.fromiter(map(len, rows), np.int64, len(rows))
            words = np.fromiter(itertools.chain.from_iterable(rows), self.dtype, lengths.sum())
            matrix[np.arange(length) < lengths[:, None]] = words
            made.append(matrix)
        return made

    def _described(self, name: str, length: int) -> DataDesc:
        shape = (self.batch_size, length) if self.major_axis == 0 else (length, self.batch_size)
        return DataDesc(name=name, shape=shape, layout=self.layout)

    def reset(self) -> None:
        """Start again, in another order."""
        self.curr_idx = 0
        random.shuffle(self.idx)
        self.nddata, self.ndlabel = [], []
        for rows in self.data:
            np.random.shuffle(rows)
            labels = np.full_like(rows, self.invalid_label)
            labels[:, :-1] = rows[:, 1:]
            self.nddata.append(ndarray.array(rows, dtype=self.dtype))
            self.ndlabel.append(ndarray.array(labels, dtype=self.dtype))

    nddata: list[ndarray.NDArray]
    ndlabel: list[ndarray.NDArray]

    def next(self) -> DataBatch:
        """The next batch, with the length of its sentences as `bucket_key`. Raises StopIteration when there is none."""
        if self.curr_idx == len(self.idx):
            raise StopIteration
        bucket, begin = self.idx[self.curr_idx]
        self.curr_idx += 1
        data, label = (arrays[bucket][begin:begin + self.batch_size] for arrays in (self.nddata, self.ndlabel))
        if self.major_axis == 1:
            data, label = data.T, label.T
        length = self.buckets[bucket]
        return DataBatch([data], [label], pad=0, bucket_key=length,
                         provide_data=[self._described(self.data_name, length)],
                         provide_label=[self._described(self.label_name, length)])
