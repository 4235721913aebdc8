"""Types that every room uses."""

from typing import Any

# A JSON object, decoded.
JSON = dict[str, Any]
