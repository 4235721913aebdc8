"""The most frequent word of each stem: `parse` for `pars`."""

import pickle
import random
import re
from collections import Counter, defaultdict
from collections.abc import Iterable

from apps.embedding.words import stem
from training.corpus import Folders
from training.manifest import Package

FILES, PAIRS, CHARS = 500, 300, 600  # enough to see every common word
_HUMP = re.compile(r"([a-z0-9])([A-Z])")
_WORD = re.compile(r"[a-z]+|[0-9]+")


def surfaces(words: list[str], packages: Iterable[Package], folders: Folders) -> list[str]:
    """For each stem its most frequent word in the corpus, or the stem if there is none."""
    paths = [folders.pairs_of(p) for p in packages if p.role == "train"]
    paths = sorted(path for path in paths if path.exists())
    words_of_stem: dict[str, Counter[str]] = defaultdict(Counter)
    for path in random.Random(1).sample(paths, min(FILES, len(paths))):
        for pair in pickle.loads(path.read_bytes())[:PAIRS]:
            if pair.kind == "definition":
                text = f"{pair.question} {pair.body[:CHARS]}"
                for word in _WORD.findall(_HUMP.sub(r"\1 \2", text).lower()):
                    words_of_stem[stem(word)][word] += 1
    return [
        words_of_stem[word].most_common(1)[0][0] if word in words_of_stem else word
        for word in words
    ]
