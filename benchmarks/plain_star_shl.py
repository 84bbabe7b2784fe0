"""*SHL as docs/plain.md has it: the code of that page up to its comparison with the package, to import.

It shares no code with the package, so that agreement in tests/hashers/oracles and ratios in speed.py mean something. It
has no warm starts and no checks.
"""

import re
from pathlib import Path

_PAGE = (Path(__file__).parents[1] / "docs" / "plain.md").read_text(encoding="utf-8")
_METHOD = _PAGE.split("\n## It agrees with the package")[0]
exec("\n\n".join(re.findall(r"```python\n(.*?)```", _METHOD, flags=re.DOTALL)))
