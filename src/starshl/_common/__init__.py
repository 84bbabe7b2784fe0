"""What every other subpackage may use, and which knows nothing of hashing: files, checks, threads, progress."""
