"""The documentation is true: its examples run and every place it points to exists."""

import doctest
import re
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", ROOT / "SECURITY.md", *sorted((ROOT / "docs").rglob("*.md"))]


def python_blocks(page):
    return re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), flags=re.DOTALL)


@pytest.mark.docs
@pytest.mark.parametrize("page", [page for page in PAGES if python_blocks(page)], ids=lambda page: page.name)
@pytest.mark.filterwarnings("ignore")
def test_examples_of_a_page_run(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    scope = {}
    for block in python_blocks(page):
        if block.startswith(">>>"):
            run_dialogue(block, scope, page)
        else:
            exec(compile(block, str(page), "exec"), scope)


def run_dialogue(block, scope, page):
    dialogue = doctest.DocTestParser().get_doctest(block, scope, page.name, str(page), 0)
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    runner.run(dialogue, clear_globs=False)
    scope.update(dialogue.globs)
    assert runner.failures == 0


def equations():
    table = (ROOT / "docs" / "method.md").read_text(encoding="utf-8")
    return re.findall(r"`(starshl[\w.]*):([\w.]+)`", table)


# What each statement of the paper is about, in the order of the paper; the descent and the bound are tested elsewhere.
STATEMENTS = {
    "Eq. 1": ("distortion", "Hamming"),
    "Eq. 2": ("surrogate", "hinge"),
    "Eq. 3": ("label's codeword", "nearest"),
    "Prop. 1, Eqs. 4 – 5": ("upper bound", "touches"),
    "Prop. 2, Eq. 6": ("splits", "bit"),
    "Eq. 7": ("dual", "SVM"),
    "Prop. 3, Eqs. 8 – 15": ("dual", "proof"),
    "Eq. 16": ("kernel weights", "closed form"),
    "Eq. 17": ("codeword bit", "sign"),
    "Algorithm 1": ("order",),
    "Lemma 1, Eq. 18": ("Rademacher",),
    "Eqs. 19 – 20": ("M_b", "R_b"),
    "Theorem 1, Eq. 21": ("generalization bound", "Eqs. 22 – 26"),
}


def test_the_method_page_says_what_each_statement_of_the_paper_is_about_in_its_order():
    text = (ROOT / "docs" / "method.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| ((?:Eqs?\.|Prop\.|Algorithm|Lemma|Theorem) [^|]+?) \| (.+) \| `starshl", text, re.MULTILINE)
    assert list(dict.fromkeys(statement for statement, _ in rows)) == list(STATEMENTS)
    for statement, words in STATEMENTS.items():
        said = " ".join(about for name, about in rows if name == statement)
        assert all(word in said for word in words), statement


@pytest.mark.parametrize(("module", "name"), equations())
def test_every_place_of_the_method_page_exists(module, name):
    found = import_module(module)
    for part in name.split("."):
        found = getattr(found, part)
    assert callable(found)


def test_the_notation_table_names_attributes_that_exist(digits):
    from starshl import StarSHL

    X, y = digits
    hasher = StarSHL(4, random_state=0, max_iter=2).fit(X[:60], y[:60])
    text = (ROOT / "docs" / "notation.md").read_text(encoding="utf-8")
    names = set(re.findall(r"`(?:len\()?([a-z_]+_)\)?`", text))
    assert {"codewords_", "kernel_weights_", "dual_coef_", "intercept_", "assignments_"} <= names
    assert all(hasattr(hasher, name) for name in names)


def test_every_row_of_the_comparison_names_what_proves_it():
    text = (ROOT / "docs" / "compare.md").read_text(encoding="utf-8")
    rows = [line.strip("|").split("|") for line in text.splitlines() if line.startswith("| ") and "**" not in line]
    assert len(rows) > 20
    for row in rows[1:]:
        proof = row[-1]
        file = re.search(r"`(tests/[\w/]+\.py)`", proof)
        assert (ROOT / file[1]).is_file() if file else re.search(r"\]\([\w/]+\.md", proof), row[0]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_between_pages_lead_somewhere(page):
    for target in re.findall(r"\]\((?!http)([^)#]+)", page.read_text(encoding="utf-8")):
        assert (page.parent / target).exists(), target


def anchors(page):
    """Return the anchors of a page's headings, as GitHub and the site make them."""
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    headings = re.findall(r"^#+ (.+)$", text, flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading).lower().replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_to_headings_lead_to_one(page):
    for target, anchor in re.findall(r"\]\((?!http)([^)#]*)#([^)]+)\)", page.read_text(encoding="utf-8")):
        assert anchor in anchors(page.parent / target if target else page), f"{target}#{anchor}"
