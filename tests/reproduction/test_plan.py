"""The plan: which runs a figure stands for, under which keys."""

import json
import os
from dataclasses import replace

import numpy as np
import pytest

from starshl.data.datasets import Dataset
from starshl.exceptions import ChecksumError, DatasetUnavailableError, DownloadError
from starshl.hashers.baselines import LSHash
from starshl.reproduction import RecordFolder, figure, make_plan
from starshl.reproduction import plan as planning
from starshl.reproduction.compared_methods import COMPARED_METHODS, ROLES, Sizes, compared_method
from starshl.reproduction.figures import FIGURES, figures_named


def titles(plan):
    return {job.key.method for job in plan.runs}


def test_the_figures_are_those_of_the_paper_and_the_studies_beside_it():
    assert set(FIGURES) == {
        *("pendigits", "usps", "mnist", "cifar10", "pascal07", "pictures"),
        *("transductive", "lists", "labels", "unsupervised", "digits"),
    }
    assert [entry.name for entry in figures_named(["all"])] == list(FIGURES)


@pytest.mark.parametrize("name", ["pendigits", "usps", "mnist", "cifar10", "pascal07", "digits"])
def test_retrieval_compares_the_papers_methods_and_the_honest_rows(name):
    taking_part = {COMPARED_METHODS[key].title for key in figure(name).methods}
    assert taking_part >= {"*SHL, paper settings", "*SHL, defaults", "KSH", "BRE", "1-AGH", "2-AGH", "SPH", "LSH"}
    assert taking_part >= {"HC-SDH, all rows", "codeword SVM", "one-vs-one SVC", "float search"}
    assert figure(name).protocols[0].bits == tuple(range(5, 50, 5))


def test_every_contestant_has_a_known_role_and_a_title_of_its_own():
    assert {entry.role for entry in COMPARED_METHODS.values()} == set(ROLES)
    assert len({entry.title for entry in COMPARED_METHODS.values()}) == len(COMPARED_METHODS)


def test_a_plan_has_every_method_at_every_length_in_every_run_once():
    plan = make_plan([figure("digits")], bits=[8, 12, 8], n_runs=3)
    n_hashers = sum(COMPARED_METHODS[key].kind == "hasher" for key in figure("digits").methods)
    n_others = len(figure("digits").methods) - n_hashers
    assert len(plan.runs) == 3 * (2 * n_hashers + n_others)
    assert len({job.key.file_name for job in plan.runs}) == len(plan.runs)


def test_a_method_is_not_planned_where_it_cannot_make_such_codes():
    unsupervised = figure("unsupervised")
    with_itq = {
        protocol.dataset
        for protocol in unsupervised.protocols
        if any(chosen.key == "itq" for _, chosen, _ in unsupervised.cells(protocol))
    }
    assert with_itq == {"digits", "usps", "mnist", "agnews"}, "Pendigits has 16 features, too few for 32 bits"


def test_runs_that_two_figures_share_are_planned_once():
    once = make_plan([figure("digits")], bits=[8], n_runs=1)
    twice = make_plan([figure("digits"), figure("digits")], bits=[8], n_runs=1)
    assert [job.key for job in once.runs] == [job.key for job in twice.runs]


@pytest.mark.parametrize("key", figure("digits").methods)
def test_a_run_is_recorded_under_the_key_that_was_planned(key):
    [job] = make_plan([figure("digits")], bits=[6], methods=[key], n_runs=1, quick=True).runs
    record = job.perform()
    assert record.ok, record.message
    assert record.key == job.key


def test_inductive_and_transductive_runs_start_from_the_same_codewords():
    keys = ("starshl", "starshl-transductive", "starshl-paper")
    assert len({COMPARED_METHODS[key].seed_label for key in keys}) == 1
    assert COMPARED_METHODS["lsh"].seed_label == "LSH"


def test_other_settings_are_another_run(monkeypatch):
    before = make_plan([figure("digits")], bits=[8], methods=["ksh"], n_runs=1).runs[0].key
    monkeypatch.setitem(COMPARED_METHODS, "ksh", replace(COMPARED_METHODS["ksh"], params={"n_anchors": 100}))
    assert make_plan([figure("digits")], bits=[8], methods=["ksh"], n_runs=1).runs[0].key.file_name != before.file_name


def test_kernel_ridge_takes_all_rows_up_to_ten_thousand_and_anchors_beyond():
    settings = COMPARED_METHODS["hc-sdh"].settings
    assert settings(Sizes(10_000, 10))["n_anchors"] is None
    assert settings(Sizes(10_001, 10))["n_anchors"] == 5_000


def test_two_layers_drop_their_last_bit_at_an_odd_length(digits):
    X, _ = digits
    sizes = Sizes(len(X), 10)
    odd, even = (COMPARED_METHODS["2-agh"].build(n_bits, 0, sizes).fit(X) for n_bits in (7, 8))
    assert np.array_equal(odd.encode(X).to_signs(), even.transform(X)[:, :7])


@pytest.mark.parametrize("reason", [ChecksumError, DatasetUnavailableError, DownloadError])
def test_a_data_set_that_cannot_be_had_is_left_out_and_named(monkeypatch, reason):
    rng = np.random.default_rng(0)
    digits = Dataset("digits", rng.random((1797, 4)), np.arange(1797) % 10, None, tuple("0123456789"))

    def load(name):
        if name == "digits":
            return digits
        raise reason(f"no {name} here")

    monkeypatch.setattr(planning, "load_dataset", load)
    plan = make_plan([figure("digits"), figure("usps")], bits=[8], methods=["lsh"], n_runs=1, quick=True)
    assert plan.unavailable == {"usps": "no usps here"}
    assert len(plan.runs) == 1
    with pytest.raises(DatasetUnavailableError, match="no usps here"):  # nothing is left to be run
        make_plan([figure("usps")], bits=[8], n_runs=1)


def test_a_plan_can_be_cut_to_some_data_sets():
    plan = make_plan([figure("unsupervised")], methods=["k-means"], data_sets=["digits"], n_runs=1)
    assert {job.protocol.dataset for job in plan.runs} == {"digits"}
    with pytest.raises(ValueError, match="usps is not used"):
        make_plan([figure("digits")], data_sets=["usps"])


def test_unknown_names_are_refused_with_the_nearest():
    with pytest.raises(ValueError, match=r"no figure 'pendigit'.*pendigits"):
        figure("pendigit")
    with pytest.raises(ValueError, match=r"no method 'khs'.*ksh"):
        compared_method("khs")
    with pytest.raises(ValueError, match="not part of digits"):
        make_plan([figure("digits")], methods=["ssh"])
    with pytest.raises(ValueError, match="bits is 0"):
        make_plan([figure("digits")], bits=[0])
    with pytest.raises(ValueError, match="runs is 0"):
        make_plan([figure("digits")], n_runs=0)


def test_settings_of_a_key_are_plain_enough_for_a_file(tmp_path):
    folder = RecordFolder(tmp_path)
    for job in make_plan([figure("labels")], quick=True, n_runs=1).runs:
        assert json.loads(job.key.text)["settings"]["fit_on"] in ("train", "labeled", "none")
        assert not folder.path_of(job.key).exists()


def test_figures_have_the_numbers_that_the_paper_prints():
    printed = {figure.number: figure.name for figure in FIGURES.values() if figure.number}
    names = ("pendigits", "usps", "mnist", "cifar10", "pascal07", "pictures", "transductive")
    assert printed == dict(enumerate(names, start=1))
    assert [entry.name for entry in figures_named(["5", "pascal07", "7"])] == ["pascal07", "transductive"]


def test_a_new_title_is_the_same_run(monkeypatch):
    before = make_plan([figure("digits")], bits=[8], methods=["ksh"], n_runs=1).runs[0].key
    monkeypatch.setitem(
        COMPARED_METHODS, "ksh", replace(COMPARED_METHODS["ksh"], title="Kernel-based supervised hashing")
    )
    [renamed] = make_plan([figure("digits")], bits=[8], methods=["ksh"], n_runs=1).runs
    assert renamed.key == before
    assert renamed.title.startswith("Kernel-based supervised hashing")


def test_a_changed_default_is_another_run(monkeypatch):
    before = make_plan([figure("digits")], bits=[8], methods=["lsh"], n_runs=1).runs[0].key
    monkeypatch.setitem(LSHash.__init__.__kwdefaults__, "center", False)
    assert make_plan([figure("digits")], bits=[8], methods=["lsh"], n_runs=1).runs[0].key.text != before.text


def test_pictures_need_codes_also_where_another_figure_shares_the_run():
    if "STARSHL_DATA" not in os.environ:
        pytest.skip("STARSHL_DATA names no folder of data sets")
    figures = [figure("cifar10"), figure("pictures")]
    plan = make_plan(figures, bits=[45], methods=["lsh"], n_runs=1, quick=True)
    assert [planned.needs_codes for planned in plan.runs] == [True]
