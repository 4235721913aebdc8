import logging


class JsonFormatter(logging.Formatter):
    pass


def file_handler():
    return logging.NullHandler()
