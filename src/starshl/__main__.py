"""``python -m starshl`` is the command ``starshl``."""

from .cli.main import main

main()
