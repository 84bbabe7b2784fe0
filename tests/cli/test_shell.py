"""The command line as a process of its own."""

import os
import signal
import subprocess
import sys

import pytest

STARSHL = [sys.executable, "-c", "from starshl.cli.main import main; main()"]


def test_help_loads_neither_numpy_nor_any_other_heavy_library():
    heavy = "{'numpy', 'scipy', 'sklearn', 'numba', 'safetensors', 'rich', 'pandas', 'pyarrow'}"
    program = (
        "import sys\nfrom starshl.cli.main import main\nsys.argv = ['starshl', 'fit', '--help']\n"
        f"try:\n    main()\nfinally:\n    print(sorted({heavy} & set(sys.modules)), file=sys.stderr)"
    )
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert result.stdout.startswith("Usage: starshl fit")
    assert result.stderr.strip() == "[]"


def test_a_fit_in_the_shell_prints_what_it_learned_and_chose_and_no_progress_into_a_pipe(files, tmp_path):
    words = ["fit", str(files / "blobs.csv"), "--labels", "kind", "--bits", "6", "-o", str(tmp_path / "m")]
    result = subprocess.run([*STARSHL, *words], capture_output=True, text=True)
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout.startswith("StarRidge learned 6 bits from 3 features, 60 of 60 rows labeled")


def test_an_error_in_the_shell_is_one_sentence():
    result = subprocess.run([*STARSHL, "info", "absent"], capture_output=True, text=True)
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr == "Error: There is no model file at 'absent'.\n"


def test_a_traceback_is_shown_on_request():
    result = subprocess.run(
        [*STARSHL, "info", "absent"], capture_output=True, text=True, env={**os.environ, "STARSHL_TRACEBACK": "1"}
    )
    assert result.returncode == 1
    assert "Traceback" in result.stderr


@pytest.mark.skipif(os.name == "nt", reason="Windows has no SIGINT for a single process")
def test_ctrl_c_exits_130_without_a_traceback(tmp_path):
    # A process started in the background may ignore interrupts. A hook before its start would undo that too, but it
    # forks, and forking below a test that uses gRPC lets that library write to the standard error read here.
    python, flag, code = STARSHL
    code = f"import signal; signal.signal(signal.SIGINT, signal.default_int_handler); {code}"
    command = [python, flag, code, "demo", "-o", str(tmp_path)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stderr.readline().startswith("The page will be in")
    assert process.stderr.readline().startswith("compiling")
    assert process.stderr.readline().startswith("learning:")
    process.send_signal(signal.SIGINT)
    out, errors = process.communicate(timeout=180)
    assert process.returncode == 130
    assert out == ""
    assert "Traceback" not in errors


@pytest.mark.skipif(os.name == "nt", reason="Windows closes pipes in another way")
def test_a_reader_that_leaves_early_causes_no_traceback():
    process = subprocess.Popen([*STARSHL, "methods"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    process.stdout.close()
    errors = process.stderr.read()
    process.wait(timeout=180)
    process.stderr.close()
    assert (process.returncode, errors) == (1, "")


def test_the_command_line_runs_as_a_module():
    result = subprocess.run([sys.executable, "-m", "starshl.cli.main", "methods"], capture_output=True, text=True)
    assert result.returncode == 0
    assert "StarSHL" in result.stdout
