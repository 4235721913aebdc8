"""The operating system: programs, disks, memory."""
