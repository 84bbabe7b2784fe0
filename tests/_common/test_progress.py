from starshl._common.progress import download_progress, row_progress, run_progress, status, sweep_progress


def test_rows_are_counted_on_standard_error(capsys):
    with row_progress("reading", 20, shown=True) as report:
        report(5)
        report(15)
    out, err = capsys.readouterr()
    assert out == ""
    assert "reading" in err
    assert "20/20 rows" in err


def test_sweeps_show_the_objective_and_end_early(capsys):
    with sweep_progress(4, 10, shown=True) as report:
        report(0, None)
        report(0, 1234.5)
    err = capsys.readouterr().err
    assert "1234.5" in err
    assert "done" in err
    assert "48/48" in err


def test_runs_show_what_is_done_and_how_long_the_rest_takes(capsys):
    with run_progress() as report:
        report(3, 7, "LSH at 8 bits", "2 min")
    err = capsys.readouterr().err
    assert "3/7" in err
    assert "2 min left: LSH at 8 bits" in err


def test_each_download_has_a_bar(capsys):
    with download_progress(shown=True) as report:
        report("a.npz", 10, None)
        report("b.npz", 5, 10)
        report("a.npz", 20, 20)
    err = capsys.readouterr().err
    assert "a.npz" in err
    assert "b.npz" in err


def test_what_is_not_shown_still_takes_reports(capsys):
    with row_progress("reading", 1, shown=False) as report_rows, sweep_progress(1, 1, shown=False) as report_sweep:
        report_rows(1)
        report_sweep(0, None)
    with download_progress(shown=False) as report, status("storing", shown=False):
        assert report is None
    assert capsys.readouterr() == ("", "")
