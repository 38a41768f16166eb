"""`python -m gradsieve` is the `gradsieve` command."""

from gradsieve.cli import main

main()
