"""The logger of the runtime."""

import logging


def get_logger() -> logging.Logger:
    return logging.getLogger("simpler")
