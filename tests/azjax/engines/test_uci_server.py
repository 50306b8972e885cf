"""Our agent as a UCI engine, and as a USI one: whole conversations, python-chess as a controller, anything at all."""

import pytest
