"""Work inside the guest of an instance: commands, files and logs."""
