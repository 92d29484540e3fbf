"""Notices that other libraries print when they are imported: kept from the command line, all in this one place.

Errors are never hidden, nor are warnings of this package or of a user's own code.
"""

from __future__ import annotations

import logging
import os
import warnings

LIBRARIES = ("gymnasium", "gymnasium_robotics", "metaworld", "minigrid", "mujoco", "pygame", "pkg_resources")
"""Their warnings are about themselves: deprecations, and the spaces of their own environments."""


def silence_notices() -> None:
    """Call it before the libraries are imported."""
    os.environ.setdefault("PYGAME_HIDE_SUPPORT_PROMPT", "1")
    for library in LIBRARIES:
        warnings.filterwarnings("ignore", module=rf"{library}(\.|$)")
    logging.getLogger("jax._src.xla_bridge").addFilter(_is_no_hint_at_hardware)
    try:  # what gymnasium, gymnasium-robotics and minigrid print on standard error
        from farama_notifications import notifications
    except ModuleNotFoundError:
        return
    notifications.clear()


def _is_no_hint_at_hardware(record: logging.LogRecord) -> bool:
    """False for JAX's sentence that an accelerator could be used with another jaxlib."""
    return "Falling back to cpu" not in record.getMessage()
