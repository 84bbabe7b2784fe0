"""A collection, several as one and one of a service are asked in the same way, and give answers of the same types."""

import inspect

import pytest

from starshl import Collection
from starshl.client.asynchronous import AsyncCollection
from starshl.client.synchronous import RemoteCollection
from starshl.collection.options import FilterKeywords, SearchKeywords
from starshl.distributed import ShardedCollection

OPTIONS = {f"Unpack[{kind.__name__}]": list(kind.__annotations__) for kind in (FilterKeywords, SearchKeywords)}
#: Arguments that only a service has: it makes vectors itself.
OF_A_SERVICE = {"texts", "rows"}
#: Arguments that a service does not take, and why.
NOT_SENT = {
    "codes": "the service encodes what it gets",
    "model_digest": "it is about codes that were made elsewhere",
    "previews": "the service makes them, in add_picture",
    "warn_unknown": "warnings are notes of an answer, and writes have none",
}
#: Arguments that several collections do not take, and why.
NOT_SHARED = {"pause": "each process searches its own collection in one piece"}
#: Methods of a service whose answers are of another type, and why.
OTHER_ANSWERS = dict.fromkeys(
    ["add", "upsert", "update", "set_labels", "remove"], "Written says whether an earlier attempt had stored the items"
)


def parameters(method):
    """Return how to pass each argument; options that are passed on count one by one."""
    found = {}
    for each in inspect.signature(method).parameters.values():
        if each.kind is each.VAR_KEYWORD:
            found |= dict.fromkeys(OPTIONS[each.annotation], each.KEYWORD_ONLY)
        else:
            found[each.name] = each.kind
    return found


def common(twin):
    """Return the names of the methods that a collection has, too."""
    names = [name for name, _ in inspect.getmembers(twin, inspect.isfunction) if not name.startswith("_")]
    return [name for name in names if inspect.isfunction(getattr(Collection, name, None))]


def answer_of(method):
    return inspect.signature(method).return_annotation


@pytest.mark.parametrize("name", common(ShardedCollection))
def test_several_collections_are_asked_like_one(name):
    ours, twin = getattr(Collection, name), getattr(ShardedCollection, name)
    assert list(parameters(twin).items()) == [pair for pair in parameters(ours).items() if pair[0] not in NOT_SHARED]
    assert answer_of(twin) == answer_of(ours)


@pytest.mark.parametrize("kind", [RemoteCollection, AsyncCollection])
@pytest.mark.parametrize("name", common(RemoteCollection))
def test_a_collection_of_a_service_is_asked_like_one_here(kind, name):
    ours, twin = getattr(Collection, name), getattr(kind, name)
    sent = [pair for pair in parameters(ours).items() if pair[0] not in NOT_SENT]
    assert [pair for pair in parameters(twin).items() if pair[0] not in OF_A_SERVICE] == sent
    assert answer_of(twin) == ("Written" if name in OTHER_ANSWERS else answer_of(ours))


def test_what_is_compared_is_there():
    assert {"search", "search_radius", "answer"} <= {*common(ShardedCollection)}
    assert {*OTHER_ANSWERS, "search", "get", "preview", "declare_fields"} <= {*common(RemoteCollection)}
    assert common(RemoteCollection) == common(AsyncCollection)
