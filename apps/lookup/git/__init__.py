"""Runs git, to read commits, trees and texts; nothing else of codeinfo does (docs/security.md)."""

from apps.lookup.git.objects import Git, opened
from apps.lookup.git.refs import CommitNotFound, commit_named

__all__ = ["CommitNotFound", "Git", "commit_named", "opened"]
