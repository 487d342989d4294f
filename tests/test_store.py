"""The store: files are whole or not there, damage is seen, runs are opened without being read."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from heedful.errors import Mistake
from heedful.files import clean, link, whole_file, whole_folder, write_json
from heedful.store.arrays import read_arrays, write_arrays
from heedful.store.checks import Damaged, check_sums, read_signed, read_sums, write_signed, write_sums
from heedful.store.locks import lock
from heedful.store.new_runs import create
from heedful.store.results import Results
from heedful.store.run import Run, runs_in

NOTES = {"history": [{"epoch": 1, "loss": 0.5}], "threads": 1}


def a_run(path: Path) -> Run:
    weights = {"w": np.arange(6.0).reshape(2, 3)}
    run = create(path, {"config": {"dataset": "sst"}, "labels": ["a"]}, ("<pad>",), weights, {"x": weights["w"]}, NOTES)
    run.write_summary("performance", {"accuracy": 1.0})
    return run


def test_a_file_appears_whole_or_not_at_all(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), whole_file(tmp_path / "a") as temporary:  # noqa: PT012
        temporary.write_text("half")
        raise ZeroDivisionError
    assert list(tmp_path.iterdir()) == []
    with whole_file(tmp_path / "a") as temporary:
        temporary.write_text("whole")
        assert not (tmp_path / "a").exists()
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_a_folder_that_another_has_put_there_stays(tmp_path: Path) -> None:
    with whole_folder(tmp_path / "run") as mine:
        (mine / "who").write_text("me")
        (tmp_path / "run").mkdir()
        (tmp_path / "run" / "who").write_text("they")
    assert (tmp_path / "run" / "who").read_text() == "they"
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


def test_clean_takes_what_the_dead_left_and_nothing_of_the_living(tmp_path: Path) -> None:
    dies = (
        "import os, sys; from pathlib import Path; from heedful.files import whole_file, whole_folder\n"
        "folder = Path(sys.argv[1])\n"
        "with whole_file(folder / 'dead'), whole_folder(folder / 'deads') as b:\n"
        "    (b / 'x').write_text('x'); os.kill(os.getpid(), 9)"
    )
    assert subprocess.run([sys.executable, "-c", dies, str(tmp_path)]).returncode == -9
    assert len(list(tmp_path.iterdir())) == 2
    with whole_folder(tmp_path / "alive") as folder, whole_file(folder / "weights") as file:
        write_arrays(folder / "arrays", {"w": np.ones(3)}, {})
        file.write_text("under way")
        removed = clean(tmp_path)
        assert clean(folder) == []
    assert {path.name.split(".")[1] for path in removed} == {"dead", "deads"}
    assert sorted(path.name for path in (tmp_path / "alive").iterdir()) == ["arrays", "weights"]


def test_a_full_disk_is_said(tmp_path: Path) -> None:
    fills = (
        "import resource, numpy; from pathlib import Path; from heedful.store import arrays\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))\n"
        f"arrays.write_arrays(Path({str(tmp_path / 'w')!r}), {{'w': numpy.ones(10000)}}, {{}})"
    )
    done = subprocess.run([sys.executable, "-c", fills], capture_output=True, text=True)
    assert "Mistake" in done.stderr
    assert f"{tmp_path / 'w'} cannot be written" in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_weights_are_a_file_like_any_other(tmp_path: Path) -> None:
    """Others who share the folder can read them, and nothing else is left in it."""
    write_arrays(tmp_path / "w", {"w": np.ones(3)}, {})
    write_json(tmp_path / "j", {})
    assert (tmp_path / "w").stat().st_mode == (tmp_path / "j").stat().st_mode
    assert sorted(path.name for path in tmp_path.iterdir()) == ["j", "w"]


@pytest.mark.parametrize("links", [True, False])
def test_links_are_replaced_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, links: bool) -> None:
    def no_links(*_: object) -> None:
        raise PermissionError("a disk without links")

    if not links:
        monkeypatch.setattr(os, "link", no_links)
    for name in "ab":
        (tmp_path / name).write_text(name)
        link(tmp_path / name, tmp_path / "plain")
        assert (tmp_path / "plain").read_text() == name
        assert (tmp_path / "plain").samefile(tmp_path / name) == links
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "b", "plain"]


def test_a_lock_excludes_another_process_and_ends_with_its_holder(tmp_path: Path) -> None:
    asks = (
        "import sys; from pathlib import Path; from heedful.store.locks import lock\n"
        "with lock(Path(sys.argv[1]), sys.argv[2]) as ours: print(ours)"
    )

    def ours(key: str) -> str:
        done = subprocess.run([sys.executable, "-c", asks, str(tmp_path), key], capture_output=True, text=True)
        return done.stdout.strip()

    with lock(tmp_path, "abcdef0123456789abcd") as mine:
        assert mine
        assert ours("abcdef0123456789abcd") == "False"
        assert ours("bbcdef0123456789abcd") == "True"
    assert ours("abcdef0123456789abcd") == "True"
    assert [path.name for path in tmp_path.iterdir()] == [".locks"]


@pytest.mark.parametrize("place", [0.0, 0.3, 0.6, 0.99])
@pytest.mark.parametrize("cut", [True, False])
def test_damaged_weights_are_seen(tmp_path: Path, place: float, cut: bool) -> None:
    path = tmp_path / "w.safetensors"
    write_arrays(path, {"w": np.arange(100.0), "b": np.ones((2, 2), np.float32)}, {"notes": "n"})
    arrays, metadata = read_arrays(path)
    assert metadata == {"notes": "n"}
    np.testing.assert_array_equal(arrays["w"], np.arange(100.0))
    damage(path, place, cut)
    with pytest.raises(Damaged, match=r"w\.safetensors is damaged"):
        read_arrays(path)


def damage(path: Path, place: float, cut: bool) -> None:
    content = bytearray(path.read_bytes())
    at = int(place * len(content))
    if cut:
        del content[at:]
    else:
        content[at] ^= 4
    path.write_bytes(content)


def test_sums_are_those_of_sha256sum(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("a")
    write_sums(tmp_path, ["a.txt"])
    assert subprocess.run(["sha256sum", "-c", "SHA256SUMS"], cwd=tmp_path, capture_output=True).returncode == 0
    check_sums(tmp_path, read_sums(tmp_path))
    (tmp_path / "a.txt").write_text("b")
    with pytest.raises(Damaged, match=r"a\.txt is damaged"):
        check_sums(tmp_path, read_sums(tmp_path))
    (tmp_path / "a.txt").unlink()
    with pytest.raises(Damaged, match=r"a\.txt is gone"):
        check_sums(tmp_path, read_sums(tmp_path))


def test_signed_json_knows_its_own_damage(tmp_path: Path) -> None:
    path = tmp_path / "s.json"
    assert read_signed(path) is None
    write_signed(path, {"mean": 0.25, "by": {1: (1, 2), 10: None}})
    assert read_signed(path) == {"mean": 0.25, "by": {"1": [1, 2], "10": None}}
    path.write_text(path.read_text().replace("0.25", "0.26"))
    with pytest.raises(Damaged, match=r"s\.json"):
        read_signed(path)


def test_a_run_is_finished_when_it_is_sealed(tmp_path: Path) -> None:
    run = a_run(tmp_path / "run")
    assert (run.finished, run.interrupted) == (False, True)
    arrays, notes = run.checkpoint()
    assert notes == NOTES
    assert list(arrays) == ["x"]
    run.finish()
    assert (run.finished, run.interrupted) == (True, False)
    assert "model.safetensors" in run.check()
    damage(run.path / "vocabulary.json", 0.5, cut=False)
    with pytest.raises(Damaged, match=r"vocabulary\.json"):
        run.check()


def test_results_of_other_questions_are_kept(tmp_path: Path) -> None:
    results = Results(tmp_path / "results")
    for number, key in enumerate(("k1", "k2")):
        table = pa.table({"example": [0, 1, 1], "value": [number] * 3})
        results.write_rows("permutation", key, table, {"split": "test", "options": {}}, "weights", 0.1)
        results.write_summary("permutation", f"s{key}", {"value": number}, {"rows": "r"})
        results.publish("permutation", key, f"s{key}")
        assert results.summary("permutation") == {"value": number}
    assert results.rows("permutation").equals(results.rows("permutation", "k2"))
    assert results.rows("permutation", "k1")["value"].to_pylist() == [0, 0, 0]
    assert json.loads(results.rows("permutation").schema.metadata[b"heedful"])["key"] == "k2"
    assert [seal["n_texts"] for seal in results.seals()] == [2, 2]
    damage(results.rows_path("permutation", "k1"), 0.5, cut=False)
    with pytest.raises(Damaged, match=r"permutation-k1\.parquet"):
        results.check_rows("permutation", "k1")
    assert results.check_rows("permutation", "k2") is not None
    damage(results.rows_path("permutation", "k2"), 0.1, cut=False)
    with pytest.raises(Mistake, match=r"permutation\.parquet is damaged: its checksum .*run `heedful run permutation"):
        results.rows("permutation")
    with pytest.raises(Mistake, match="heedful run correlation"):
        results.rows("correlation")


def test_a_thousand_runs_are_opened_without_being_read(tmp_path: Path) -> None:
    for number in range(1000):
        folder = tmp_path / f"run{number:04}"
        folder.mkdir()
        write = os.open(folder / "config.json", os.O_CREAT | os.O_WRONLY)
        os.write(write, b"this is not JSON, so reading it would fail")
        os.close(write)
    write_json(tmp_path / ".hidden" / "config.json", {})
    runs = list(runs_in(tmp_path))
    assert len(runs) == 1000
    assert runs[0].name == "run0000"
    with pytest.raises(Mistake, match=r"config\.json is damaged"):
        _ = runs[0].info
