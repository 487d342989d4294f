"""Pretrained word vectors for the words of a vocabulary, and how many of them have one.

Read as they are distributed: GloVe text, word2vec text and fastText .vec (these two begin with a line
"rows dimensions"), each also gzipped; or a folder with `vocab.txt` and `vectors.npz` (array `vectors`, one
row for each line of vocab.txt). A file is streamed: only the rows of known words are kept.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Literal, cast

import numpy as np
from numpy.typing import NDArray

from heedful.data.corpora import locate
from heedful.data.text.vocabulary import MARKERS, PAD, Vocabulary
from heedful.errors import Mistake, short
from heedful.records import Words

Floats = NDArray[np.float32]
Missing = Literal["normal", "zeros"]
FILES = ("vocab.txt", "vectors.npz")  # of a folder
ENDINGS = ("", ".txt", ".vec", ".txt.gz", ".vec.gz")


@dataclass(frozen=True, slots=True, eq=False)
class Vectors:
    """A vector for every word of a vocabulary; `found` says which of them were in the file."""

    source: Path
    matrix: Floats  # (words, dim)
    found: NDArray[np.bool_]  # (words,) never True for markers
    types: float  # share of the vocabulary's words that were found
    tokens: float | None  # share of the running words that were found, where their counts are known


def load_vectors(
    spec: str | Path,
    vocabulary: Vocabulary,
    data_dirs: Sequence[Path] = (),
    *,
    rng: np.random.Generator,
    missing: Missing = "normal",
    counts: Mapping[str, int] | None = None,
    cover: float | None = None,
) -> Vectors:
    """Vectors from a path, or by a name that is looked for in the data folders ("glove6b_100d").

    A word that has none gets a draw from N(0, 1) (Jain & Wallace 2019, appendix A.1) or zeros, as in their
    code; padding always zeros. Of a word that comes twice the first vector counts. `counts`, of every word
    of a corpus, adds the coverage of running words. With `cover`, at most that share of the vocabulary has a vector,
    as if the file knew fewer words: the rarest words lose theirs.
    """
    source = locate_vectors(spec, data_dirs)
    rows = _folder_rows(source, vocabulary) if source.is_dir() else _file_rows(source, vocabulary)
    known: dict[int, Floats] = {}
    for word_id, row in rows:
        known.setdefault(word_id, row)
    if not known:
        raise Mistake(f"{source} has a vector for none of the {len(vocabulary) - len(MARKERS)} words.")
    dim = len(next(iter(known.values())))
    if cover is not None:
        often = sorted(known, key=lambda word_id: -(counts or {}).get(vocabulary.words[word_id], 0))
        known = {i: known[i] for i in often[: max(1, round(cover * (len(vocabulary) - len(MARKERS))))]}
    shape = (len(vocabulary), dim)
    matrix = rng.standard_normal(shape, dtype=np.float32) if missing == "normal" else np.zeros(shape, np.float32)
    matrix[list(known)] = list(known.values())
    matrix[PAD] = 0.0
    found = np.zeros(len(vocabulary), dtype=np.bool_)
    found[list(known)] = True
    return Vectors(source, matrix, found, float(found[len(MARKERS) :].mean()), _tokens(found, vocabulary, counts))


def check_folder(folder: Path) -> None:
    """Before it is hashed or read."""
    for name in FILES:
        if not (folder / name).is_file():
            raise Mistake(f"{folder} is not a folder of vectors: {name} is missing.")


def locate_vectors(spec: str | Path, data_dirs: Sequence[Path]) -> Path:
    """The file or folder that is meant."""
    if locate.exists(Path(spec)):
        return Path(spec)
    for folder in data_dirs:
        for ending in ENDINGS:
            if locate.exists(place := folder / f"{spec}{ending}"):
                return place
    here = vectors_in(data_dirs)
    known = f"found there: {', '.join(here)}" if here else "none are found there"
    looked = ", ".join(str(folder) for folder in data_dirs) or "no data folder"
    raise Mistake(f"there are no vectors {short(str(spec))}: it is not a path, nor a name in {looked} ({known}).")


def vectors_in(data_dirs: Sequence[Path]) -> list[str]:
    """Names of the folders with vectors."""
    return sorted(place.parent.name for folder in data_dirs for place in folder.glob("*/vectors.npz"))


def _tokens(found: NDArray[np.bool_], vocabulary: Vocabulary, counts: Mapping[str, int] | None) -> float | None:
    if not counts:
        return None
    covered = sum(counts.get(word, 0) for word, there in zip(vocabulary.words, found, strict=True) if there)
    return covered / sum(counts.values())


def _folder_rows(folder: Path, vocabulary: Vocabulary) -> Iterator[tuple[int, Floats]]:
    """The rows of `vectors.npz` whose word in `vocab.txt` is known."""
    check_folder(folder)
    try:
        words = (folder / "vocab.txt").read_bytes().decode().removesuffix("\n").split("\n")
        with np.load(folder / "vectors.npz", allow_pickle=False) as arrays:
            table = arrays["vectors"]
    except FileNotFoundError as error:
        raise Mistake(f"{folder} is not a folder of vectors: {Path(error.filename).name} is missing.") from None
    except UnicodeDecodeError as error:
        raise Mistake(f"{folder / 'vocab.txt'} is not UTF-8 at byte {error.start}.") from None
    except Exception as error:  # a broken zip or array shows itself in many ways
        raise Mistake(f"{folder / 'vectors.npz'} cannot be read: {error}.") from None
    if table.ndim != 2 or len(table) != len(words):
        raise Mistake(f"{folder}: vocab.txt has {len(words)} lines, but vectors.npz is of shape {table.shape}.")
    ids = {vocabulary.words[i]: i for i in range(len(MARKERS), len(vocabulary))}
    for word, row in zip(words, table, strict=True):
        if word in ids:
            yield ids[word], row.astype(np.float32)


def _file_rows(path: Path, vocabulary: Vocabulary) -> Iterator[tuple[int, Floats]]:
    """The rows of a text file whose word is known; every line is checked for its number of fields.

    Lines are read as bytes: some words of these files are not valid UTF-8, and some are characters that
    count as a line break or a blank in text mode.
    """
    ids = {vocabulary.words[i].encode(): i for i in range(len(MARKERS), len(vocabulary))}
    lines = _lines(path)
    first = next(lines, b"").split(b" ")
    if header := len(first) == 2 and first[0].isdigit() and first[1].isdigit():
        rows, dim = int(first[0]), int(first[1])
    else:
        rows, dim = -1, sum(1 for _ in _trailing_numbers(first))
        lines = _lines(path)
    if dim == 0:
        raise Mistake(f"{path}, line 1: expected a word and its vector, separated by blanks.")
    read = 0
    for read, line in enumerate(lines, start=1):
        number = read + header
        fields = line.split(b" ") if line.count(b" ") == dim else _fields(line, dim, path, number)
        word_id = ids.get(fields[0])
        if word_id is not None:
            yield word_id, _numbers(fields[1:], path, number)
    if header and read != rows:
        raise Mistake(f"{path} has {read} vectors, but its first line promises {rows}: it may be truncated.")


def _lines(path: Path) -> Iterator[bytes]:
    """The lines of a file, gzipped or not, without the white space at their ends."""
    number = 0
    with cast(BinaryIO, gzip.open(path) if path.suffix == ".gz" else path.open("rb")) as file:
        try:
            for line in file:
                number += 1
                yield line.rstrip()
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise Mistake(f"{path}: the gzip data breaks off after line {number} ({error}).") from None


def _fields(line: bytes, dim: int, path: Path, number: int) -> list[bytes]:
    """Word and numbers of a line whose word has blanks in it, as some of GloVe 840B have."""
    fields = line.rsplit(b" ", dim)
    if len(fields) <= dim or (b" " in fields[0] and _is_number(fields[0].rsplit(b" ")[-1])):
        given = len(line.split(b" ")) - 1
        raise Mistake(f"{path}, line {number}: {given} numbers where the lines before have {dim}.")
    return fields


def _numbers(fields: list[bytes], path: Path, number: int) -> Floats:
    try:
        row = np.array([float(field) for field in fields], dtype=np.float32)
    except ValueError:
        wrong = next(field for field in fields if not _is_number(field))
        shown = wrong.decode(errors="replace")
        raise Mistake(f"{path}, line {number}: {shown!r} is not a number.") from None
    if not np.isfinite(row).all():
        raise Mistake(f"{path}, line {number}: a vector must have finite numbers only.")
    return row


def _trailing_numbers(fields: list[bytes]) -> Iterator[bytes]:
    for field in reversed(fields[1:]):
        if not _is_number(field):
            return
        yield field


def _is_number(field: bytes) -> bool:
    try:
        float(field)
    except ValueError:
        return False
    return True


# Word vectors trained on the task's own training texts: word2vec (Mikolov et al. 2013), by gensim.
#
# Serrano & Smith 2019: 200 dimensions, 30 passes over the training texts, everything else gensim's default (CBOW,
# window 5). `--vectors word2vec` asks for it; the vectors have the size of the model's embeddings.


NAME, VERSION = "word2vec", "1"  # the version changes whenever the same texts would give other vectors
PASSES = 30


def train_word2vec(texts: Sequence[Words], vocabulary: Vocabulary, dim: int, seed: int) -> Vectors:
    """Words that the vocabulary does not have are one word, the unknown one; padding is zeros.

    One thread, so that the same seed gives the same vectors.
    """
    try:
        from gensim.models import Word2Vec
    except ImportError:
        raise Mistake("--vectors word2vec needs the package 'gensim': pip install 'heedful[word2vec]'.") from None
    sentences = [[str(i) for i in vocabulary.ids(text)] for text in texts]
    model = Word2Vec(sentences, vector_size=dim, epochs=PASSES, min_count=1, workers=1, seed=seed + 1)
    rng = np.random.default_rng([seed, 0])
    scale = float(model.wv.vectors.std())
    matrix = (scale * rng.standard_normal((len(vocabulary), dim))).astype(np.float32)  # markers are in no text
    matrix[[int(word) for word in model.wv.index_to_key]] = model.wv.vectors
    matrix[PAD] = 0.0
    found = np.zeros(len(vocabulary), dtype=np.bool_)
    found[len(MARKERS) :] = True
    return Vectors(Path(NAME), matrix, found, types=1.0, tokens=1.0)
