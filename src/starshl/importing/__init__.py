"""Collections in one call: from a folder of pictures, from texts, or from vectors."""

from .pictures import import_pictures
from .summary import ImportSummary, Skipped
from .texts import import_texts
from .vectors import import_vectors

__all__ = ["ImportSummary", "Skipped", "import_pictures", "import_texts", "import_vectors"]
