from __future__ import annotations

import gzip
import os
from pathlib import Path

import numpy as np
import pytest

from heedful.data.text.tokenise import tokenizer
from heedful.data.text.vectors import load_vectors, locate_vectors
from heedful.data.text.vocabulary import MARKERS, PAD, Vocabulary
from heedful.errors import Mistake

VOCABULARY = Vocabulary((*MARKERS, "good", "bad", "naïve", "rare"))
ROWS = ["good 1 2 3", "bad -1 .5 1e-3", "naïve 0 0 1", "elsewhere 9 9 9"]


def rng() -> np.random.Generator:
    return np.random.default_rng(0)


def write(path: Path, lines: list[str], end: str = "\n") -> Path:
    data = "".join(line + end for line in lines).encode()
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return path


def folder(path: Path, words: list[str], table: np.ndarray) -> Path:
    path.mkdir()
    (path / "vocab.txt").write_text("".join(word + "\n" for word in words), encoding="utf-8")
    np.savez_compressed(path / "vectors.npz", vectors=table)
    return path


@pytest.mark.parametrize("name", ["v.txt", "v.txt.gz", "v.vec", "v.vec.gz", "folder"])
@pytest.mark.parametrize("end", ["\n", " \n", "\r\n"])
def test_every_format_gives_the_same_matrix(tmp_path: Path, name: str, end: str) -> None:
    if name == "folder":
        table = np.array([row.split()[1:] for row in ROWS], dtype=np.float32)
        place = folder(tmp_path / name, [row.split()[0] for row in ROWS], table)
    else:
        place = write(tmp_path / name, (["4 3"] if ".vec" in name else []) + ROWS, end)
    vectors = load_vectors(place, VOCABULARY, rng=rng(), missing="zeros")
    expected = np.zeros((8, 3), dtype=np.float32)
    expected[4:7] = np.array([[1, 2, 3], [-1, 0.5, 1e-3], [0, 0, 1]])
    np.testing.assert_array_equal(vectors.matrix, expected)
    assert vectors.matrix.dtype == np.float32
    assert vectors.found.tolist() == [False] * 4 + [True, True, True, False]
    assert vectors.types == 0.75
    assert vectors.tokens is None


def test_words_without_a_vector_are_drawn_and_padding_is_zero(tmp_path: Path) -> None:
    many = Vocabulary((*MARKERS, "good", *(f"w{i}" for i in range(500))))
    place = write(tmp_path / "v.txt", ["good " + " ".join(["0.25"] * 50)])
    vectors = load_vectors(place, many, rng=rng())
    again = load_vectors(place, many, rng=rng())
    np.testing.assert_array_equal(vectors.matrix, again.matrix)
    assert not vectors.matrix[PAD].any()
    drawn = vectors.matrix[~vectors.found][1:]
    assert abs(drawn.mean()) < 0.03
    assert abs(drawn.std() - 1) < 0.03
    assert (vectors.matrix[4] == 0.25).all()


def test_coverage_of_running_words(tmp_path: Path) -> None:
    counts = {"good": 6, "rare": 1, "not-in-vocabulary": 3}
    vectors = load_vectors(write(tmp_path / "v.txt", ROWS), VOCABULARY, rng=rng(), counts=counts)
    assert vectors.tokens == 0.6


def test_fewer_words_may_be_given_a_vector(tmp_path: Path) -> None:
    """The rarest lose theirs, whatever their place in the file."""
    path, counts = write(tmp_path / "v.txt", ROWS), {"naïve": 9, "bad": 5, "good": 2, "rare": 1}
    half = load_vectors(path, VOCABULARY, rng=rng(), missing="zeros", counts=counts, cover=0.5)
    assert [VOCABULARY.words[i] for i in np.flatnonzero(half.found)] == ["bad", "naïve"]
    assert not half.matrix[VOCABULARY.words.index("good")].any()
    assert (half.types, half.tokens) == (0.5, 14 / 17)
    all_of_them = load_vectors(path, VOCABULARY, rng=rng(), counts=counts, cover=1.0)
    plain = load_vectors(path, VOCABULARY, rng=rng(), counts=counts)
    np.testing.assert_array_equal(all_of_them.matrix, plain.matrix)


def test_the_first_vector_of_a_word_counts_and_words_may_have_blanks(tmp_path: Path) -> None:
    place = write(tmp_path / "v.txt", ["good 1 2 3", ". . . 4 5 6", "at name@domain.com 1 1 1", "good 7 8 9"])
    vectors = load_vectors(place, VOCABULARY, rng=rng())
    assert vectors.matrix[4].tolist() == [1, 2, 3]


def test_a_word_that_is_a_strange_blank_breaks_no_line(tmp_path: Path) -> None:
    place = write(tmp_path / "v.txt", ["\x85 1 2 3", "\u2028 1 2 3", "good 4 5 6"])
    assert load_vectors(place, VOCABULARY, rng=rng()).matrix[4].tolist() == [4, 5, 6]


def test_markers_are_never_found(tmp_path: Path) -> None:
    place = write(tmp_path / "v.txt", ["<unk> 1 2 3", "<pad> 1 2 3", "good 1 2 3"])
    assert load_vectors(place, VOCABULARY, rng=rng()).found.tolist() == [False] * 4 + [True] + [False] * 3


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (["good 1 2 3", "bad 1 2"], "line 2: 2 numbers where the lines before have 3"),
        (["good 1 2 3", "other 1 2 3 4"], "line 2: 4 numbers where the lines before have 3"),
        (["2 3", "good 1 2 3", "bad 1 x 3"], "line 3: 'x' is not a number"),
        (["good 1 nan 3"], "line 1: a vector must have finite numbers"),
        (["9 3", "good 1 2 3"], "has 1 vectors, but its first line promises 9"),
        (["good"], "line 1: expected a word and its vector"),
        ([], "line 1: expected a word and its vector"),
        (["nothing 1 2 3"], "a vector for none of the 4 words"),
    ],
)
def test_a_bad_file_is_named_with_its_line(tmp_path: Path, lines: list[str], said: str) -> None:
    place = write(tmp_path / "bad.txt", lines)
    with pytest.raises(Mistake, match=said) as raised:
        load_vectors(place, VOCABULARY, rng=rng())
    assert str(place) in str(raised.value)


def test_a_cut_gzip_is_named(tmp_path: Path) -> None:
    place = tmp_path / "cut.txt.gz"
    numbers = np.random.default_rng(0).random((2000, 3))
    whole = gzip.compress("".join(f"w{i} {x} {y} {z}\n" for i, (x, y, z) in enumerate(numbers)).encode())
    place.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(Mistake, match=r"cut\.txt\.gz: the gzip data breaks off after line \d+"):
        load_vectors(place, VOCABULARY, rng=rng())
    place.write_bytes(b"this is not gzip")
    with pytest.raises(Mistake, match="gzip data breaks off after line 0"):
        load_vectors(place, VOCABULARY, rng=rng())


def test_a_bad_folder_is_named(tmp_path: Path) -> None:
    place = folder(tmp_path / "short", ["good"], np.zeros((2, 3)))
    with pytest.raises(Mistake, match=r"vocab\.txt has 1 lines"):
        load_vectors(place, VOCABULARY, rng=rng())
    (place / "vectors.npz").write_bytes(b"PK broken")
    with pytest.raises(Mistake, match=r"vectors\.npz cannot be read"):
        load_vectors(place, VOCABULARY, rng=rng())
    (place / "vectors.npz").unlink()
    with pytest.raises(Mistake, match=r"vectors\.npz is missing"):
        load_vectors(place, VOCABULARY, rng=rng())


def test_a_name_is_looked_for_in_the_data_folders(tmp_path: Path) -> None:
    there = folder(tmp_path / "glove_3d", ["good"], np.zeros((1, 3)))
    file = write(tmp_path / "wiki.simple.vec", ["1 3", "good 1 2 3"])
    folders = [tmp_path / "nowhere", tmp_path]
    assert locate_vectors("glove_3d", folders) == there
    assert locate_vectors("wiki.simple", folders) == file
    assert locate_vectors(str(file), []) == file
    with pytest.raises(Mistake, match=r"no vectors 'glove'.*found there: glove_3d"):
        locate_vectors("glove", folders)


@pytest.mark.corpora
def test_real_vectors_by_name() -> None:
    vocabulary = Vocabulary.build([tokenizer("spacy")("the film was wonderful , great and zzyzzxq")])
    vectors = load_vectors("glove6b_100d", vocabulary, [Path(os.environ["HEEDFUL_DATA"])], rng=rng())
    assert vectors.matrix.shape == (len(vocabulary), 100)
    missing = [word for word, found in zip(vocabulary.words, vectors.found, strict=True) if not found]
    assert missing == [*MARKERS, "zzyzzxq"]
    unit = vectors.matrix / np.linalg.norm(vectors.matrix, axis=1, keepdims=True).clip(1e-9)
    great, wonderful, the = (unit[vocabulary.words.index(word)] for word in ("great", "wonderful", "the"))
    assert great @ wonderful > great @ the
