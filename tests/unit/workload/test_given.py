"""Model files that came with a request."""

import pytest

from teraflock.base.errors import BadInput
from teraflock.workload.config import read_config
from teraflock.workload.given import CONFIG, TRACE, give, given
from teraflock.workload.trace import read_trace_file
from teraflock.workload.words import without_files

LLAMA = (
    b'{"model_type": "llama", "hidden_size": 2048, "intermediate_size": 5632, "num_hidden_layers": %d,'
    b' "num_attention_heads": 32, "num_key_value_heads": 4, "vocab_size": 32000, "max_position_embeddings": 2048}'
)


def test_a_given_config_is_read_and_never_mixed_up_with_another() -> None:
    first = give(LLAMA % 22, CONFIG)
    assert read_config(first).layers == (22,)
    second = give(LLAMA % 24, CONFIG)
    assert second != first
    assert read_config(second).layers == (24,)
    assert given(first) is None, "only the file of the current request is kept"


def test_a_damaged_trace_gets_a_sentence() -> None:
    with pytest.raises(BadInput, match="is not a trace"):
        read_trace_file(give(b"nonsense", TRACE))


def test_a_request_cannot_name_an_uploaded_file() -> None:
    name = give(LLAMA % 22, CONFIG)
    with pytest.raises(BadInput, match="is a file"):
        without_files(name)
