CHOSEN = ("tests/conversations",)
