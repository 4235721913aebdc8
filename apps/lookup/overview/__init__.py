"""What a repository is: its languages, modules, entry points, most imported files, and how it is
built and tested. Facts with their lines."""
