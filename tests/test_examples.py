"""The scripts in examples/ run, and their own assertions hold."""

import runpy
from pathlib import Path

import pytest

EXAMPLES = sorted((Path(__file__).parent.parent / "examples").glob("*.py"))


@pytest.mark.docs
@pytest.mark.parametrize("script", EXAMPLES, ids=lambda script: script.stem)
@pytest.mark.filterwarnings("ignore")
def test_example_runs_and_says_what_it_found(script, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(script), run_name="__main__")
    assert capsys.readouterr().out.strip()
