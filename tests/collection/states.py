"""What a collection holds, what a reader of it finds, and how a change is interrupted."""

from starshl import Collection


def die(*arguments):
    raise KeyboardInterrupt


def state_of(collection):
    return collection.rows(), sorted(collection.ids.tolist())


def assert_reads_like_a_new_reader(folder, reader, rows):
    with Collection(folder, read_only=True) as fresh:
        assert reader.ids.tolist() == fresh.ids.tolist()
        assert reader.codes(reader.ids) == fresh.codes(fresh.ids)
        assert reader.search(rows[:5], k=7) == fresh.search(rows[:5], k=7)
