"""Recording of traces: the one part of the house that needs PyTorch (extra `teraflock[trace]`).

Nothing outside this folder imports torch. The step is run under FakeTensorMode, so there are shapes and
storages but no numbers: no GPU, no weights and no data are needed.
"""
