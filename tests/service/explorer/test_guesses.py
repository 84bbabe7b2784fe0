"""Guesses on the explore page: seen beside labels, filtered, ordered, and accepted or rejected a page at a time."""

import pytest

from .acting import MILLISECONDS_TO_SEE, eventually, labels, until

N_GIVEN = 60
PATH = "/explore/guessed"


@pytest.fixture
def api(chromium, site, truth):
    """A function that asks the service about a collection in which a quarter has a label and the rest is guessed."""
    context = chromium.new_context()
    root = f"{site}/api/v1/collections/guessed"

    def ask(path, body=None):
        answer = (
            context.request.get(f"{root}{path}") if body is None else context.request.post(f"{root}{path}", data=body)
        )
        assert answer.ok, answer.text()
        return answer.json()

    items = [{"id": number, "label": truth[number] if number < N_GIVEN else None} for number in range(len(truth))]
    assert context.request.put(f"{root}/labels", data={"items": items}).ok
    guess(ask)
    yield ask
    context.close()


def guess(api):
    job = api("/guesses/update", {})
    while api(f"/jobs/{job['id']}")["ended"] is None:
        pass
    assert api("/guesses")["is_current"]


def shown(page):
    return [
        tile.split("/")[-1]
        for tile in page.eval_on_selector_all(".grid .tile", "all => all.map((each) => each.dataset.view)")
    ]


def follows(page, click):
    """Click a button, and wait until the page shows the list that follows."""
    page.wait_for_timeout(MILLISECONDS_TO_SEE)
    before = shown(page)
    page.click(click)
    eventually(page, lambda: shown(page) != before and not page.query_selector("#neighbors.busy"), "another list")


def test_guesses_are_seen_and_never_look_like_labels(visit, api):
    page = visit(f"{PATH}?which=guessed")
    page.wait_for_selector(".chip.guessed")
    assert page.eval_on_selector_all(".grid .chip:not(.guessed)", "all => all.length") == 0
    style = page.eval_on_selector(".chip.guessed", "each => getComputedStyle(each).borderStyle")
    assert style == "dashed"
    assert "?" in page.text_content(".chip.guessed")
    name = page.get_attribute(".grid .tile", "aria-label")
    assert "perhaps" in name
    assert "% sure" in name
    page.goto(page.url.replace("guessed?which=guessed", "guessed?which=given"))
    assert page.query_selector(".chip.guessed") is None


def test_all_of_a_class_are_listed_with_how_many_there_are(visit, api):
    counts = {each["label"]: each["items"] for each in api("/classes")["classes"]}
    for label, guessed in api("/guesses")["counts"]:
        page = visit(f"{PATH}?label={label}")
        said = page.text_content(f'.pick:has(input[value="{label}"]) small')
        assert (
            int(said)
            == counts[label] + guessed
            == api("/items/count", {"labels": [label], "guesses": [label]})["count"]
        )


def test_the_least_sure_come_first_if_asked(visit, api):
    page = visit(PATH)
    page.select_option("[name=which]", "guessed")
    page.select_option("[name=order]", "least_sure")
    sure = "all => all.map((each) => parseInt(each.textContent))"
    eventually(
        page,
        lambda: "order=least_sure" in page.url and page.query_selector(".chip.guessed small"),
        "a list in this order",
    )
    until(page, "!document.querySelector('#neighbors.busy')")
    values = page.eval_on_selector_all(".grid .chip.guessed small", sure)
    assert values == sorted(values)
    page.reload()
    assert page.eval_on_selector_all(".grid .chip.guessed small", sure) == values, "the address holds it"


def test_a_page_of_guesses_is_accepted_at_once_and_undone_at_once(visit, site, api):
    page = visit(f"{PATH}?which=guessed&label=circle")
    seen = [int(item) for item in shown(page)]
    before = labels(page, site, "guessed")
    follows(page, "#review [name=accept]")
    after = labels(page, site, "guessed")
    assert {item: label for item, label in after.items() if item not in before} == dict.fromkeys(seen, "circle")
    follows(page, "#review [name=undo]")
    assert labels(page, site, "guessed") == before


def test_one_guess_is_rejected_and_is_not_made_again(visit, site, api):
    page = visit(f"{PATH}?which=guessed&label=cross")
    first = shown(page)[0]
    page.wait_for_timeout(MILLISECONDS_TO_SEE)
    page.click(".verdict [name=reject]")
    until(page, "document.querySelector('#status').textContent.includes('1 guess rejected')")
    # The page says that guesses are being brought up to date, and follows by itself.
    eventually(
        page, lambda: first not in shown(page) and not page.query_selector("[data-guessing]"), "guesses that follow"
    )
    assert labels(page, site, "guessed").get(int(first)) is None


def test_a_double_click_accepts_one_page_only(visit, site, api):
    page = visit(f"{PATH}?which=guessed")
    seen = shown(page)
    page.wait_for_timeout(MILLISECONDS_TO_SEE)
    page.dblclick("#review [name=accept]")
    eventually(page, lambda: shown(page) != seen, "the next page")
    page.wait_for_timeout(MILLISECONDS_TO_SEE)
    assert len(labels(page, site, "guessed")) == N_GIVEN + len(seen)


def test_two_tabs_accept_the_same_page_and_no_given_label_is_lost(visit, site, api):
    one, other = visit(f"{PATH}?which=guessed&label=square"), visit(f"{PATH}?which=guessed&label=square")
    seen = [int(item) for item in shown(one)]
    body = {"items": [{"id": seen[0], "label": "cross"}]}
    assert one.request.put(f"{site}/api/v1/collections/guessed/labels", data=body).ok
    follows(one, "#review [name=accept]")
    other.click("#review [name=accept]")
    until(other, "document.querySelector('#status').textContent.includes('had a label by now')")
    found = labels(one, site, "guessed")
    assert found[seen[0]] == "cross"
    assert {found[item] for item in seen[1:]} == {"square"}


def test_it_works_without_scripts(visit, site, api):
    page = visit(f"{PATH}?which=guessed&label=circle", java_script_enabled=False)
    n_before = len(labels(page, site, "guessed"))
    page.click("#review [name=accept]")
    page.wait_for_selector("#review")
    assert "label=circle" in page.url
    assert len(labels(page, site, "guessed")) > n_before


def test_while_offline_nothing_changes_and_the_page_says_so(visit, site, api):
    page = visit(f"{PATH}?which=guessed&label=circle")
    seen = shown(page)
    page.wait_for_timeout(MILLISECONDS_TO_SEE)
    page.context.set_offline(True)
    page.click("#review [name=accept]")
    until(page, "document.querySelector('#status').textContent.includes('does not answer')")
    page.context.set_offline(False)
    assert shown(page) == seen
    page.wait_for_timeout(1000)
    follows(page, "#review [name=accept]")
    assert {labels(page, site, "guessed")[int(item)] for item in seen} == {"circle"}
