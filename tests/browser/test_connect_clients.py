"""The Connect page adds codeinfo to a client of this machine, after it has shown the change."""

import json
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import Browser, expect

from tests.browser.chromium import PHONE, WIDE, chromium_page
from tests.browser.product import running
from tests.browser.test_accessibility import objections
from tests.mcp.speech import META, PREFIX, STATELESS, headers_for, request
