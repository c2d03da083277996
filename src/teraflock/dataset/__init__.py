"""Datasets: files that a project stores once and that its instances and runs read."""
