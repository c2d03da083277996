"""Records traces. This is the only folder that needs PyTorch (extra `teraflock[trace]`).

No other folder imports torch. A step runs under FakeTensorMode: tensors have shapes and storages but no values. So it
needs no GPU, no weights and no data.
"""
